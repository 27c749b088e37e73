/* cp.async: copies from global to shared memory that run while the thread goes on.
 *
 * Interface:
 *   cp_async(address, global, valid)   16 bytes; zeros, and nothing is read, unless valid
 *   cp_async_commit()                  what was begun since the last commit becomes a group
 *   cp_async_wait<n>()                 waits until at most the n newest groups are under way
 * A barrier must follow before other threads read what the group has brought.
 *
 * Source: PTX ISA, "Data Movement and Conversion Instructions: cp.async" (.cg: the 16 bytes
 * pass L1 by), "cp.async.commit_group", "cp.async.wait_group".
 */
#ifndef FLASHLAB_CUDA_LADDER_CP_ASYNC_H
#define FLASHLAB_CUDA_LADDER_CP_ASYNC_H

#include <stdint.h>

__device__ inline void cp_async(uint32_t address, const void *global, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(address), "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
}

__device__ inline void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int groups> __device__ inline void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

#endif
