/* Matrix product by tiles of A and B in SRAM, one lane an element of C.
 *
 * HBM traffic falls by the tile's size against matmul_naive, as in matmul_tiled. The block has
 * a thread for each element of a tile, and each warp moves its own rows of it: in ragged tiles
 * other elements meet in one request than where a loop copies the tile.
 */
#include <string.h>

#include "core/trace.h"
#include "kernels/basic_kernels.h"
#include "ops/tile_ops.h"

struct matmul_shared_args {
    struct hbm_tensor *C;
    const struct hbm_tensor *A, *B;
    int tile;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* A warp's rows of a tile, from row first of it on: taken from the tile, put into it. */
static void take_rows(struct tile *warp, const struct tile *tile, int first)
{
    float *data = tile_writable(warp);
    for (int r = 0; data && r < warp->rows; r++)
        memcpy(data + r * warp->cols, tile->data + (first + r) * tile->cols,
               (size_t)tile->cols * sizeof *data);
}

static void put_rows(struct tile *tile, int first, const struct tile *warp)
{
    float *data = tile_writable(tile);
    for (int r = 0; data && r < warp->rows; r++)
        memcpy(data + (first + r) * tile->cols, warp->data + r * warp->cols,
               (size_t)tile->cols * sizeof *data);
}

/* tile <- src from (row, col) on, a warp after the other. */
static void load(struct tile *tile, struct tile *warp, const struct hbm_tensor *src, int row,
                 int col)
{
    for (int r = 0; r < min(tile->rows, src->rows - row); r += warp->rows) {
        tile_load(warp, src, 0, row + r, col);
        put_rows(tile, r, warp);
    }
}

static void store(struct hbm_tensor *dst, int row, int col, const struct tile *tile,
                  struct tile *warp)
{
    for (int r = 0; r < min(tile->rows, dst->rows - row); r += warp->rows) {
        take_rows(warp, tile, r);
        tile_store(dst, 0, row + r, col, warp);
    }
}

static void matmul_shared_block(struct thread_block *b, const void *arguments)
{
    const struct matmul_shared_args *args = arguments;
    struct hbm_tensor *C = args->C;
    const struct hbm_tensor *A = args->A, *B = args->B;
    const int tile = args->tile, i = b->y, j = b->x, Tk = (A->cols - 1) / tile + 1;
    const int rows = min(tile, C->rows - i * tile), cols = min(tile, C->cols - j * tile);
    struct tile Aik, Bkj, Cij, warp;
    tile_alloc(&Aik, b, LEVEL_SRAM, "Aik", DTYPE_F32, tile, tile);
    tile_alloc(&Bkj, b, LEVEL_SRAM, "Bkj", DTYPE_F32, tile, cols);
    tile_alloc(&Cij, b, LEVEL_REGISTERS, "Cij", DTYPE_F32, tile, cols);
    tile_alloc(&warp, b, LEVEL_REGISTERS, "rows of a warp", DTYPE_F32,
               min(tile, WARP_LANES / tile), tile);
    if (block_failed(b))
        return;

    tile_fill(&Cij, 0.0f);
    for (int k = loop_begin(b, 0); k < Tk; k = loop_next(b, k, Tk)) {
        const int depth = min(tile, A->cols - k * tile);
        load(&Aik, &warp, A, i * tile, k * tile);
        load(&Bkj, &warp, B, k * tile, j * tile);
        block_step(b, "load Aik, Bkj", i, k);
        tile_add_product(&Cij, &Aik, &Bkj, rows, depth);
        block_step(b, "Cij = Cij + Aik Bkj", i, k);
    }
    store(C, i * tile, j * tile, &Cij, &warp);
    block_step(b, "store Cij", i, -1);
}

enum status matmul_shared(struct gpu *gpu, struct hbm_tensor *C, const struct hbm_tensor *A,
                          const struct hbm_tensor *B, int tile, struct error *error)
{
    CHECK(A->rows == C->rows && A->cols == B->rows && B->cols == C->cols,
          "product of %d x %d and %d x %d into %d x %d", A->rows, A->cols, B->rows, B->cols,
          C->rows, C->cols);
    CHECK(tile > 0 && WARP_LANES % tile == 0, "tiles of %d: a warp has no whole rows", tile);
    const struct matmul_shared_args args = {C, A, B, tile};
    return gpu_launch(
        gpu,
        &(struct launch){.name = "matmul_shared",
                         .grid = {(C->cols - 1) / tile + 1, (C->rows - 1) / tile + 1, 1},
                         .block = matmul_shared_block,
                         .args = &args},
        error);
}
