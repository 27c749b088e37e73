/* Warpgroups: four neighbouring warps, the threads of one wgmma.
 *
 * Interface:
 *   warpgroup_number()               of the block, from 0
 *   warpgroup_registers_less<n>()    all warps of a warpgroup: n registers a thread from here
 *   warpgroup_registers_more<n>()    on, a multiple of 8; more waits until there are some
 *   named_barrier_sync(id, threads)      waits for so many threads, itself among them
 *   named_barrier_arrive(id, threads)    is counted, and goes on
 *
 * Barrier 0 is that of __syncthreads().
 *
 * Source: PTX ISA, "Miscellaneous Instructions: setmaxnreg", "Parallel Synchronization and
 * Communication Instructions: bar". A kernel's threads start with equally many registers, of
 * 65536 an SM; a warpgroup that only tells the copy engine what to load needs few.
 */
#ifndef FLASHLAB_CUDA_LADDER_WARPGROUP_H
#define FLASHLAB_CUDA_LADDER_WARPGROUP_H

enum { WARPGROUP_THREADS = 128, WARPGROUP_ROWS = 64 };

/* The same in all lanes, and the compiler knows. */
__device__ inline int warpgroup_number()
{
    return __shfl_sync(0xffffffff, (int)threadIdx.x / WARPGROUP_THREADS, 0);
}

template <int n> __device__ inline void warpgroup_registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}

template <int n> __device__ inline void warpgroup_registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n));
}

__device__ inline void named_barrier_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

#endif
