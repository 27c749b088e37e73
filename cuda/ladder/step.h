/* What a step is to the launcher: its kernels, and what each of them gets. For .cu files.
 *
 * Interface, in a step's file:
 *   template <class T, int D> __global__ void step(const __grid_constant__ struct work w)
 *   template <class T, int D> static struct kernel kernel_of()    the kernel that serves them
 *   LADDER_STEP(name, "NN_name", traits)                          defines step_name
 */
#ifndef FLASHLAB_CUDA_LADDER_STEP_H
#define FLASHLAB_CUDA_LADDER_STEP_H

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/ladder/ladder.h"

/* One launch. a.block_q and a.block_k are the kernel's. */
struct work {
    struct attention a;
    struct ladder_tensors t;
    int planes_together; /* planes whose blocks run at the same time: see place.h */
};

/* The same for the kernels that load and store by the copy engine: see tma.h. Boxes have
 * WARPGROUP_ROWS rows of Q, block_k of K and V, 16 (a warp's) of O. */
struct tma_work {
    struct work work;
    CUtensorMap Q, K, V, O;
};

/* A __global__ function of one argument, a struct work or a struct tma_work. */
struct kernel {
    const void *function;
    int threads, block_q, block_k;
    int shared_bytes; /* dynamic */
};

enum { DTYPES_16 = 2, HEAD_DIMS = 3 };

enum step_traits {
    LONGEST_FIRST = 1, /* see place.h */
    COPY_ENGINE = 2,   /* gets a struct tma_work */
    PERSISTENT = 4,    /* a block an SM, which goes through the places itself */
};

struct step {
    const char *name;
    int traits;
    struct kernel kernels[DTYPES_16][HEAD_DIMS]; /* F16, BF16; 64, 128, 256 */
};

#define LADDER_STEP(name, text, traits)                                                        \
    const struct step step_##name = {                                                          \
        text,                                                                                  \
        traits,                                                                                \
        {{kernel_of<__half, 64>(), kernel_of<__half, 128>(), kernel_of<__half, 256>()},        \
         {kernel_of<__nv_bfloat16, 64>(), kernel_of<__nv_bfloat16, 128>(),                     \
          kernel_of<__nv_bfloat16, 256>()}}};

extern const struct step step_mma, step_ldmatrix, step_cp_async, step_registers, step_two_tiles,
    step_tma, step_wgmma, step_producer, step_ping_pong, step_overlap, step_persistent,
    step_exp2, step_rescale, step_queries;

/* The maps of the step's tensors; fails if the copy engine cannot take their strides. */
enum status tensor_maps(struct tma_work *work, struct error *error);

#endif
