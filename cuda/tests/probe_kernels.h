/* The kernels of gpu_probes.c: one warp, one request. */
#ifndef FLASHLAB_CUDA_TESTS_PROBE_KERNELS_H
#define FLASHLAB_CUDA_TESTS_PROBE_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "tests/common/probes.h"

/* Puts the probe on the default stream. memory: device, PROBE_SLOTS * 16 bytes. */
enum status launch_probe(const struct probe *probe, void *memory, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
