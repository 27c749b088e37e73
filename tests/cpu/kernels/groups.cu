/* Lanes that do what they are told with those of their group: they wait for each other, exchange
 * values, leave steps out, end early. */
#include "cuda/memory.h"
#include "cuda/warp_reduce.h"
#include "tests/cpu/kernels/own.h"

static __global__ void follow_groups(const struct group_script *script, Global<unsigned> x)
{
    const int thread = (int)threadIdx.x;
    unsigned v = (unsigned)thread + 1;
    for (int step = 0; step < script->ends[thread]; step++) {
        const unsigned mask = script->mask[step][thread];
        const int from = script->from[step][thread];
        if (mask == 0)
            continue;
        switch (script->step[step]) {
        case GROUP_BLOCK_BARRIER:
            __syncthreads();
            break;
        case GROUP_WARP_BARRIER:
            __syncwarp(mask);
            break;
        case GROUP_SHUFFLE:
            v = 3 * v + __shfl_sync(mask, v, from);
            break;
        case GROUP_TWO_SHUFFLES: /* groups on two lines at once */
            if (script->second[step][thread])
                v = 5 * v + __shfl_sync(mask, v, from);
            else
                v = 7 * v + __shfl_sync(mask, v, from);
            break;
        case GROUP_BALLOT:
            v ^= __ballot_sync(mask, (int)(v & 1));
            break;
        case GROUP_SUM:
            v += (unsigned)warp_sum<32>((float)(v % 1024));
        }
    }
    x[blockIdx.x * GROUP_THREADS + threadIdx.x] = v;
}

void launch_groups(const struct group_script *script, unsigned *x, int threads)
{
    follow_groups<<<GROUP_BLOCKS, (unsigned)threads>>>(script, x);
}
