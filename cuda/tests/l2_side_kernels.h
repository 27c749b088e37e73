/* The kernels of gpu_l2_sides.c: where blocks run, and how far lines of memory are from an SM.
 */
#ifndef FLASHLAB_CUDA_TESTS_L2_SIDE_KERNELS_H
#define FLASHLAB_CUDA_TESTS_L2_SIDE_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* sms: device, [blocks] <- the SM of each block of a grid. */
enum status launch_where(int *sms, int blocks, struct error *error);

/* cycles: device, [lines] <- the fastest of a few atomic additions of zero from that SM to the
 * first word of each line of 128 bytes. They are done where the line is at home. memory:
 * device, [lines][128] bytes. */
enum status launch_distance(int *cycles, int sm, void *memory, int lines, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
