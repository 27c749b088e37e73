/* Waits of the running thread for others: inline, for they are what a thread that makes few
 * accesses takes most time for. */
#ifndef FLASHLAB_CUDA_CPU_WAIT_H
#define FLASHLAB_CUDA_CPU_WAIT_H

#include "cuda/cpu/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first lane to wait for this, or one of few that run. Returns its fiber; cpu_now.running
 * is the one that goes on. */
struct cpu_fiber *cpu_wait_slowly(uint32_t what, unsigned mask,
                                  const struct cpu_butterfly *butterfly, const char *file);

/* Is that what the lane before waits for? Compares what a kind of wait has. */
CPU_INLINE bool cpu_waits_alike(enum cpu_wait wait, uint32_t what, unsigned mask,
                                const char *file)
{
    const struct cpu_waiting *before = &cpu_now.waiting;
    const bool waits_for_mask = wait == CPU_AT_EXCHANGE || wait == CPU_AT_WARP_BARRIER;
    return CPU_LIKELY(before->what == what) &&
           (wait == CPU_DONE || CPU_LIKELY(before->file == file)) &&
           (!waits_for_mask || CPU_LIKELY(before->mask == mask));
}

/* The next lane goes on at once; after the last one it is the scheduler. */
CPU_INLINE void cpu_wait_for(enum cpu_wait wait, unsigned mask,
                             const struct cpu_butterfly *butterfly, const char *file, int line)
{
    const uint32_t what = cpu_what(wait, butterfly ? butterfly->number : 0, line);
    struct cpu_fiber *fiber, *next;
    if (cpu_waits_alike(wait, what, mask, file)) {
        fiber = cpu_now.running;
        next = fiber + 1;
        cpu_now.lane++;
        cpu_now.running = next;
        __builtin_prefetch(cpu_stack_top(&next[1].stack)); /* others have been used since */
    } else {
        fiber = cpu_wait_slowly(what, mask, butterfly, file);
        next = cpu_now.running;
    }
    cpu_stack_switch(&fiber->stack, &next->stack);
}

CPU_INLINE void cpu_end_thread(void)
{
    cpu_wait_for(CPU_DONE, 0, NULL, NULL, 0);
}

/* __syncthreads() and __syncwarp(). */
CPU_INLINE void cpu_sync_block(const char *file, int line)
{
    cpu_wait_for(CPU_AT_BARRIER, 0, NULL, file, line);
}
CPU_INLINE void cpu_sync_warp(unsigned mask, const char *file, int line)
{
    cpu_wait_for(CPU_AT_WARP_BARRIER, mask, NULL, file, line);
}

/* Shuffles, votes and reductions: every lane of the mask passes its bits; then each may see
 * what the others passed, until it passes something again. */
CPU_INLINE void cpu_exchange(unsigned mask, uint64_t bits, const char *file, int line)
{
    cpu_now.passing[cpu_now.lane] = bits;
    cpu_wait_for(CPU_AT_EXCHANGE, mask, NULL, file, line);
}

/* Each lane leaves its value in cpu_now.met[] and finds there what it has after the last
 * shuffle; all come with the same butterfly. */
CPU_INLINE void cpu_meet(const struct cpu_butterfly *butterfly, const char *file, int line)
{
    cpu_wait_for(CPU_AT_BUTTERFLY, 0xffffffff, butterfly, file, line);
}

#ifdef __cplusplus
}
#endif

#endif
