/* Safe softmax (Milakov & Gimelshein 2018, Algorithm 2): three passes over each row.
 *
 * The maximum, then the sum of exp(x - maximum), then the result: every element is loaded three
 * times and stored once. One thread block a row, a warp's request at a time.
 */
#include <math.h>

#include "core/trace.h"
#include "kernels/basic_kernels.h"
#include "kernels/row_parts.h"
#include "ops/tile_ops.h"

/* l <- l + sum of the first lanes elements of x */
static void add_to_sum(struct tile *l, const struct tile *x, int lanes)
{
    count_flops(l->block, 0, lanes, 0);
    for (int lane = 0; l->data && lane < lanes; lane++)
        tile_writable(l)[0] += x->data[lane];
}

static void softmax_safe_block(struct thread_block *b, const void *arguments)
{
    const struct softmax_args *args = arguments;
    const struct hbm_tensor *X = args->X;
    const int row = b->x, parts = (X->cols - 1) / WARP_LANES + 1;
    struct tile x, m, l;
    tile_alloc(&x, b, LEVEL_REGISTERS, "x", DTYPE_F32, 1, WARP_LANES);
    tile_alloc(&m, b, LEVEL_REGISTERS, "m", DTYPE_F32, 1, 1);
    tile_alloc(&l, b, LEVEL_REGISTERS, "l", DTYPE_F32, 1, 1);
    if (block_failed(b))
        return;
    tile_fill(&m, -INFINITY);
    tile_fill(&l, 0.0f);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        tile_row_max(&m, &m, &x, 1, lanes);
    }
    block_step(b, "m = max of x", row, -1);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        tile_exp(&x, &m, 1, lanes);
        add_to_sum(&l, &x, lanes);
    }
    block_step(b, "l = sum of exp(x - m)", row, -1);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        tile_exp(&x, &m, 1, lanes);
        tile_divide_rows(&x, &l, 1, lanes);
        part_store(args->Y, row, p * WARP_LANES, &x);
    }
    block_step(b, "y = exp(x - m) / l", row, -1);
}

enum status softmax_safe(struct gpu *gpu, struct hbm_tensor *Y, const struct hbm_tensor *X,
                         struct error *error)
{
    CHECK(X->rows == Y->rows && X->cols == Y->cols, "softmax of %d x %d into %d x %d", X->rows,
          X->cols, Y->rows, Y->cols);
    const struct softmax_args args = {Y, X};
    return gpu_launch(gpu,
                      &(struct launch){.name = "softmax_safe",
                                       .grid = {X->rows, 1, 1},
                                       .block = softmax_safe_block,
                                       .args = &args},
                      error);
}
