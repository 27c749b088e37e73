/* Matrix product, one lane an element of C, every operand from HBM.
 *
 * A warp computes 32 neighbours of one row of C: for each k its lanes read the same element of
 * A (one sector) and 32 consecutive elements of B. Nothing is reused on chip. A thread block is
 * four warps, on four rows.
 */
#include "core/trace.h"
#include "kernels/basic_kernels.h"

enum { BLOCK_COLS = WARP_LANES, BLOCK_ROWS = 4 };

struct matmul_naive_args {
    struct hbm_tensor *C;
    const struct hbm_tensor *A, *B;
};

/* One warp: the elements (row, col) .. (row, col + lanes - 1) of C. */
static void warp_of_row(struct thread_block *b, const struct matmul_naive_args *args, int row,
                        int col, int lanes)
{
    const int depth = args->A->cols, cols = args->C->cols;
    int64_t element[WARP_LANES];
    float sum[WARP_LANES] = {0}, a[WARP_LANES] = {0}, bk[WARP_LANES] = {0};
    for (int k = loop_begin(b, 0); k < depth; k = loop_next(b, k, depth)) {
        for (int lane = 0; lane < lanes; lane++)
            element[lane] = (int64_t)row * depth + k;
        warp_load(b, a, args->A, 0, element, lanes);
        for (int lane = 0; lane < lanes; lane++)
            element[lane] = (int64_t)k * cols + col + lane;
        warp_load(b, bk, args->B, 0, element, lanes);
        for (int lane = 0; lane < lanes; lane++)
            sum[lane] += a[lane] * bk[lane];
    }
    count_flops(b, (int64_t)2 * lanes * depth, 0, 0);
    block_step(b, "sum of Aik Bkj", row, b->x);
    for (int lane = 0; lane < lanes; lane++)
        element[lane] = (int64_t)row * cols + col + lane;
    warp_store(b, args->C, 0, element, sum, lanes);
    block_step(b, "store Cij", row, b->x);
}

static void matmul_naive_block(struct thread_block *b, const void *arguments)
{
    const struct matmul_naive_args *args = arguments;
    const int col = b->x * BLOCK_COLS, left = args->C->cols - col;
    for (int warp = 0; warp < BLOCK_ROWS; warp++) {
        const int row = b->y * BLOCK_ROWS + warp;
        if (row < args->C->rows)
            warp_of_row(b, args, row, col, left < BLOCK_COLS ? left : BLOCK_COLS);
    }
}

enum status matmul_naive(struct gpu *gpu, struct hbm_tensor *C, const struct hbm_tensor *A,
                         const struct hbm_tensor *B, struct error *error)
{
    CHECK(A->rows == C->rows && A->cols == B->rows && B->cols == C->cols,
          "product of %d x %d and %d x %d into %d x %d", A->rows, A->cols, B->rows, B->cols,
          C->rows, C->cols);
    const struct matmul_naive_args args = {C, A, B};
    const struct grid grid = {(C->cols - 1) / BLOCK_COLS + 1, (C->rows - 1) / BLOCK_ROWS + 1,
                              1};
    return gpu_launch(
        gpu,
        &(struct launch){
            .name = "matmul_naive", .grid = grid, .block = matmul_naive_block, .args = &args},
        error);
}
