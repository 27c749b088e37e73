/* Matrix product by tiles: one thread block a tile of C, tiles of A and B in SRAM.
 *
 * Each element that the block loads is used as many times as a tile has rows or columns, so HBM
 * traffic falls by that factor against matmul_naive.
 */
#include "core/trace.h"
#include "kernels/basic_kernels.h"
#include "ops/tile_ops.h"

struct matmul_tiled_args {
    struct hbm_tensor *C;
    const struct hbm_tensor *A, *B;
    int tile;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

static void matmul_tiled_block(struct thread_block *b, const void *arguments)
{
    const struct matmul_tiled_args *args = arguments;
    struct hbm_tensor *C = args->C;
    const struct hbm_tensor *A = args->A, *B = args->B;
    const int tile = args->tile, i = b->y, j = b->x, Tk = (A->cols - 1) / tile + 1;
    const int rows = min(tile, C->rows - i * tile), cols = min(tile, C->cols - j * tile);
    struct tile Aik, Bkj, Cij;
    tile_alloc(&Aik, b, LEVEL_SRAM, "Aik", DTYPE_F32, tile, tile);
    tile_alloc(&Bkj, b, LEVEL_SRAM, "Bkj", DTYPE_F32, tile, cols);
    tile_alloc(&Cij, b, LEVEL_REGISTERS, "Cij", DTYPE_F32, tile, cols);
    if (block_failed(b))
        return;

    tile_fill(&Cij, 0.0f);
    for (int k = loop_begin(b, 0); k < Tk; k = loop_next(b, k, Tk)) {
        const int depth = min(tile, A->cols - k * tile);
        tile_load(&Aik, A, 0, i * tile, k * tile);
        tile_load(&Bkj, B, 0, k * tile, j * tile);
        block_step(b, "load Aik, Bkj", i, k);
        tile_add_product(&Cij, &Aik, &Bkj, rows, depth);
        block_step(b, "Cij = Cij + Aik Bkj", i, k);
    }
    tile_store(C, 0, i * tile, j * tile, &Cij);
    block_step(b, "store Cij", i, -1);
}

enum status matmul_tiled(struct gpu *gpu, struct hbm_tensor *C, const struct hbm_tensor *A,
                         const struct hbm_tensor *B, int tile, struct error *error)
{
    CHECK(A->rows == C->rows && A->cols == B->rows && B->cols == C->cols && tile > 0,
          "product of %d x %d and %d x %d into %d x %d in tiles of %d", A->rows, A->cols,
          B->rows, B->cols, C->rows, C->cols, tile);
    const struct matmul_tiled_args args = {C, A, B, tile};
    return gpu_launch(
        gpu,
        &(struct launch){.name = "matmul_tiled",
                         .grid = {(C->cols - 1) / tile + 1, (C->rows - 1) / tile + 1, 1},
                         .block = matmul_tiled_block,
                         .args = &args},
        error);
}
