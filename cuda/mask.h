/* Which scores of a tile count: those of keys that the query sees. */
#ifndef FLASHLAB_CUDA_MASK_H
#define FLASHLAB_CUDA_MASK_H

#include "cuda/problem.h"
#include "cuda/tile.h"

/* S <- scale * S, -inf where the key lies past the edge or the mask hides it, and in rows past
 * the edge. The tile's first element is the score of query row0 and key col0; the tile has
 * rows x cols elements inside the edges. */
template <int R, int C>
__device__ inline void tile_scale_and_mask(float (&S)[R][C], const struct attention &a,
                                           float scale, int row0, int col0, int rows, int cols)
{
    for (int r = 0; r < R; r++) {
        const int row = thread_row() + r * ROW_THREADS;
        const int seen = row < rows ? min(cols, visible_keys(a, row0 + row) - col0) : 0;
        for (int c = 0; c < C; c++)
            S[r][c] = thread_col() + c * COL_THREADS < seen ? scale * S[r][c] : -INFINITY;
    }
}

#endif
