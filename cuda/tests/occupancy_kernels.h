/* Kernels of many sizes, for gpu_occupancy.c: they are never launched. */
#ifndef FLASHLAB_CUDA_TESTS_OCCUPANCY_KERNELS_H
#define FLASHLAB_CUDA_TESTS_OCCUPANCY_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

struct occupancy_kernel {
    const char *name;
    const void *kernel;
    int most_threads; /* its launch bound */
};

/* The whole table and its length. */
const struct occupancy_kernel *occupancy_kernels(int *count);

#ifdef __cplusplus
}
#endif

#endif
