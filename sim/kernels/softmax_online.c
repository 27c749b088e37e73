/* Online softmax (Milakov & Gimelshein 2018, Algorithm 3): two passes over each row.
 *
 * Maximum and sum are kept together: when the maximum grows, the sum so far is rescaled. Every
 * element is loaded twice and stored once. One thread block a row, a warp's request at a time.
 */
#include <math.h>

#include "core/trace.h"
#include "kernels/basic_kernels.h"
#include "kernels/row_parts.h"
#include "ops/tile_ops.h"

static void softmax_online_block(struct thread_block *b, const void *arguments)
{
    const struct softmax_args *args = arguments;
    const struct hbm_tensor *X = args->X;
    const int row = b->x, parts = (X->cols - 1) / WARP_LANES + 1;
    struct tile x, m, m_new, l, c;
    tile_alloc(&x, b, LEVEL_REGISTERS, "x", DTYPE_F32, 1, WARP_LANES);
    tile_alloc(&m, b, LEVEL_REGISTERS, "m", DTYPE_F32, 1, 1);
    tile_alloc(&m_new, b, LEVEL_REGISTERS, "m_new", DTYPE_F32, 1, 1);
    tile_alloc(&l, b, LEVEL_REGISTERS, "l", DTYPE_F32, 1, 1);
    tile_alloc(&c, b, LEVEL_REGISTERS, "c", DTYPE_F32, 1, 1);
    if (block_failed(b))
        return;
    tile_fill(&m, -INFINITY);
    tile_fill(&l, 0.0f);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        tile_row_max(&m_new, &m, &x, 1, lanes);
        tile_correction(&c, &m, &m_new, 1);
        tile_exp_sum(&x, &m_new, &l, &c, 1, lanes);
        tile_copy(&m, &m_new);
    }
    block_step(b, "m, l of x", row, -1);
    for (int p = loop_begin(b, 0); p < parts; p = loop_next(b, p, parts)) {
        const int lanes = part_load(&x, X, row, p * WARP_LANES);
        tile_exp(&x, &m, 1, lanes);
        tile_divide_rows(&x, &l, 1, lanes);
        part_store(args->Y, row, p * WARP_LANES, &x);
    }
    block_step(b, "y = exp(x - m) / l", row, -1);
}

enum status softmax_online(struct gpu *gpu, struct hbm_tensor *Y, const struct hbm_tensor *X,
                           struct error *error)
{
    CHECK(X->rows == Y->rows && X->cols == Y->cols, "softmax of %d x %d into %d x %d", X->rows,
          X->cols, Y->rows, Y->cols);
    const struct softmax_args args = {Y, X};
    return gpu_launch(gpu,
                      &(struct launch){.name = "softmax_online",
                                       .grid = {X->rows, 1, 1},
                                       .block = softmax_online_block,
                                       .args = &args},
                      error);
}
