/* Maximum and sum over the four lanes that hold a row of a product: see mma.h.
 *
 * Interface: every lane gets the result of its own row.
 *   row_max(x), row_sum(x)
 *   row_gather(x)       lane i <- the value of row i: x[i][half] is that of row 16 i + 8 half +
 * g
 */
#ifndef FLASHLAB_CUDA_LADDER_ROW_REDUCTION_H
#define FLASHLAB_CUDA_LADDER_ROW_REDUCTION_H

#include "cuda/ladder/lane.h"

__device__ inline float row_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

__device__ inline float row_sum(float x)
{
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

template <int TILES> __device__ inline float row_gather(const float (&x)[TILES][2])
{
    const int lane = lane_number();
    float mine = 0;
#pragma unroll
    for (int r = 0; r < 2 * TILES; r++) {
        const float there = __shfl_sync(0xffffffff, x[r / 2][r % 2], lane % 8 * 4);
        if (lane / 8 == r)
            mine = there;
    }
    return mine;
}

#endif
