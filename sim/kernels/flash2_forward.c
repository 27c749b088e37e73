/* FlashAttention-2, forward (Dao 2023, Algorithm 1): one thread block a Q tile.
 *
 * The block keeps its Q tile, and O un-scaled, on chip, and passes once over the K/V tiles that
 * its rows may see; O is divided by l only at the end. Line 10 of the printed algorithm has an
 * inverse on the rescaling factor that must not be there: the factor is exp(m_old - m_new).
 */
#include <math.h>

#include "core/trace.h"
#include "kernels/attention_kernels.h"
#include "ops/tile_ops.h"

static int min(int a, int b)
{
    return a < b ? a : b;
}

static void flash2_forward_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    const int Br = a->block_q, Bc = a->block_k, d = a->head_dim, dv = a->head_dim_v;
    const int i = b->x, plane = b->z, kv_plane = attention_kv_plane(a, plane);

    struct tile Qi, Kj, Vj, Sij, Oi, m, m_new, l, c, Li;
    tile_alloc(&Qi, b, LEVEL_SRAM, "Qi", a->dtype, Br, d);
    tile_alloc(&Kj, b, LEVEL_SRAM, "Kj", a->dtype, Bc, d);
    tile_alloc(&Vj, b, LEVEL_SRAM, "Vj", a->dtype, Bc, dv);
    tile_alloc(&Sij, b, LEVEL_REGISTERS, "Sij, Pij", DTYPE_F32, Br, Bc);
    tile_alloc(&Oi, b, LEVEL_REGISTERS, "Oi", DTYPE_F32, Br, dv);
    tile_alloc(&m, b, LEVEL_REGISTERS, "m", DTYPE_F32, Br, 1);
    tile_alloc(&m_new, b, LEVEL_REGISTERS, "m_new", DTYPE_F32, Br, 1);
    tile_alloc(&l, b, LEVEL_REGISTERS, "l", DTYPE_F32, Br, 1);
    tile_alloc(&c, b, LEVEL_REGISTERS, "c", DTYPE_F32, Br, 1);
    tile_alloc(&Li, b, LEVEL_REGISTERS, "Li", DTYPE_F32, Br, 1);
    if (block_failed(b))
        return;

    const int rows = min(Br, a->seqlen_q - i * Br);
    tile_load(&Qi, &t->Q, plane, i * Br, 0);
    tile_fill(&Oi, 0.0f);
    tile_fill(&m, -INFINITY);
    tile_fill(&l, 0.0f);
    block_step(b, "load Qi", i, -1);

    const int Tc = attention_visited_tiles(a, i); /* causal: no tile past the diagonal */
    for (int j = loop_begin(b, 0); j < Tc; j = loop_next(b, j, Tc)) {
        const int cols = min(Bc, a->seqlen_k - j * Bc);
        tile_load(&Kj, &t->K, kv_plane, j * Bc, 0);
        tile_load(&Vj, &t->V, kv_plane, j * Bc, 0);
        block_step(b, "load Kj, Vj", i, j);

        tile_scores(&Sij, &Qi, &Kj, rows, cols, a->scale);
        tile_mask(&Sij, a, i * Br, j * Bc, rows, cols);
        block_step(b, "Sij = scale Qi KjT", i, j);

        tile_row_max(&m_new, &m, &Sij, rows, cols);
        tile_correction(&c, &m, &m_new, rows);
        tile_exp_sum(&Sij, &m_new, &l, &c, rows, cols);
        block_step(b, "online softmax", i, j);

        tile_round(&Sij, a->dtype, rows, cols);
        tile_scale_rows(&Oi, &c, rows, dv);
        tile_add_masked_product(&Oi, &Sij, &Vj, a, i * Br, j * Bc, rows, cols);
        tile_copy(&m, &m_new);
        block_step_rows(b, "Oi = diag(c) Oi + Pij Vj", i, j, rows, &m, &l, &Oi);
    }
    tile_divide_rows(&Oi, &l, rows, dv);
    tile_log_sum_exp(&Li, &m, &l, rows);
    tile_store(&t->O, plane, i * Br, 0, &Oi);
    tile_store(&t->LSE, plane, i * Br, 0, &Li);
    block_step(b, "store Oi, Li", i, -1);
}

enum status flash2_forward(struct gpu *gpu, const struct attention *a,
                           struct attention_tensors *t, struct error *error)
{
    const struct attention_args args = {a, t};
    return gpu_launch(gpu,
                      &(struct launch){.name = "flash2_forward",
                                       .grid = {attention_tiles_q(a), 1, attention_planes_q(a)},
                                       .alike = attention_alike(a, a->mask == MASK_NONE),
                                       .block = flash2_forward_block,
                                       .args = &args},
                      error);
}
