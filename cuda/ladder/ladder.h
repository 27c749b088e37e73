/* The ladder: fast attention forward kernels, each step one idea beyond the step before.
 *
 * Interface:
 *   struct attention a = {...};        core/attention.h, but block_q and block_k are not used
 *   struct ladder_tensors t = {...};
 *   ladder_launch(LADDER_MMA, &a, &t, &error);
 *
 * dtype is F16 or BF16; head_dim 64, 128 or 256, and head_dim_v the same.
 *
 * All steps compute the same: O = softmax(scale Q K^T + mask) V and LSE, products in 16 bits
 * with sums in fp32, O rounded to the dtype once. Any lengths; causal aligned bottom-right;
 * grouped heads. A row without keys gives O = 0 and LSE = -inf.
 */
#ifndef FLASHLAB_CUDA_LADDER_H
#define FLASHLAB_CUDA_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor (batch, heads, seqlen, head_dim) of 16-bit elements on the device. The elements of a
 * row are neighbours; the strides, in elements, are those of the other dimensions, so that
 * (batch, seqlen, heads, head_dim) is the same tensor with other strides. The address is a
 * multiple of 16 bytes, each stride a multiple of 8 elements; for the copy engine, fewer than
 * 2^39. */
struct ladder_tensor {
    void *at;
    int64_t batch, head, row;
};

/* Not owned. */
struct ladder_tensors {
    struct ladder_tensor Q, K, V, O;
    float *LSE;      /* (batch, heads_q, seqlen_q), without gaps */
    uint32_t *taken; /* two words on the device, 0 before and after; not shared by launches that
                        may overlap. Steps before 11 do without */
    void *stream;    /* a cudaStream_t; NULL: the default stream */
};

enum ladder_step {
    LADDER_MMA,
    LADDER_LDMATRIX,
    LADDER_CP_ASYNC,
    LADDER_REGISTERS,
    LADDER_TWO_TILES,
    LADDER_TMA,
    LADDER_WGMMA,
    LADDER_PRODUCER,
    LADDER_PING_PONG,
    LADDER_OVERLAP,
    LADDER_PERSISTENT,
    LADDER_EXP2,
    LADDER_RESCALE,
    LADDER_QUERIES,
    LADDER_STEPS,
};
extern const int ladder_step_count; /* for callers that do not read this header */

/* "01_mma" ... : the name of the file. */
const char *ladder_name(enum ladder_step step);

/* True for the steps that move tiles by the copy engine. They are compiled for compute
 * capability 9.0 only: their instructions run on no other GPU. */
bool ladder_needs_hopper(enum ladder_step step);

/* Puts one run of the step on the stream and returns. Without a launch, with a message that
 * names the argument, its value and what is allowed, if the step cannot do it. */
enum status ladder_launch(enum ladder_step step, const struct attention *a,
                          const struct ladder_tensors *t, struct error *error);

/* What ladder_launch() checks before it asks for the device: needs none. */
enum status ladder_check(enum ladder_step step, const struct attention *a,
                         const struct ladder_tensors *t, struct error *error);

/* Fails if the step cannot run on a GPU of compute capability major.minor. */
enum status ladder_check_gpu(enum ladder_step step, const char *gpu, int major, int minor,
                             struct error *error);

/* Rows of the Q tiles and of the K and V tiles that the step works on, which decide what it
 * moves: head_dim is one that it can do. */
void ladder_tile(int *block_q, int *block_k, enum ladder_step step, int head_dim);

#ifdef __cplusplus
}
#endif

#endif
