/* The kernels of gpu_probes.c that transpose a whole matrix. */
#ifndef FLASHLAB_CUDA_TESTS_TRANSPOSITION_KERNELS_H
#define FLASHLAB_CUDA_TESTS_TRANSPOSITION_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "tests/common/transpositions.h"

/* Puts it on the default stream. B: cols x rows, A: rows x cols, on the device. */
enum status launch_transposition(const struct transposition *t, float *B, const float *A,
                                 struct error *error);

#ifdef __cplusplus
}
#endif

#endif
