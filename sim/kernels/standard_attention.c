/* Standard attention (Dao et al. 2022, Algorithm 0): S and P go through HBM, three launches.
 *
 * The paper counts each operand of each launch once, 4 N d + 4 N^2 elements in all, as if
 * on-chip memory could hold a whole operand. The default does just that, with the on-chip
 * limits lifted. With a->tiled_gemm the same three launches work on real tiles that fit:
 * operands are loaded again for every tile that needs them, and the softmax reads S twice.
 * Masks hide nothing from HBM: all of S and P is written. They act in the softmax.
 */
#include <math.h>

#include "core/trace.h"
#include "kernels/attention_kernels.h"
#include "ops/tile_ops.h"

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* S = scale Q K^T, K on chip whole. Grid: planes. */
static void scores_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    const int plane = b->z, Br = a->block_q, Tr = attention_tiles_q(a);
    struct tile K, Qi, Si;
    tile_alloc(&K, b, LEVEL_SRAM, "K", a->dtype, a->seqlen_k, a->head_dim);
    tile_alloc(&Qi, b, LEVEL_SRAM, "Qi", a->dtype, Br, a->head_dim);
    tile_alloc(&Si, b, LEVEL_REGISTERS, "Si", DTYPE_F32, Br, a->seqlen_k);
    if (block_failed(b))
        return;
    tile_load(&K, &t->K, attention_kv_plane(a, plane), 0, 0);
    block_step(b, "load K", -1, -1);
    for (int i = loop_begin(b, 0); i < Tr; i = loop_next(b, i, Tr)) {
        tile_load(&Qi, &t->Q, plane, i * Br, 0);
        tile_scores(&Si, &Qi, &K, min(Br, a->seqlen_q - i * Br), a->seqlen_k, a->scale);
        tile_store(&t->S, plane, i * Br, 0, &Si);
        block_step(b, "Si = scale Qi KT", i, -1);
    }
}

/* S = scale Q K^T, one tile of S a block. Grid: Tc x Tr x planes. */
static void scores_tile_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    const int j = b->x, i = b->y, plane = b->z, Br = a->block_q, Bc = a->block_k;
    struct tile Qi, Kj, Sij;
    tile_alloc(&Qi, b, LEVEL_SRAM, "Qi", a->dtype, Br, a->head_dim);
    tile_alloc(&Kj, b, LEVEL_SRAM, "Kj", a->dtype, Bc, a->head_dim);
    tile_alloc(&Sij, b, LEVEL_REGISTERS, "Sij", DTYPE_F32, Br, Bc);
    if (block_failed(b))
        return;
    tile_load(&Qi, &t->Q, plane, i * Br, 0);
    tile_load(&Kj, &t->K, attention_kv_plane(a, plane), j * Bc, 0);
    tile_scores(&Sij, &Qi, &Kj, min(Br, a->seqlen_q - i * Br), min(Bc, a->seqlen_k - j * Bc),
                a->scale);
    tile_store(&t->S, plane, i * Br, j * Bc, &Sij);
    block_step(b, "Sij = scale Qi KjT", i, j);
}

/* Row statistics of the softmax launches. */
struct statistics {
    struct tile m, m_new, l, c, Li;
};

static void alloc_statistics(struct statistics *s, struct thread_block *b, int rows)
{
    tile_alloc(&s->m, b, LEVEL_REGISTERS, "m", DTYPE_F32, rows, 1);
    tile_alloc(&s->m_new, b, LEVEL_REGISTERS, "m_new", DTYPE_F32, rows, 1);
    tile_alloc(&s->l, b, LEVEL_REGISTERS, "l", DTYPE_F32, rows, 1);
    tile_alloc(&s->c, b, LEVEL_REGISTERS, "c", DTYPE_F32, rows, 1);
    tile_alloc(&s->Li, b, LEVEL_REGISTERS, "Li", DTYPE_F32, rows, 1);
    tile_fill(&s->m, -INFINITY);
    tile_fill(&s->l, 0.0f);
}

/* Loads S from column col on, masks it, and leaves it as P relative to the new maximum. */
static void meet_scores(struct tile *S, struct statistics *s, const struct attention_args *args,
                        int plane, int row, int col)
{
    const int rows = min(S->rows, args->a->seqlen_q - row);
    const int cols = min(S->cols, args->a->seqlen_k - col);
    tile_load(S, &args->t->S, plane, row, col);
    tile_mask(S, args->a, row, col, rows, cols);
    tile_row_max(&s->m_new, &s->m, S, rows, cols);
    tile_correction(&s->c, &s->m, &s->m_new, rows);
    tile_exp_sum(S, &s->m_new, &s->l, &s->c, rows, cols);
    tile_copy(&s->m, &s->m_new);
}

/* P = softmax(S), whole rows on chip. Grid: Tr x planes. With tiled_gemm: two passes over
 * tiles of the rows, one for m and l, one for P. */
