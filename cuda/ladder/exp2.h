/* The online softmax in powers of two, with the scale folded into the exponent: see mma.h for
 * where a lane's scores lie.
 *
 *   exp(scale s - scale m) = 2^(c s - c m),  c = scale log2(e)
 *
 * is one fused multiply-add and one ex2 a score. The maximum is that of the scores as the
 * product leaves them, so c must not be negative: the sign of an unusual scale goes into S.
 *
 * Interface: of a tile of 16 queries, of which a lane has the rows g and g + 8.
 *   exponent_scale(scale)                      c
 *   scores_sign(S, scale)                      S <- S times the sign of the scale, 1, 0 or -1
 *   scores_mask(S, seen)                       -inf for the keys that a query does not see
 *   scores_max(now, S, m)                      now <- new maxima; true if one is not m
 *   softmax_rescale(O, m, l, now, c)           m <- now, O and l rescaled
 *   softmax_factor(factor, m, l, now, c)       m <- now, l rescaled; what O is to be times
 *   rows_scale(O, factor)                      O <- O factor
 *   maxima_keep(now, m, slack)                 now <- m where it exceeds m by slack at most
 *   softmax_exp<SOFTWARE>(S, l, m, c)          S <- P, l += its sum
 *   scores_pack(A, S)                          P rounded, as operands of mma
 *   softmax_slice(A, l, left, right, m, c)     P of 16 keys as an operand of mma, l += its sum
 *   softmax_finish(lse, O, m, l, c)            O <- O / l
 */
#ifndef FLASHLAB_CUDA_LADDER_EXP2_H
#define FLASHLAB_CUDA_LADDER_EXP2_H

#include "cuda/ladder/lane.h"
#include "cuda/ladder/mma.h"
#include "cuda/ladder/row_reduction.h"

/* Any c will do for a scale of 0: S becomes 0. */
__device__ inline float exponent_scale(float scale)
{
    return scale == 0 ? 1.0f : fabsf(scale) * 1.44269504f;
}

/* PTX ISA, "Floating Point Instructions: ex2": relative error at most 2^-22; 16 a clock an SM.
 */
__device__ inline float exp2_of(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The same without ex2, on the pipes of the multiply-adds: 2^x = 2^i 2^f, i the integer nearest
 * to x and so |f| <= 1/2. Adding 1.5 * 2^23 leaves i in the low bits of the sum, from where it
 * goes into the exponent; 2^f by the polynomial of degree 5 that is 1 at 0 and best for the
 * relative error (fitted for this: 9.1e-8, with fp32's roundings 1.7e-7). For x < 128; below
 * -127 it gives 0, as a score of -inf needs. */
__device__ inline float exp2_software(float x)
{
    constexpr float SHIFT = 12582912.0f;
    x = fmaxf(x, -127.0f);
    const float shifted = x + SHIFT, f = x - (shifted - SHIFT);
    float y = 1.3264727e-3f;
    y = fmaf(y, f, 9.671513e-3f);
    y = fmaf(y, f, 5.5507336e-2f);
    y = fmaf(y, f, 2.4022242e-1f);
    y = fmaf(y, f, 6.93147e-1f);
    y = fmaf(y, f, 1.0f);
    return __int_as_float(__float_as_int(y) + (__float_as_int(shifted) << 23));
}

/* c m, or 0 for a row that has seen no key yet: (-inf) - (-inf) must not happen. */
__device__ inline float exponent_base(float m, float c)
{
    return m == -INFINITY ? 0.0f : c * m;
}

template <int N> __device__ inline void scores_sign(float (&S)[N][4], float scale)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            S[n][e] = scale < 0 ? -S[n][e] : scale > 0 ? S[n][e] : 0 * S[n][e];
}

/* The lane's rows g and g + 8 see the first seen[0] and seen[1] keys of the tile. */
template <int N> __device__ inline void scores_mask(float (&S)[N][4], const int (&seen)[2])
{
    const int t2 = lane_col();
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            if (8 * n + t2 + e % 2 >= seen[e / 2])
                S[n][e] = -INFINITY;
}

template <int N>
__device__ inline bool scores_max(float (&now)[2], const float (&S)[N][4], const float (&m)[2])
{
    bool moved = false;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = fmaxf(S[0][2 * half], S[0][2 * half + 1]);
        for (int n = 1; n < N; n++)
            most = fmaxf(most, fmaxf(S[n][2 * half], S[n][2 * half + 1]));
        now[half] = fmaxf(m[half], row_max(most));
        moved = moved || now[half] > m[half];
    }
    return moved;
}

