/* Reductions over the lanes of a warp.
 *
 * Interface: all lanes call at once, each with its x, and each gets
 *   warp_max<LANES>(x)   the maximum over the LANES lanes that lie beside it; passes over NaN
 *   warp_sum<LANES>(x)   the sum over them
 *
 * LANES is a power of two, up to 32. A butterfly: every lane meets the one that is LANES / 2
 * away, then half as far, and so on, so that log2(LANES) shuffles leave the same bits in all
 * LANES.
 */
#ifndef FLASHLAB_CUDA_WARP_REDUCE_H
#define FLASHLAB_CUDA_WARP_REDUCE_H

#ifdef FLASHLAB_CPU
#include "cuda/cpu/warp_reduce.h"
#else

template <int LANES> __device__ inline float warp_max(float x)
{
    for (int other = LANES / 2; other > 0; other /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, other));
    return x;
}
template <int LANES> __device__ inline float warp_sum(float x)
{
    for (int other = LANES / 2; other > 0; other /= 2)
        x += __shfl_xor_sync(0xffffffff, x, other);
    return x;
}

#endif

#endif
