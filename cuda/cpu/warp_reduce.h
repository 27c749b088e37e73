/* cuda/warp_reduce.h on the CPU: the shuffles of a butterfly at one wait, for a wait costs more
 * than all of its sums. The same operations on the same values. */
#ifndef FLASHLAB_CUDA_CPU_WARP_REDUCE_H
#define FLASHLAB_CUDA_CPU_WARP_REDUCE_H

#include "cuda/cpu/observed_memory.h"
#include "cuda/cpu/wait.h"

/* What the lanes' x become when each meets the lane OTHER away, then half as far, ... */
template <class F, int OTHER> static inline void cpu_combine(float *x)
{
    for (int first = 0; first < CPU_WARP; first += 2 * OTHER) {
        for (int lane = first; lane < first + OTHER; lane++) {
            const float a = x[lane], b = x[lane + OTHER];
            x[lane] = F::of(a, b);
            x[lane + OTHER] = F::of(b, a);
        }
    }
    if constexpr (OTHER > 1)
        cpu_combine<F, OTHER / 2>(x);
}

template <class F, int LANES> CPU_INLINE float cpu_reduced(float x, const char *file, int line)
{
    static_assert(LANES > 1 && LANES <= CPU_WARP && (LANES & (LANES - 1)) == 0,
                  "LANES is a power of two");
    static const struct cpu_butterfly butterfly = {cpu_combine<F, LANES / 2>,
                                                   __builtin_ctz(LANES)};
    cpu_now.met[cpu_now.lane] = x;
    cpu_meet(&butterfly, file, line);
    return cpu_now.met[cpu_now.lane];
}

struct cpu_maximum {
    static inline float of(float a, float b)
    {
        return a > b || b != b ? a : b; /* fmaxf(), without a call */
    }
};
struct cpu_sum {
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
