/* Matrix product by tiles: one thread block a tile of C, tiles of A and B in shared memory.
 *
 * Each element that the block loads is used TILE times, so HBM traffic falls by TILE against
 * matmul_naive. Each thread keeps TILE / 8 x TILE / 16 elements of C in registers, so that an
 * operand read from shared memory is used several times too: at TILE = 16 shared memory is what
 * limits the speed.
 *
 * Twin of sim/kernels/matmul_tiled.c. TILE is compiled for 16, 32 and 64.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/steps.h"
#include "cuda/tile.h"

template <int TILE>
static __global__
__launch_bounds__(THREADS) void matmul_tiled(Global<float> C, Global<const float> A,
                                             Global<const float> B, struct matmul_shape shape)
{
    constexpr int PITCH = wide_pitch(TILE);
    __shared__ __align__(16) float tiles[2 * TILE * PITCH];
    Shared<float> Aik = tiles, Bkj = tiles + TILE * PITCH;
    const int i = (int)blockIdx.y, j = (int)blockIdx.x;
    const int rows = min(TILE, shape.rows - i * TILE), cols = min(TILE, shape.cols - j * TILE);
    const int Tk = (shape.depth + TILE - 1) / TILE;
    float Cij[TILE / ROW_THREADS][TILE / COL_THREADS];
    A += (int64_t)i * TILE * shape.depth;
    B += j * TILE;
    C += (int64_t)i * TILE * shape.cols + j * TILE;
    STEPS_BEGIN(j, i, 0);

    tile_fill(Cij, 0.0f);
    for (int k = 0; k < Tk; k++) {
        const int depth = min(TILE, shape.depth - k * TILE);
        __syncthreads(); /* all have read the previous Aik and Bkj */
        tile_load(Aik, PITCH, A + k * TILE, shape.depth, rows, depth, TILE, TILE);
        tile_load(Bkj, PITCH, B + (int64_t)k * TILE * shape.cols, shape.cols, depth, cols, TILE,
                  TILE);
        __syncthreads();
        STEP("load Aik, Bkj", i, k);
        tile_add_product(Cij, Aik, PITCH, Bkj, PITCH, depth);
        STEP("Cij = Cij + Aik Bkj", i, k);
    }
    __syncthreads(); /* Aik is free: Cij leaves through it, row by row */
    tile_put(Aik, PITCH, Cij);
    __syncthreads();
    tile_store(C, shape.cols, Aik, PITCH, rows, cols);
    STEP("store Cij", i, -1);
}

template <int TILE>
static enum status launch(float *C, const float *A, const float *B,
                          const struct matmul_shape *shape, void *stream, struct error *error)
{
    const struct launch_shape launch = {
        "matmul_tiled",
        {launch_blocks(shape->cols, TILE), launch_blocks(shape->rows, TILE), 1},
        THREADS,
        0};
    if (launch_prepare((const void *)matmul_tiled<TILE>, &launch, error))
        return error->status;
    matmul_tiled<TILE>
        <<<launch_grid(&launch), THREADS, 0, (cudaStream_t)stream>>>(C, A, B, *shape);
    return launch_check(&launch, error);
}

enum status launch_matmul_tiled(float *C, const float *A, const float *B,
                                const struct matmul_shape *shape, int tile, void *stream,
                                struct error *error)
{
    switch (tile) {
    case 16:
        return launch<16>(C, A, B, shape, stream, error);
    case 32:
        return launch<32>(C, A, B, shape, stream, error);
    case 64:
        return launch<64>(C, A, B, shape, stream, error);
    default:
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "tile %d: matmul_tiled is compiled for 16, 32 and 64", tile);
    }
}
