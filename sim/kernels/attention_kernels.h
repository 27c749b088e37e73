/* The attention kernels: one algorithm a file, all with one signature.
 *
 * Interface:
 *   Each function launches its kernels on the GPU: it reads Q, K and V, writes O and LSE, and
 *   allocates what else it keeps in HBM (S and P, or l and m). kernels/attention_forward.h
 *   wraps them for callers that have host arrays.
 *   Shapes: Q (planes_q, seqlen_q, head_dim), K (planes_kv, seqlen_k, head_dim), V (planes_kv,
 *   seqlen_k, head_dim_v), O (planes_q, seqlen_q, head_dim_v), all of a->dtype; LSE (planes_q,
 *   seqlen_q, 1) of F32.
 */
#ifndef FLASHLAB_KERNELS_ATTENTION_KERNELS_H
#define FLASHLAB_KERNELS_ATTENTION_KERNELS_H

#include "core/attention.h"
#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tensors of one attention problem in HBM. */
struct attention_tensors {
    struct hbm_tensor Q, K, V, O, LSE;
    struct hbm_tensor S, P; /* standard attention: scores and probabilities */
    struct hbm_tensor l, m; /* flash1: row sums and maxima */
};

/* What a thread block of any of the kernels is given. */
struct attention_args {
    const struct attention *a;
    struct attention_tensors *t;
};

typedef enum status attention_kernel(struct gpu *gpu, const struct attention *a,
                                     struct attention_tensors *t, struct error *error);

/* struct launch.alike for grids with query or key tiles in x and y and query planes in z.
 * same_rows: the blocks of a plane do the same work, wherever their rows are. */
struct grid attention_alike(const struct attention *a, bool same_rows);

/* One query row at a time, element by element, nothing reused on chip. */
attention_kernel naive_attention;

/* Algorithm 0 of FlashAttention: S and P go through HBM, three launches. */
attention_kernel standard_attention;

/* Algorithm 1 of FlashAttention: K/V tiles outside, Q tiles inside. */
attention_kernel flash1_forward;

/* Algorithm 1 of FlashAttention-2: Q tiles outside, K/V tiles inside. */
attention_kernel flash2_forward;

#ifdef __cplusplus
}
#endif

#endif
