/* The attention problem inside kernels: core/attention.h for C++, and what its functions
 * compute as device functions. Each returns what the function of that name with the prefix
 * attention_ returns.
 */
#ifndef FLASHLAB_CUDA_PROBLEM_H
#define FLASHLAB_CUDA_PROBLEM_H

#ifdef __cplusplus
extern "C" {
#endif
#include "core/attention.h"
#include "core/status.h"
#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__

__device__ inline int kv_plane_of(const struct attention &a, int plane_q)
{
    return plane_q / (a.heads_q / a.heads_kv);
}

__device__ inline int visible_keys(const struct attention &a, int row)
{
    int visible = a.seqlen_k;
    if (a.mask == MASK_CAUSAL)
        visible = row + 1 + a.seqlen_k - a.seqlen_q;
    else if (a.mask == MASK_CAUSAL_TOP_LEFT)
        visible = row + 1;
    return max(0, min(visible, a.seqlen_k));
}

__device__ inline int visited_tiles(const struct attention &a, int i)
{
    /* Causal rows see more keys the later they are: the tile's last row decides. */
    const int last = min((i + 1) * a.block_q, a.seqlen_q) - 1;
    return (visible_keys(a, last) + a.block_k - 1) / a.block_k;
}

#endif
#endif
