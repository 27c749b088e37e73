/* mbarrier: a barrier in shared memory that counts arrivals of threads and bytes of the copy
 * engine.
 *
 * Interface: a barrier is 8 bytes of shared memory, named by its address.
 *   mbarrier_init(barrier, count)      one thread; count arrivals complete a phase
 *   mbarrier_init_done()               the same thread, then a __syncthreads() of all
 *   mbarrier_arrive(barrier)           one arrival
 *   mbarrier_expect(barrier, bytes)    one arrival; the phase waits for the bytes too
 *   mbarrier_wait(barrier, parity)     until the phase of that parity is complete
 *   mbarrier_passed(barrier, parity)   true if it is, perhaps after a while
 *
 * Phases are numbered from 0 and the parity of phase n is n % 2. A wait for parity 1 on a fresh
 * barrier returns at once: as if a phase before the first were complete.
 *
 *     phase 0 ... complete | phase 1 ... complete | phase 2 ...
 *     wait(0) blocks        wait(0) passes          wait(0) blocks
 *     wait(1) passes        wait(1) blocks          wait(1) passes
 *
 * Source: PTX ISA, "Parallel Synchronization and Communication Instructions": "mbarrier.init",
 * "mbarrier.arrive" (with .expect_tx), "mbarrier.try_wait"; "membar/fence" (mbarrier_init).
 */
#ifndef FLASHLAB_CUDA_LADDER_MBARRIER_H
#define FLASHLAB_CUDA_LADDER_MBARRIER_H

#include <stdint.h>

__device__ inline void mbarrier_init(uint32_t barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count)
                 : "memory");
}

/* The copy engine sees the barriers too. */
__device__ inline void mbarrier_init_done()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void mbarrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

__device__ inline void mbarrier_expect(uint32_t barrier, int bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
        "r"(bytes)
        : "memory");
}

__device__ inline bool mbarrier_passed(uint32_t barrier, uint32_t parity)
{
    uint32_t passed;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(passed)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return passed != 0;
}

__device__ inline void mbarrier_wait(uint32_t barrier, uint32_t parity)
{
    while (!mbarrier_passed(barrier, parity)) {
    }
}

#endif
