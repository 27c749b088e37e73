/* Every way in which lanes exchange values: one column of results each, 32 lanes long. */
#include "cuda/memory.h"
#include "cuda/warp_reduce.h"
#include "tests/cpu/kernels/own.h"

enum { ALL = -1 };

static __global__ void shuffles(Global<int> to, Global<const int> from)
{
    const int lane = (int)threadIdx.x, x = from[lane];
    const unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
    to[lane] = __shfl_sync(ALL, x, 3);
    to[32 + lane] = __shfl_sync(ALL, x, lane + 1, 8);
    to[64 + lane] = __shfl_xor_sync(ALL, x, 5);
    to[96 + lane] = __shfl_xor_sync(ALL, x, 12, 8);
    to[128 + lane] = __shfl_up_sync(ALL, x, 3);
    to[160 + lane] = __shfl_up_sync(ALL, x, 3, 8);
    to[192 + lane] = __shfl_down_sync(ALL, x, 3);
    to[224 + lane] = __shfl_down_sync(ALL, x, 3, 16);
    if (lane < 16) /* each half for itself */
        to[256 + lane] = __shfl_sync(half, x, 7);
    else
        to[256 + lane] = __shfl_sync(half, x, 23);
    to[288 + lane] = (int)(4 * __shfl_xor_sync(ALL, 0.25 * x, 1));
    to[320 + lane] = (int)(4 * __shfl_xor_sync(ALL, 0.25f * (float)x, 1));
}

static __global__ void votes(Global<int> to, Global<const int> from)
{
    const int lane = (int)threadIdx.x, x = from[lane];
    to[lane] = (int)__ballot_sync(ALL, x % 3);
    to[32 + lane] = __any_sync(ALL, x < 0);
    to[64 + lane] = __any_sync(ALL, lane == 9);
    to[96 + lane] = __all_sync(ALL, x >= 0);
    to[128 + lane] = __all_sync(ALL, lane != 9);
    to[160 + lane] = __reduce_add_sync(ALL, x);
    to[192 + lane] = __reduce_min_sync(ALL, 10 - x);
    to[224 + lane] = __reduce_max_sync(ALL, 10 - x);
    to[256 + lane] = (int)__reduce_max_sync(ALL, (unsigned)(10 - x));
    if (lane < 8) /* the others have nothing to do with it */
        to[288 + lane] = __all_sync(0xff, lane < 8) + (int)__ballot_sync(0xff, lane & 1) +
                         __reduce_add_sync(0xff, lane);
}

/* The reductions of cuda/warp_reduce.h, and the same shuffle by shuffle. */
template <int LANES> static __device__ void reduce(Global<float> to, float x)
{
    to[threadIdx.x] = warp_max<LANES>(x);
    to[32 + threadIdx.x] = warp_sum<LANES>(x);
}
template <int LANES> static __device__ void reduce_plainly(Global<float> to, float x)
{
    float most = x, sum = x;
    for (int other = LANES / 2; other > 0; other /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL, most, other));
        sum += __shfl_xor_sync(ALL, sum, other);
    }
    to[threadIdx.x] = most;
    to[32 + threadIdx.x] = sum;
}
static __global__ void reductions(Global<float> to, Global<const float> from)
{
    const float x = from[threadIdx.x];
    reduce<2>(to, x);
    reduce<4>(to + 64, x);
    reduce<8>(to + 128, x);
    reduce<16>(to + 192, x);
    reduce<32>(to + 256, x);
}
static __global__ void plain_reductions(Global<float> to, Global<const float> from)
{
    const float x = from[threadIdx.x];
    reduce_plainly<2>(to, x);
    reduce_plainly<4>(to + 64, x);
    reduce_plainly<8>(to + 128, x);
    reduce_plainly<16>(to + 192, x);
    reduce_plainly<32>(to + 256, x);
}

void launch_shuffles(int *to, const int *from)
{
    shuffles<<<1, 32>>>(to, from);
}
void launch_votes(int *to, const int *from)
{
    votes<<<1, 32>>>(to, from);
}
void launch_reductions(float *to, const float *from, bool plain)
{
    if (plain)
        plain_reductions<<<1, 32>>>(to, from);
    else
        reductions<<<1, 32>>>(to, from);
}
