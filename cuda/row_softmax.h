/* What the softmax kernels share: a thread block a row, and reductions over the block. */
#ifndef FLASHLAB_CUDA_ROW_SOFTMAX_H
#define FLASHLAB_CUDA_ROW_SOFTMAX_H

#include "cuda/memory.h"
#include "cuda/warp_reduce.h"

enum { ROW_SOFTMAX_THREADS = 256, ROW_SOFTMAX_WARPS = ROW_SOFTMAX_THREADS / 32 };

/* exp(x - m), 0 where x = -inf: (-inf) - (-inf) never happens. NaN stays NaN. */
__device__ inline float exp_relative(float x, float m)
{
    return expf(x - (m == -INFINITY ? 0.0f : m));
}

/* The maximum, or the sum, of what all threads of the block hold; every thread gets it.
 * scratch: one element a warp, which the block has not used since its last barrier. */
__device__ __forceinline__ float block_max(float x, Shared<float> scratch)
{
    x = warp_max<32>(x);
    if (threadIdx.x % 32 == 0)
        scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_max<ROW_SOFTMAX_WARPS>(scratch[threadIdx.x % ROW_SOFTMAX_WARPS]);
}
__device__ __forceinline__ float block_sum(float x, Shared<float> scratch)
{
    x = warp_sum<32>(x);
    if (threadIdx.x % 32 == 0)
        scratch[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_sum<ROW_SOFTMAX_WARPS>(scratch[threadIdx.x % ROW_SOFTMAX_WARPS]);
}

#endif