__device__ inline void softmax_factor(float (&factor)[2], float (&m)[2], float (&l)[2],
                                      const float (&now)[2], float c)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        factor[half] = exp2_of(c * m[half] - exponent_base(now[half], c));
        m[half] = now[half];
        l[half] *= factor[half];
    }
}

template <int N> __device__ inline void rows_scale(float (&O)[N][4], const float (&factor)[2])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            O[n][e] *= factor[e / 2];
}

template <int N>
__device__ inline void softmax_rescale(float (&O)[N][4], float (&m)[2], float (&l)[2],
                                       const float (&now)[2], float c)
{
    float factor[2];
    softmax_factor(factor, m, l, now, c);
    rows_scale(O, factor);
}

/* SOFTWARE of every 16 by exp2_software(). */
template <int SOFTWARE, int N>
__device__ inline void softmax_exp(float (&S)[N][4], float (&l)[2], const float (&m)[2],
                                   float c)
{
    const float base[2] = {exponent_base(m[0], c), exponent_base(m[1], c)};
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++) {
            const float x = c * S[n][e] - base[e / 2];
            const int i = 4 * n + e;
            const bool software = (i + 1) * SOFTWARE / 16 > i * SOFTWARE / 16;
            S[n][e] = software ? exp2_software(x) : exp2_of(x);
            l[e / 2] += S[n][e];
        }
}

/* Takes back new maxima that exceed those of m by no more than slack; true if any is left. */
__device__ inline bool maxima_keep(float (&now)[2], const float (&m)[2], float slack)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
        now[half] = now[half] > m[half] + slack ? now[half] : m[half];
    return now[0] > m[0] || now[1] > m[1];
}

template <class T, int N>
__device__ inline void scores_pack(uint32_t (&A)[N / 2][4], const float (&S)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int half = 0; half < 2; half++)
            A[n / 2][n % 2 * 2 + half] = pack<T>(S[n][2 * half], S[n][2 * half + 1]);
}

/* left and right: the scores of keys 0-7 and 8-15. */
template <class T>
__device__ inline void softmax_slice(uint32_t (&A)[4], float (&l)[2], const float (&left)[4],
                                     const float (&right)[4], const float (&m)[2], float c)
{
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const float(&S)[4] = r < 2 ? left : right;
        const int half = r % 2;
        const float base = exponent_base(m[half], c);
        const float x = exp2_of(c * S[2 * half] - base),
                    y = exp2_of(c * S[2 * half + 1] - base);
        l[half] += x + y;
        A[r] = pack<T>(x, y);
    }
}

/* A row without keys: l = 0, O stays 0 and the LSE is -inf. */
template <int N>
__device__ inline void softmax_finish(float (&lse)[2], float (&O)[N][4], const float (&m)[2],
                                      const float (&l)[2], float c)
{
    constexpr float LN_2 = 0.693147181f;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = row_sum(l[half]), inverse = sum == 0 ? 0.0f : 1 / sum;
        lse[half] = sum == 0 ? -INFINITY : LN_2 * exponent_base(m[half], c) + logf(sum);
        for (int n = 0; n < N; n++) {
            O[n][2 * half] *= inverse;
            O[n][2 * half + 1] *= inverse;
        }
    }
}

#endif
