/* Each block transposes a tile of 32 x 32: its warps write rows of the tile into shared memory
 * and read columns, so that they load and store whole sectors of HBM. Rows meet no conflicts.
 * The elements of a column lie in one bank (plain), or in 32 (padded, swizzled).
 */
#include "cuda/lessons/transpose.h"

#include "cuda/launch.h"
#include "cuda/memory.h"

enum { TILE = TRANSPOSE_TILE };

template <int LAYOUT> __device__ inline int place(int row, int col)
{
    return row * (LAYOUT == TRANSPOSE_PADDED ? TILE + 1 : TILE) +
           (LAYOUT == TRANSPOSE_SWIZZLED ? col ^ row : col);
}

template <int LAYOUT>
static __global__ __launch_bounds__(TILE *TILE) void transpose_tiles(Global<float> dst,
                                                                     Global<const float> src,
                                                                     int rows, int cols)
{
    __shared__ float tile[TILE * (TILE + 1)];
    Shared<float> at = tile;
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const int row = (int)blockIdx.y * TILE, col = (int)blockIdx.x * TILE;
    if (row + ty < rows && col + tx < cols)
        at[place<LAYOUT>(ty, tx)] = src[(int64_t)(row + ty) * cols + col + tx];
    __syncthreads();
    if (col + ty < cols && row + tx < rows)
        dst[(int64_t)(col + ty) * rows + row + tx] = at[place<LAYOUT>(tx, ty)];
}

template <int LAYOUT> static void launch(float *dst, const float *src, int rows, int cols)
{
    const dim3 grid((unsigned)launch_blocks(cols, TILE), (unsigned)launch_blocks(rows, TILE));
    transpose_tiles<LAYOUT><<<grid, dim3(TILE, TILE)>>>(dst, src, rows, cols);
}

void launch_transpose_tiles(float *dst, const float *src, int rows, int cols,
                            enum transpose_layout layout)
{
    if (layout == TRANSPOSE_PLAIN)
        launch<TRANSPOSE_PLAIN>(dst, src, rows, cols);
    else if (layout == TRANSPOSE_PADDED)
        launch<TRANSPOSE_PADDED>(dst, src, rows, cols);
    else
        launch<TRANSPOSE_SWIZZLED>(dst, src, rows, cols);
}
