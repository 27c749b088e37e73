/* What a step is to the launcher: its kernels, and what each of them gets. For .cu files.
 *
 * Interface, in a step's file:
 *   template <class T, int D> __global__ void step(const __grid_constant__ struct work w)
 *   template <class T, int D> static struct kernel kernel_of()    the kernel that serves them
 *   LADDER_STEP(name, "NN_name", false)                           defines step_name
 */
#ifndef FLASHLAB_CUDA_LADDER_STEP_H
#define FLASHLAB_CUDA_LADDER_STEP_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/ladder/ladder.h"

/* One launch. a.block_q and a.block_k are the kernel's. */
struct work {
    struct attention a;
    struct ladder_tensors t;
    int planes_together; /* planes whose blocks run at the same time: see place.h */
};

/* A __global__ function of one argument, a struct work. */
struct kernel {
    const void *function;
    int threads, block_q, block_k;
    int shared_bytes; /* dynamic */
};

enum { DTYPES_16 = 2, HEAD_DIMS = 3 };

struct step {
    const char *name;
    bool longest_first;                          /* see place.h */
    struct kernel kernels[DTYPES_16][HEAD_DIMS]; /* F16, BF16; 64, 128, 256 */
};

#define LADDER_STEP(name, text, longest_first)                                                 \
    const struct step step_##name = {                                                          \
        text,                                                                                  \
        longest_first,                                                                         \
        {{kernel_of<__half, 64>(), kernel_of<__half, 128>(), kernel_of<__half, 256>()},        \
         {kernel_of<__nv_bfloat16, 64>(), kernel_of<__nv_bfloat16, 128>(),                     \
          kernel_of<__nv_bfloat16, 256>()}}};

extern const struct step step_mma, step_ldmatrix, step_cp_async, step_registers, step_two_tiles;

#endif
