/* Waits of lanes and threads for others that never come. A comment names the line where it is
 * noticed, and where the other is. */
#include "cuda/memory.h"
#include "cuda/warp_reduce.h"
#include "tests/cpu/kernels/own.h"

#define T ((int)threadIdx.x)

static __global__ void ended_lane(Global<float> x)
{
    if (T == 5)
        return;
    x[T] = __shfl_sync(0xffffffff, x[T], 0); /* one has ended */
}
static __global__ void not_in_mask(Global<float> x)
{
    if (T < 16)
        x[T] = __shfl_sync(0xffff, x[T], 20); /* takes from another */
}
static __global__ void not_itself_in_mask(Global<float> x)
{
    x[T] = __shfl_sync(0xffff, x[T], 0); /* with the mask of others */
}
static __global__ void empty_mask(Global<float> x)
{
    __syncwarp(0); /* for nobody */
    x[T] = 0.0f;
}
static __global__ void no_such_lane(Global<float> x)
{
    x[T] = __shfl_sync(0xffffffff, x[T], 0); /* half a warp */
}
static __global__ void two_masks(Global<float> x)
{
    if (T % 32 < 16)
        x[T] = __shfl_sync(0xffffffff, x[T], 0); /* all */
    else
        x[T] = __shfl_sync(0xffff0000, x[T], 16); /* the upper half */
}
static __global__ void two_kinds_of_wait(Global<float> x)
{
    if (T % 32 < 16)
        x[T] = __shfl_sync(0xffffffff, x[T], 0); /* a shuffle */
    else
        __syncwarp(); /* a barrier of the warp */
}
static __global__ void two_reductions(Global<float> x)
{
    if (T % 32 < 16)
        x[T] = warp_sum<32>(x[T]); /* a sum */
    else
        x[T] = warp_max<32>(x[T]); /* a maximum */
}
static __global__ void ended_in_reduction(Global<float> x)
{
    if (T == 63)
        return;
    x[T] = warp_sum<8>(x[T]); /* the last has ended */
}
static __global__ void warp_and_block(Global<float> x)
{
    if (T % 32 == 7)
        __syncthreads();                        /* for the block */
    x[T] = (float)__ballot_sync(0xffffffff, 1); /* for the warp */
}
static __global__ void ended_thread(Global<float> x)
{
    if (T == 40)
        return;
    __syncthreads(); /* one of the block has ended */
    x[T] = 0.0f;
}
static __global__ void two_barriers(Global<float> x)
{
    if (T < 32)
        __syncthreads(); /* of warp 0 */
    else
        __syncthreads(); /* of warp 1 */
    x[T] = 0.0f;
}

/* By enum wait. */
static void (*const kernels[WAITS])(Global<float>) = {
    ended_lane,         not_in_mask,    not_itself_in_mask, empty_mask,
    no_such_lane,       two_masks,      two_kinds_of_wait,  two_reductions,
    ended_in_reduction, warp_and_block, ended_thread,       two_barriers};

void launch_wait(enum wait wait, float *x)
{
    void (*const kernel)(Global<float>) = kernels[wait];
    kernel<<<1, wait == NO_SUCH_LANE ? 16 : 64>>>(x);
}
