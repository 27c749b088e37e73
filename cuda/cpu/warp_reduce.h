/* cuda/warp_reduce.h on the CPU: the shuffles of a butterfly at one wait, for a wait costs more
 * than all of its sums. The same operations of the same values. */
#ifndef FLASHLAB_CUDA_CPU_WARP_REDUCE_H
#define FLASHLAB_CUDA_CPU_WARP_REDUCE_H

#include <string.h>

#include "cuda/cpu/observed_memory.h"

/* What the lanes' x become when each meets the lane OTHER away, then half as far, ... */
template <class F, int OTHER> static inline void cpu_meet(float (&x)[CPU_WARP])
{
    for (int first = 0; first < CPU_WARP; first += 2 * OTHER) {
        for (int lane = first; lane < first + OTHER; lane++) {
            const float a = x[lane], b = x[lane + OTHER];
            x[lane] = F::of(a, b);
            x[lane + OTHER] = F::of(b, a);
        }
    }
    if constexpr (OTHER > 1)
        cpu_meet<F, OTHER / 2>(x);
}

template <class F, int LANES> static inline void cpu_butterfly(uint64_t passed[CPU_WARP])
{
    float x[CPU_WARP];
    for (int lane = 0; lane < CPU_WARP; lane++)
        memcpy(&x[lane], &passed[lane], sizeof *x);
    cpu_meet<F, LANES / 2>(x);
    for (int lane = 0; lane < CPU_WARP; lane++)
        memcpy(&passed[lane], &x[lane], sizeof *x);
}

template <class F, int LANES> static inline float cpu_reduced(float x, CPU_HERE)
{
    static_assert(LANES > 1 && LANES <= CPU_WARP && (LANES & (LANES - 1)) == 0,
                  "LANES is a power of two");
    static const struct cpu_reduction reduction = {cpu_butterfly<F, LANES>,
                                                   __builtin_ctz(LANES)};
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    cpu_exchange_reduced(&reduction, bits, file, line);
    memcpy(&x, &cpu_now.passed[cpu_now.lane], sizeof x);
    return x;
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

template <int LANES> static inline float warp_max(float x, CPU_HERE)
{
    return cpu_reduced<cpu_maximum, LANES>(x, file, line);
}
template <int LANES> static inline float warp_sum(float x, CPU_HERE)
{
    return cpu_reduced<cpu_sum, LANES>(x, file, line);
}

#endif
