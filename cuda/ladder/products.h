/* The two products of a warp's 16 queries, from swizzled tiles by ldmatrix: the idea of
 * step 02.
 *
 * Interface: addresses are the tiles' + lane_offset(), RIGHT_FIRST for K, DOWN_FIRST for
 * Q and V; see swizzle.h.
 *   scores<T, D>(S, Q, K)         S = Qi KjT, keys: 8 an element of S
 *   add_product<T, D>(O, P, V)    O += P Vj, P what the scores have become
 */
#ifndef FLASHLAB_CUDA_LADDER_PRODUCTS_H
#define FLASHLAB_CUDA_LADDER_PRODUCTS_H

#include "cuda/ladder/ldmatrix.h"
#include "cuda/ladder/mma.h"

template <class T, int D, int N>
__device__ inline void scores(float (&S)[N][4], uint32_t Q, uint32_t K)
{
#pragma unroll
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            S[n][e] = 0;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        uint32_t A[4], B[4];
        ldmatrix(A, Q ^ 32 * k);
        for (int n = 0; n < N / 2; n++) {
            ldmatrix(B, (K ^ 32 * k) + 2 * D * 16 * n);
            mma<T>(S[2 * n], A, B[0], B[1]);
            mma<T>(S[2 * n + 1], A, B[2], B[3]);
        }
    }
}

template <class T, int D, int N>
__device__ inline void add_product(float (&O)[D / 8][4], const float (&P)[N][4], uint32_t V)
{
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        const float(&left)[4] = P[2 * k], (&right)[4] = P[2 * k + 1];
        const uint32_t A[4] = {pack<T>(left[0], left[1]), pack<T>(left[2], left[3]),
                               pack<T>(right[0], right[1]), pack<T>(right[2], right[3])};
        for (int n = 0; n < D / 16; n++) {
            uint32_t B[4];
            ldmatrix_transposed(B, (V ^ 32 * n) + 2 * D * 16 * k);
            mma<T>(O[2 * n], A, B[0], B[1]);
            mma<T>(O[2 * n + 1], A, B[2], B[3]);
        }
    }
}

#endif