static void softmax_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    const int i = b->x, plane = b->z, row = i * a->block_q;
    const int rows = min(a->block_q, a->seqlen_q - row);
    const int Bc = a->tiled_gemm ? a->block_k : a->seqlen_k;
    const int Tc = a->tiled_gemm ? attention_tiles_k(a) : 1;
    struct tile Sij;
    struct statistics s;
    tile_alloc(&Sij, b, LEVEL_REGISTERS, "Sij, Pij", DTYPE_F32, a->block_q, Bc);
    alloc_statistics(&s, b, a->block_q);
    if (block_failed(b))
        return;
    for (int j = loop_begin(b, 0); j < Tc; j = loop_next(b, j, Tc)) {
        meet_scores(&Sij, &s, args, plane, row, j * Bc);
        block_step_rows(b, "m, l of Sij", i, j, rows, &s.m, &s.l, NULL);
    }
    for (int j = loop_begin(b, 0); j < Tc; j = loop_next(b, j, Tc)) {
        const int cols = min(Bc, a->seqlen_k - j * Bc);
        if (a->tiled_gemm) { /* the tile has gone; otherwise P is still on chip */
            tile_load(&Sij, &t->S, plane, row, j * Bc);
            tile_mask(&Sij, a, row, j * Bc, rows, cols);
            tile_exp(&Sij, &s.m, rows, cols);
        }
        tile_divide_rows(&Sij, &s.l, rows, cols);
        tile_store(&t->P, plane, row, j * Bc, &Sij);
        block_step(b, "Pij = diag(l)^-1 exp(Sij - m)", i, j);
    }
    tile_log_sum_exp(&s.Li, &s.m, &s.l, rows);
    tile_store(&t->LSE, plane, row, 0, &s.Li);
    block_step(b, "store Li", i, -1);
}

/* O = P V, V on chip whole. Grid: planes. */
static void output_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    const int plane = b->z, Br = a->block_q, Tr = attention_tiles_q(a);
    struct tile V, Pi, Oi;
    tile_alloc(&V, b, LEVEL_SRAM, "V", a->dtype, a->seqlen_k, a->head_dim_v);
    tile_alloc(&Pi, b, LEVEL_SRAM, "Pi", a->dtype, Br, a->seqlen_k);
    tile_alloc(&Oi, b, LEVEL_REGISTERS, "Oi", DTYPE_F32, Br, a->head_dim_v);
    if (block_failed(b))
        return;
    tile_load(&V, &t->V, attention_kv_plane(a, plane), 0, 0);
    block_step(b, "load V", -1, -1);
    for (int i = loop_begin(b, 0); i < Tr; i = loop_next(b, i, Tr)) {
        const int rows = min(Br, a->seqlen_q - i * Br);
        tile_load(&Pi, &t->P, plane, i * Br, 0);
        tile_fill(&Oi, 0.0f);
        tile_add_masked_product(&Oi, &Pi, &V, a, i * Br, 0, rows, a->seqlen_k);
        tile_store(&t->O, plane, i * Br, 0, &Oi);
        block_step_rows(b, "Oi = Pi V", i, -1, rows, NULL, NULL, &Oi);
    }
}

/* O = P V by tiles. Grid: Tr x planes. */
static void output_tile_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    struct attention_tensors *t = args->t;
    const int i = b->x, plane = b->z, Br = a->block_q, Bc = a->block_k;
    const int rows = min(Br, a->seqlen_q - i * Br), Tc = attention_tiles_k(a);
    struct tile Pij, Vj, Oi;
    tile_alloc(&Pij, b, LEVEL_SRAM, "Pij", a->dtype, Br, Bc);
    tile_alloc(&Vj, b, LEVEL_SRAM, "Vj", a->dtype, Bc, a->head_dim_v);
    tile_alloc(&Oi, b, LEVEL_REGISTERS, "Oi", DTYPE_F32, Br, a->head_dim_v);
    if (block_failed(b))
        return;
    tile_fill(&Oi, 0.0f);
    for (int j = loop_begin(b, 0); j < Tc; j = loop_next(b, j, Tc)) {
        tile_load(&Pij, &t->P, plane, i * Br, j * Bc);
        tile_load(&Vj, &t->V, attention_kv_plane(a, plane), j * Bc, 0);
        tile_add_masked_product(&Oi, &Pij, &Vj, a, i * Br, j * Bc, rows,
                                min(Bc, a->seqlen_k - j * Bc));
        block_step_rows(b, "Oi = Oi + Pij Vj", i, j, rows, NULL, NULL, &Oi);
    }
    tile_store(&t->O, plane, i * Br, 0, &Oi);
    block_step(b, "store Oi", i, -1);
}

enum status standard_attention(struct gpu *gpu, const struct attention *a,
                               struct attention_tensors *t, struct error *error)
{
    const struct attention_args args = {a, t};
    const int planes = attention_planes_q(a), Tr = attention_tiles_q(a),
              Tc = attention_tiles_k(a);
    const bool tiled = a->tiled_gemm;
    const struct grid by_plane = {1, 1, planes}, by_row = {Tr, 1, planes};
    const struct launch launches[] = {
        {.name = "standard_scores",
         .grid = tiled ? (struct grid){Tc, Tr, planes} : by_plane,
         .block = tiled ? scores_tile_block : scores_block},
        {.name = "standard_softmax", .grid = by_row, .block = softmax_block},
        {.name = "standard_output",
         .grid = tiled ? by_row : by_plane,
         .block = tiled ? output_tile_block : output_block},
    };
    if (hbm_alloc(&t->S, gpu, "S", a->dtype, planes, a->seqlen_q, a->seqlen_k, error) ||
        hbm_alloc(&t->P, gpu, "P", a->dtype, planes, a->seqlen_q, a->seqlen_k, error))
        return error->status;
    for (int k = 0; k < 3; k++) {
        struct launch launch = launches[k];
        launch.args = &args;
        launch.alike = attention_alike(a, true); /* masks change no traffic here */
        launch.unlimited_on_chip = !tiled;
        if (gpu_launch(gpu, &launch, error))
            return error->status;
    }
    return STATUS_OK;
}
