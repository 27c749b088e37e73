/* Naive softmax (Milakov & Gimelshein 2018, Algorithm 1): two passes over each row.
 *
 * The sum of exp(x), then the result: every element is loaded twice and stored once. exp(x) is
 * infinite in fp32 from x = 88.73 on, and 0 below -103.98: such rows come out as NaN, which is
 * why the other softmaxes subtract the maximum first. One thread block a row, a warp's request
 * at a time.
 */
#include <math.h>

#include "core/trace.h"
#include "kernels/basic_kernels.h"
#include "kernels/row_parts.h"
#include "ops/tile_ops.h"

/* x <- exp(x), its first lanes elements. Not tile_exp(): that is for x <= 0. */
static void exponentiate(struct tile *x, int lanes)
{
    count_flops(x->block, 0, 0, lanes);
    for (int lane = 0; x->data && lane < lanes; lane++)
        tile_writable(x)[lane] = expf(x->data[lane]);
}

static void add_to_sum(struct tile *l, const struct tile *x, int lanes)
{
    count_flops(l->block, 0, lanes, 0);
    for (int lane = 0; l->data && lane < lanes; lane++)
        tile_writable(l)[0] += x->data[lane];
}

/* x <- x / l, whatever l is. Not tile_divide_rows(): that makes 0 of 0 / 0. */
static void divide(struct tile *x, const struct tile *l, int lanes)
{
    count_flops(x->block, 0, lanes, 0);
    for (int lane = 0; x->data && lane < lanes; lane++)
        tile_writable(x)[lane] /= l->data[0];
}

static void softmax_naive_block(struct thread_block *b, const void *arguments)
{
    const struct softmax_args *args = arguments;
    const struct hbm_tensor *X = args->X;
    const int row = b->x, parts = (X->cols - 1) / WARP_LANES + 1;
    struct tile x, l;
    tile_alloc(&x, b, LEVEL_REGISTERS, "x", DTYPE_F32, 1, WARP_LANES);
    tile_alloc(&l, b, LEVEL_REGISTERS, "l", DTYPE_F32, 1, 1);
    if (block_failed(b))
        return;
    tile_fill(&l, 0.0f);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        exponentiate(&x, lanes);
        add_to_sum(&l, &x, lanes);
    }
    block_step(b, "l = sum of exp(x)", row, -1);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        exponentiate(&x, lanes);
        divide(&x, &l, lanes);
        part_store(args->Y, row, p * WARP_LANES, &x);
    }
    block_step(b, "y = exp(x) / l", row, -1);
}

enum status softmax_naive(struct gpu *gpu, struct hbm_tensor *Y, const struct hbm_tensor *X,
                          struct error *error)
{
    CHECK(X->rows == Y->rows && X->cols == Y->cols, "softmax of %d x %d into %d x %d", X->rows,
          X->cols, Y->rows, Y->cols);
    const struct softmax_args args = {Y, X};
    return gpu_launch(gpu,
                      &(struct launch){.name = "softmax_naive",
                                       .grid = {X->rows, 1, 1},
                                       .block = softmax_naive_block,
                                       .args = &args},
                      error);
}
