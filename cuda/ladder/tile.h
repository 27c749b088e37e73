/* Tiles of 16-bit elements between HBM and shared memory, 16 bytes an access.
 *
 * Interface: a LAYOUT is one of swizzle.h; a tile has ROWS rows of D elements and starts at a
 * multiple of 1024 bytes. Rows past the edge become zeros, and are not read.
 *   tile_load<LAYOUT, ROWS, D, THREADS>(tile, rows)         waits for the data
 *   tile_load_async<LAYOUT, ROWS, D, THREADS>(tile, rows)   cp.async; the caller commits
 *   tile_store<LAYOUT, D>(rows, tile, O)                    a warp, its 16 rows of O
 *   tile_stage<LAYOUT, D, T>(tile, O)                       the same, as far as the tile
 *   lse_store(w, place, first, lse)                         a warp, its rows' LSE
 */
#ifndef FLASHLAB_CUDA_LADDER_TILE_H
#define FLASHLAB_CUDA_LADDER_TILE_H

#include "cuda/ladder/cp_async.h"
#include "cuda/ladder/ldmatrix.h"
#include "cuda/ladder/mma.h"
#include "cuda/ladder/place.h"
#include "cuda/ladder/row_reduction.h"
#include "cuda/ladder/swizzle.h"

enum { CHUNK = 8 }; /* elements of 16 bytes */

template <class LAYOUT, int ROWS, int D, int THREADS, class T>
__device__ inline void tile_load(char *tile, const struct rows<T> &g)
{
    constexpr int CHUNKS = D / CHUNK;
    static_assert(ROWS * CHUNKS % THREADS == 0, "every thread copies as much");
#pragma unroll 4
    for (int i = 0; i < ROWS * CHUNKS / THREADS; i++) {
        const int n = (int)threadIdx.x + i * THREADS, row = n / CHUNKS, chunk = n % CHUNKS;
        uint4 x = {0, 0, 0, 0};
        if (row < g.count)
            x = *(const uint4 *)(g.at + row * g.stride + CHUNK * chunk);
        *(uint4 *)(tile + LAYOUT::at(row, chunk)) = x;
    }
}

template <class LAYOUT, int ROWS, int D, int THREADS, class T>
__device__ inline void tile_load_async(char *tile, const struct rows<T> &g)
{
    constexpr int CHUNKS = D / CHUNK, STEP = THREADS / CHUNKS;
    static_assert(ROWS % STEP == 0, "every thread copies as much");
    const unsigned first = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    const T *from = g.at + first * g.stride + CHUNK * chunk;
    const uint32_t to = shared_address(tile);
#pragma unroll
    for (int i = 0; i < ROWS / STEP; i++) {
        const unsigned row = first + (unsigned)(i * STEP);
        cp_async(to + LAYOUT::at(row, chunk), from, (int)row < g.count);
        from += STEP * g.stride;
    }
}

/* O rounded, into 16 rows of shared memory that are the warp's own. */
template <class LAYOUT, int D, class T>
__device__ inline void tile_stage(char *tile, const float (&O)[D / 8][4])
{
    __syncwarp(); /* all lanes have read what lay there */
    const int first = lane_row(), col = lane_col();
#pragma unroll
    for (int n = 0; n < D / 8; n++)
        for (int half = 0; half < 2; half++)
            *(uint32_t *)(tile + LAYOUT::at(first + 8 * half, n) + 2 * col) =
                pack<T>(O[n][2 * half], O[n][2 * half + 1]);
    __syncwarp();
}

/* Through shared memory: whole rows leave together. */
template <class LAYOUT, int D, class T>
__device__ inline void tile_store(const struct rows<T> &g, char *tile,
                                  const float (&O)[D / 8][4])
{
    constexpr int CHUNKS = D / CHUNK;
    const int lane = lane_number();
    tile_stage<LAYOUT, D, T>(tile, O);
#pragma unroll
    for (int i = 0; i < 16 * CHUNKS / 32; i++) {
        const int row = (lane + 32 * i) / CHUNKS, chunk = (lane + 32 * i) % CHUNKS;
        if (row < g.count)
            *(uint4 *)(g.at + row * g.stride + CHUNK * chunk) =
                *(const uint4 *)(tile + LAYOUT::at(row, chunk));
    }
}

/* The rows from query first on, 16 for each element of lse. */
template <int TILES>
__device__ inline void lse_store(const struct work &w, const struct place &at, int first,
                                 const float (&lse)[TILES][2])
{
    const int lane = lane_number();
    const float mine = row_gather(lse);
    if (lane < 16 * TILES && first + lane < w.a.seqlen_q)
        w.t.LSE[(int64_t)at.plane * w.a.seqlen_q + first + lane] = mine;
}

#endif
