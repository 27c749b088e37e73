/* Where a thread is.
 *
 * Interface:
 *   lane_number()             0 to 31
 *   lane_row(), lane_col()    g and 2t of mma.h: a lane's first row and column in a product
 *   warp_number()             from 0
 */
#ifndef FLASHLAB_CUDA_LADDER_LANE_H
#define FLASHLAB_CUDA_LADDER_LANE_H

/* Read anew wherever it is needed: a register that lives through a kernel's loop costs more. */
__device__ inline int lane_number()
{
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

__device__ inline int lane_row()
{
    return lane_number() / 4;
}
__device__ inline int lane_col()
{
    return lane_number() % 4 * 2;
}

/* Of the block. */
__device__ inline int warp_number()
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread / 32;
}

#endif
