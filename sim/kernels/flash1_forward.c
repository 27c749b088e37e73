/* FlashAttention, forward (Dao et al. 2022, Algorithm 1): one thread block a head.
 *
 * K/V tiles outside, Q tiles inside: each K/V tile is loaded once, and for each of them every
 * Q tile's O, l and m are read from HBM, updated and written back. O is kept normalised. In the
 * first pass there is nothing to read yet: O, l and m start as 0, 0 and -inf on chip.
 */
#include <math.h>
#include <stdlib.h>

#include "core/trace.h"
#include "kernels/attention_kernels.h"
#include "ops/tile_ops.h"

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* The tiles of one thread block. */
struct flash1_tiles {
    struct tile Kj, Vj, Qi, Sij, Oi, m, m_new, l, c;
};

static void alloc_tiles(struct flash1_tiles *t, struct thread_block *b,
                        const struct attention *a)
{
    const int Br = a->block_q, Bc = a->block_k;
    tile_alloc(&t->Kj, b, LEVEL_SRAM, "Kj", a->dtype, Bc, a->head_dim);
    tile_alloc(&t->Vj, b, LEVEL_SRAM, "Vj", a->dtype, Bc, a->head_dim_v);
    tile_alloc(&t->Qi, b, LEVEL_SRAM, "Qi", a->dtype, Br, a->head_dim);
    tile_alloc(&t->Sij, b, LEVEL_REGISTERS, "Sij, Pij", DTYPE_F32, Br, Bc);
    tile_alloc(&t->Oi, b, LEVEL_REGISTERS, "Oi", DTYPE_F32, Br, a->head_dim_v);
    tile_alloc(&t->m, b, LEVEL_REGISTERS, "m", DTYPE_F32, Br, 1);
    tile_alloc(&t->m_new, b, LEVEL_REGISTERS, "m_new", DTYPE_F32, Br, 1);
    tile_alloc(&t->l, b, LEVEL_REGISTERS, "l", DTYPE_F32, Br, 1);
    tile_alloc(&t->c, b, LEVEL_REGISTERS, "c", DTYPE_F32, Br, 1);
}

/* Brings Qi and what earlier passes left of Oi, l and m on chip. */
static void load_state(struct flash1_tiles *on_chip, const struct attention_args *args,
                       int plane, int i, int j)
{
    const struct attention_tensors *t = args->t;
    const int row = i * args->a->block_q;
    tile_load(&on_chip->Qi, &t->Q, plane, row, 0);
    if (j > 0) {
        tile_load(&on_chip->Oi, &t->O, plane, row, 0);
        tile_load(&on_chip->l, &t->l, plane, row, 0);
        tile_load(&on_chip->m, &t->m, plane, row, 0);
    } else {
        tile_fill(&on_chip->Oi, 0.0f);
        tile_fill(&on_chip->l, 0.0f);
        tile_fill(&on_chip->m, -INFINITY);
    }
    block_step(on_chip->Qi.block, "load Qi, Oi, l, m", i, j);
}

/* The body of the inner loop: Q tile i meets the K/V tile j that is on chip. */
static void update_tile(struct flash1_tiles *on_chip, const struct attention_args *args,
                        int plane, int i, int j)
{
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    struct thread_block *b = on_chip->Qi.block;
    const int Br = a->block_q, Bc = a->block_k;
    const int rows = min(Br, a->seqlen_q - i * Br), cols = min(Bc, a->seqlen_k - j * Bc);
    struct tile *Sij = &on_chip->Sij, *Oi = &on_chip->Oi, *m = &on_chip->m,
                *m_new = &on_chip->m_new, *l = &on_chip->l, *c = &on_chip->c;
    load_state(on_chip, args, plane, i, j);

    tile_scores(Sij, &on_chip->Qi, &on_chip->Kj, rows, cols, a->scale);
    tile_mask(Sij, a, i * Br, j * Bc, rows, cols);
    block_step(b, "Sij = scale Qi KjT", i, j);

    tile_scale_rows(Oi, l, rows, Oi->cols); /* undo the normalisation of earlier passes */
    tile_row_max(m_new, m, Sij, rows, cols);
    tile_correction(c, m, m_new, rows);
    tile_exp_sum(Sij, m_new, l, c, rows, cols);
    block_step(b, "online softmax", i, j);

    tile_round(Sij, a->dtype, rows, cols);
    tile_scale_rows(Oi, c, rows, Oi->cols);
    tile_add_masked_product(Oi, Sij, &on_chip->Vj, a, i * Br, j * Bc, rows, cols);
    tile_divide_rows(Oi, l, rows, Oi->cols);
    tile_copy(m, m_new);
    block_step_rows(b, "Oi = diag(l)^-1 (diag(l c) Oi + Pij Vj)", i, j, rows, m, l, Oi);

    tile_store(&t->O, plane, i * Br, 0, Oi);
    tile_store(&t->l, plane, i * Br, 0, l);
    tile_store(&t->m, plane, i * Br, 0, m);
    block_step(b, "store Oi, l, m", i, j);
}

static void flash1_forward_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    const int plane = b->z, kv_plane = attention_kv_plane(a, plane);
    struct flash1_tiles on_chip;
    alloc_tiles(&on_chip, b, a);
    if (block_failed(b))
        return;

    /* Causal: a Q tile meets only tiles that it may see; the first pass meets all of them, to
     * write O and the statistics of rows without keys too. */
    const int Tr = attention_tiles_q(a), Tc = attention_visited_tiles(a, Tr - 1);
    int first = 0;
    for (int j = 0; j == 0 || j < Tc; j++) {
        tile_load(&on_chip.Kj, &args->t->K, kv_plane, j * a->block_k, 0);
        tile_load(&on_chip.Vj, &args->t->V, kv_plane, j * a->block_k, 0);
        block_step(b, "load Kj, Vj", -1, j);
        while (j > 0 && attention_visited_tiles(a, first) <= j)
            first++;
        for (int i = loop_begin(b, first); i < Tr; i = loop_next(b, i, Tr))
            update_tile(&on_chip, args, plane, i, j);
    }
}

/* LSE = m + log l on the host: the algorithm itself leaves l and m in HBM. */
static enum status finish_lse(struct attention_tensors *t, struct error *error)
{
    if (!t->LSE.data)
        return STATUS_OK;
    const size_t count = (size_t)t->LSE.planes * (size_t)t->LSE.rows;
    float *m = malloc(count * sizeof *m), *l = malloc(count * sizeof *l);
    enum status status = STATUS_OK;
    if (m && l) {
        hbm_download(m, &t->m);
        hbm_download(l, &t->l);
        for (size_t r = 0; r < count; r++)
            m[r] = l[r] == 0.0f ? -INFINITY : m[r] + logf(l[r]);
        hbm_upload(&t->LSE, m);
    } else {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %zu floats", count);
    }
    free(m);
    free(l);
    return status;
}

enum status flash1_forward(struct gpu *gpu, const struct attention *a,
                           struct attention_tensors *t, struct error *error)
{
    const struct attention_args args = {a, t};
    const int planes = attention_planes_q(a);
    if (hbm_alloc(&t->l, gpu, "l", DTYPE_F32, planes, a->seqlen_q, 1, error) ||
        hbm_alloc(&t->m, gpu, "m", DTYPE_F32, planes, a->seqlen_q, 1, error) ||
        gpu_launch(gpu,
                   &(struct launch){.name = "flash1_forward",
                                    .grid = {1, 1, planes},
                                    .alike = attention_alike(a, true),
                                    .block = flash1_forward_block,
                                    .args = &args},
                   error))
        return error->status;
    return finish_lse(t, error);
}
