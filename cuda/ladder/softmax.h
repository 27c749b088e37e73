/* The online softmax on the scores of a warp's 16 queries, as the first steps do it: see mma.h
 * for where a lane's scores lie.
 *
 * Interface:
 *   scores_finish(S, scale, seen)   S <- scale S, -inf for the keys that a query does not see
 *   softmax_update(S, O, m, l)      S <- exp(S - m), O and l rescaled
 *   softmax_end(lse, O, m, l)       O <- O / l
 */
#ifndef FLASHLAB_CUDA_LADDER_SOFTMAX_H
#define FLASHLAB_CUDA_LADDER_SOFTMAX_H

#include "cuda/ladder/lane.h"
#include "cuda/ladder/mma.h"
#include "cuda/ladder/row_reduction.h"

/* The lane's rows g and g + 8 see the first seen[0] and seen[1] keys of the tile. */
template <int N>
__device__ inline void scores_finish(float (&S)[N][4], float scale, const int (&seen)[2])
{
    const int t2 = lane_col();
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            S[n][e] = 8 * n + t2 + e % 2 < seen[e / 2] ? scale * S[n][e] : -INFINITY;
}

/* l is the sum over the lane's own scores only. */
template <int N, int ON>
__device__ inline void softmax_update(float (&S)[N][4], float (&O)[ON][4], float (&m)[2],
                                      float (&l)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int e0 = 2 * half, e1 = e0 + 1;
        float now = m[half];
        for (int n = 0; n < N; n++)
            now = fmaxf(now, fmaxf(S[n][e0], S[n][e1]));
        now = row_max(now);
        /* A row that has seen no key yet: (-inf) - (-inf) must not happen. */
        const float base = now == -INFINITY ? 0.0f : now, c = expf(m[half] - base);
        m[half] = now;
        l[half] *= c;
        for (int n = 0; n < ON; n++) {
            O[n][e0] *= c;
            O[n][e1] *= c;
        }
        for (int n = 0; n < N; n++) {
            S[n][e0] = expf(S[n][e0] - base);
            S[n][e1] = expf(S[n][e1] - base);
            l[half] += S[n][e0] + S[n][e1];
        }
    }
}

/* A row without keys: l = 0, O stays 0 and the LSE is -inf. */
template <int ON>
__device__ inline void softmax_end(float (&lse)[2], float (&O)[ON][4], const float (&m)[2],
                                   const float (&l)[2])
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = row_sum(l[half]), inverse = sum == 0 ? 0.0f : 1 / sum;
        lse[half] = sum == 0 ? -INFINITY : m[half] + logf(sum);
        for (int n = 0; n < ON; n++) {
            O[n][2 * half] *= inverse;
            O[n][2 * half + 1] *= inverse;
        }
    }
}

#endif
