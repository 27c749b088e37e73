/* What a warpgroup does with its 64 queries, 16 a warp, and a tile of keys.
 *
 * Interface: X gives head dimension D and rows of K and V tiles Bc; tiles lie as tma.h leaves
 * them. Products are begun, and committed as a group each: see wgmma.h for what goes before and
 * after.
 *   queries_read<X>(Q, tile)        the warp's rows of the warpgroup's tile, as operands
 *   scores<T, X>(S, Q, K)           S = Qi KjT; Q: descriptor of the warpgroup's 64 rows, or
 *                                   what queries_read() left
 *   add_product<T, X>(O, P, V)      O += P Vj
 *   softmax_tile<X>(factor, S, m, l, a, first, j, c)   S <- P of tile j, masked, m and l with
 *                                   it; if true, O is to be times factor. first: the warp's
 *                                   first query
 *   output_store<T, X>(w, at, first, tile, O, m, l)    O <- O / l, to HBM by way of the warp's
 *                                   part of its warpgroup's tile, which nothing reads any more;
 *                                   LSE
 *   output_wait()                   until that part has been read
 *
 * The tile of a warpgroup's 64 queries, while O leaves: a box of 16 rows for each warp.
 *
 *     | warp 0: 16 rows | warp 1 | warp 2 | warp 3 |        2 * 16 D bytes each
 */
#ifndef FLASHLAB_CUDA_LADDER_WARPGROUP_TILE_H
#define FLASHLAB_CUDA_LADDER_WARPGROUP_TILE_H

#include "cuda/ladder/exp2.h"
#include "cuda/ladder/tile.h"
#include "cuda/ladder/tma.h"
#include "cuda/ladder/warpgroup.h"
#include "cuda/ladder/wgmma.h"

template <class T, class X>
__device__ inline void scores(float (&S)[X::Bc / 8][4], uint64_t Q, uint32_t K)
{
    const uint64_t B = tile_columns(K);
#pragma unroll
    for (int k = 0; k < X::D / 16; k++)
        wgmma<T>(S, Q + columns_step<WARPGROUP_ROWS>(k), B + columns_step<X::Bc>(k), k > 0);
    wgmma_commit();
}

template <class X>
__device__ inline void queries_read(uint32_t (&Q)[X::D / 16][4], uint32_t tile)
{
    constexpr int WARP_BYTES = 16 * 128; /* of 64 columns */
    const uint32_t rows =
        tile + WARP_BYTES * (warp_number() % 4) + lane_offset<64, DOWN_FIRST>();
#pragma unroll
    for (int k = 0; k < X::D / 16; k++)
        ldmatrix(Q[k], box_right<WARPGROUP_ROWS>(rows, k));
}

template <class T, class X>
__device__ inline void scores(float (&S)[X::Bc / 8][4], const uint32_t (&Q)[X::D / 16][4],
                              uint32_t K)
{
    const uint64_t B = tile_columns(K);
#pragma unroll
    for (int k = 0; k < X::D / 16; k++)
        wgmma<T>(S, Q[k], B + columns_step<X::Bc>(k), k > 0);
    wgmma_commit();
}

template <class T, class X>
__device__ inline void add_product(float (&O)[X::D / 8][4], const uint32_t (&P)[X::Bc / 16][4],
                                   uint32_t V)
{
    const uint64_t B = tile_rows<X::Bc>(V);
#pragma unroll
    for (int k = 0; k < X::Bc / 16; k++)
        wgmma<T>(O, P[k], B + rows_step(k));
    wgmma_commit();
}

template <class X>
__device__ inline bool softmax_tile(float (&factor)[2], float (&S)[X::Bc / 8][4], float (&m)[2],
                                    float (&l)[2], const struct attention &a, int first, int j,
                                    float c)
{
    float now[2];
    if (a.scale <= 0)
        scores_sign(S, a.scale);
    if (!sees_all(a, first, (j + 1) * X::Bc)) {
        const int row = first + lane_row();
        const int seen[2] = {visible_keys(a, row) - j * X::Bc,
                             visible_keys(a, row + 8) - j * X::Bc};
        scores_mask(S, seen);
    }
    bool moved = scores_max(now, S, m);
    if (X::SLACK > 0)
        moved = maxima_keep(now, m, X::SLACK / c);
    moved = __any_sync(0xffffffff, moved);
    if (moved)
        softmax_factor(factor, m, l, now, c);
    softmax_exp<X::SOFTWARE>(S, l, m, c);
    return moved;
}

template <class T, class X>
__device__ inline void output_store(const struct tma_work &w, const struct place &at, int first,
                                    char *tile, float (&O)[X::D / 8][4], const float (&m)[2],
                                    const float (&l)[2])
{
    constexpr int WARP_ROWS = 16;
    float lse[1][2];
    char *part = tile + 2 * X::D * WARP_ROWS * (warp_number() % 4);
    softmax_finish(lse[0], O, m, l, exponent_scale(w.work.a.scale));
    tile_stage<boxes<WARP_ROWS>, X::D, T>(part, O);
    tma_fence();
    __syncwarp();
    if (lane_number() == 0) {
        tma_store(&w.O, shared_address(part), first, at.head_q, at.batch);
        tma_store_commit();
    }
    lse_store(w.work, at, first, lse);
}

/* Until the warp's part of the tile has been read, and may be written again. */
__device__ inline void output_wait()
{
    if (lane_number() == 0)
        tma_store_wait();
    __syncwarp();
}

#endif
