/* cuda/warp_reduce.h on the CPU: the shuffles of a butterfly at one wait, for a wait costs more
 * than all of its sums. The same operations on the same values. */
#ifndef FLASHLAB_CUDA_CPU_WARP_REDUCE_H
#define FLASHLAB_CUDA_CPU_WARP_REDUCE_H

#include "cuda/cpu/observed_memory.h"
#include "cuda/cpu/wait.h"

/* The first of LANES lanes meets the one OTHER away, then half as far, ...; those up to OTHER
 * do so too. Every other lane would come to the same, but for the sign of a maximum of zeros.
 */
template <class F, int OTHER> static inline void cpu_fold(float *x)
{
    for (int lane = 0; lane < OTHER; lane++)
        x[lane] = F::of(x[lane], x[lane + OTHER]);
    if constexpr (OTHER > 1)
        cpu_fold<F, OTHER / 2>(x);
}
template <class F, int LANES> static inline void cpu_combine(float *x)
{
    for (int first = 0; first < CPU_WARP; first += LANES) {
        cpu_fold<F, LANES / 2>(x + first);
        const float all = x[first];
        for (int lane = first; lane < first + LANES; lane++)
            x[lane] = all;
    }
}

template <class F, int LANES> CPU_INLINE float cpu_reduced(float x, const char *file, int line)
{
    static_assert(LANES > 1 && LANES <= CPU_WARP && (LANES & (LANES - 1)) == 0,
                  "LANES is a power of two");
    constexpr unsigned shuffles = __builtin_ctz(LANES), most = __builtin_ctz(CPU_WARP);
    static const struct cpu_butterfly butterfly = {cpu_combine<F, LANES>, shuffles,
                                                   F::NUMBER * most + shuffles};
    cpu_now.met[cpu_now.lane] = x;
    cpu_meet(&butterfly, file, line);
    return cpu_now.met[cpu_now.lane];
}

struct cpu_maximum {
    enum { NUMBER = 0 };
    static inline float of(float a, float b)
    {
        const float greater = a > b ? a : b;
        return b != b ? a : greater; /* fmaxf(), without a call */
    }
};
struct cpu_sum {
    enum { NUMBER = 1 };
    static inline float of(float a, float b)
    {
        return a + b;
    }
};

template <int LANES> CPU_INLINE float warp_max(float x, CPU_HERE)
{
    return cpu_reduced<cpu_maximum, LANES>(x, file, line);
}
template <int LANES> CPU_INLINE float warp_sum(float x, CPU_HERE)
{
    return cpu_reduced<cpu_sum, LANES>(x, file, line);
}

#endif
