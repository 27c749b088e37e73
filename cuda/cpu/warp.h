/* The functions of CUDA by which the lanes of a warp wait for each other and exchange values.
 */
#ifndef FLASHLAB_CUDA_CPU_WARP_H
#define FLASHLAB_CUDA_CPU_WARP_H

#include <string.h>

#include "cuda/cpu/observed_memory.h"
#include "cuda/cpu/wait.h"

CPU_INLINE void __syncthreads(CPU_HERE)
{
    cpu_sync_block(file, line);
}
CPU_INLINE void __syncwarp(unsigned mask = 0xffffffff, CPU_HERE)
{
    cpu_sync_warp(mask, file, line);
}

/* What the lane has passed, as the running one sees it. */
static inline uint64_t cpu_passed(int lane, const char *file, int line)
{
    if (!(cpu_now.passed_mask[cpu_now.lane] >> lane & 1))
        cpu_stop(file, line, "takes a value from lane %d of its warp, which passes none", lane);
    return cpu_now.passed[lane];
}

/* The lane's value goes to all others of the mask; what comes back is that of lane from, or its
 * own where that lies outside its part of the warp, lanes width wide. */
template <class T>
CPU_INLINE T cpu_shuffle(unsigned mask, T value, int from, bool outside, const char *file,
                         int line)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes pass in a shuffle");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    cpu_exchange(mask, bits, file, line);
    if (!outside) {
        bits = cpu_passed(from, file, line);
        memcpy(&value, &bits, sizeof value);
    }
    return value;
}
static inline int cpu_part(int width)
{
    return cpu_now.lane / width * width;
}
template <class T>
CPU_INLINE cpu_value<T> __shfl_sync(unsigned mask, T value, int from, int width = CPU_WARP,
                                    CPU_HERE)
{
    return cpu_shuffle<cpu_value<T>>(mask, value, cpu_part(width) + (from & (width - 1)), false,
                                     file, line);
}
template <class T>
CPU_INLINE cpu_value<T> __shfl_xor_sync(unsigned mask, T value, int other, int width = CPU_WARP,
                                        CPU_HERE)
{
    const int from = cpu_now.lane ^ other;
    return cpu_shuffle<cpu_value<T>>(mask, value, from, from >= cpu_part(width) + width, file,
                                     line);
}
template <class T>
CPU_INLINE cpu_value<T> __shfl_up_sync(unsigned mask, T value, unsigned by,
                                       int width = CPU_WARP, CPU_HERE)
{
    const int from = cpu_now.lane - (int)by;
    return cpu_shuffle<cpu_value<T>>(mask, value, from, from < cpu_part(width), file, line);
}
template <class T>
CPU_INLINE cpu_value<T> __shfl_down_sync(unsigned mask, T value, unsigned by,
                                         int width = CPU_WARP, CPU_HERE)
{
    const int from = cpu_now.lane + (int)by;
    return cpu_shuffle<cpu_value<T>>(mask, value, from, from >= cpu_part(width) + width, file,
                                     line);
}

CPU_INLINE unsigned __ballot_sync(unsigned mask, int predicate, CPU_HERE)
{
    unsigned votes = 0;
    cpu_exchange(mask, predicate != 0, file, line);
    for (int lane = 0; lane < CPU_WARP; lane++)
        if (mask >> lane & 1 && cpu_passed(lane, file, line))
            votes |= 1u << lane;
    return votes;
}
CPU_INLINE int __any_sync(unsigned mask, int predicate, CPU_HERE)
{
    return __ballot_sync(mask, predicate, file, line) != 0;
}
CPU_INLINE int __all_sync(unsigned mask, int predicate, CPU_HERE)
{
    return __ballot_sync(mask, predicate, file, line) == mask;
}

/* Over the lanes of the mask. */
template <class T, class F>
CPU_INLINE T cpu_reduce(unsigned mask, T value, F combine, const char *file, int line)
{
    static_assert(sizeof(T) == 4, "reductions of a warp are of 32-bit integers");
    T result = value;
    cpu_exchange(mask, (uint64_t)(uint32_t)value, file, line);
    for (int lane = 0; lane < CPU_WARP; lane++)
        if (mask >> lane & 1 && lane != cpu_now.lane)
            result = combine(result, (T)(uint32_t)cpu_passed(lane, file, line));
    return result;
}
template <class T> CPU_INLINE cpu_value<T> __reduce_add_sync(unsigned mask, T value, CPU_HERE)
{
    return cpu_reduce<cpu_value<T>>(
        mask, value, [](auto a, auto b) { return (decltype(a))(a + b); }, file, line);
}
template <class T> CPU_INLINE cpu_value<T> __reduce_min_sync(unsigned mask, T value, CPU_HERE)
{
    return cpu_reduce<cpu_value<T>>(
        mask, value, [](auto a, auto b) { return b < a ? b : a; }, file, line);
}
template <class T> CPU_INLINE cpu_value<T> __reduce_max_sync(unsigned mask, T value, CPU_HERE)
{
    return cpu_reduce<cpu_value<T>>(
        mask, value, [](auto a, auto b) { return b > a ? b : a; }, file, line);
}

#endif
