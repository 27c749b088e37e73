/* Naive attention: one warp a query row, one key at a time, every operand from HBM.
 *
 * For each key the warp loads the query row and the key row again, 32 elements a request, and
 * adds up their products; then it loads the value row and adds it to its output row, with the
 * softmax kept online. Nothing but the running row (m, l, O) stays on chip, so K and V are
 * passed over once for every query: N passes.
 */
#include <math.h>

#include "core/trace.h"
#include "kernels/attention_kernels.h"
#include "ops/tile_ops.h"

/* Loads the next columns col .. col + 31 of a row, fewer at its end; returns how many. */
static int load_row_part(struct thread_block *b, float value[WARP_LANES],
                         const struct hbm_tensor *tensor, int plane, int row, int col)
{
    const int lanes = tensor->cols - col < WARP_LANES ? tensor->cols - col : WARP_LANES;
    int64_t element[WARP_LANES];
    for (int lane = 0; lane < lanes; lane++)
        element[lane] = (int64_t)row * tensor->cols + col + lane;
    warp_load(b, value, tensor, plane, element, lanes);
    return lanes;
}

/* S <- scale * (row i of Q) . (row j of K) */
static void score(struct tile *S, const struct attention_args *args, int plane, int i, int j)
{
    struct thread_block *b = S->block;
    const struct hbm_tensor *Q = &args->t->Q, *K = &args->t->K;
    float sum = 0.0f;
    for (int c = 0; c < Q->cols; c += WARP_LANES) {
        float q[WARP_LANES] = {0}, k[WARP_LANES] = {0};
        const int lanes = load_row_part(b, q, Q, plane, i, c);
        load_row_part(b, k, K, attention_kv_plane(args->a, plane), j, c);
        for (int lane = 0; lane < lanes; lane++)
            sum += q[lane] * k[lane];
    }
    count_flops(b, 2 * Q->cols, 1, 0);
    if (S->data)
        tile_writable(S)[0] = args->a->scale * sum;
}

/* O <- O + P * (row j of V) */
static void add_value_row(struct tile *O, const struct tile *P,
                          const struct attention_args *args, int plane, int j)
{
    const struct hbm_tensor *V = &args->t->V;
    for (int c = 0; c < V->cols; c += WARP_LANES) {
        float v[WARP_LANES] = {0};
        const int lanes =
            load_row_part(O->block, v, V, attention_kv_plane(args->a, plane), j, c);
        for (int lane = 0; O->data && lane < lanes; lane++)
            tile_writable(O)[c + lane] += P->data[0] * v[lane];
    }
    count_flops(O->block, 2 * V->cols, 0, 0);
}

static void store_row(struct hbm_tensor *dst, int plane, int row, const struct tile *src)
{
    for (int c = 0; c < dst->cols; c += WARP_LANES) {
        const int lanes = dst->cols - c < WARP_LANES ? dst->cols - c : WARP_LANES;
        int64_t element[WARP_LANES];
        float value[WARP_LANES] = {0};
        for (int lane = 0; lane < lanes; lane++) {
            element[lane] = (int64_t)row * dst->cols + c + lane;
            if (src->data)
                value[lane] = src->data[c + lane];
        }
        warp_store(src->block, dst, plane, element, value, lanes);
    }
}

static void naive_attention_block(struct thread_block *b, const void *arguments)
{
    const struct attention_args *args = arguments;
    const struct attention *a = args->a;
    const int i = b->x, plane = b->z;
    struct tile Sij, m, m_new, l, c, Oi, Li;
    tile_alloc(&Sij, b, LEVEL_REGISTERS, "Sij", DTYPE_F32, 1, 1);
    tile_alloc(&m, b, LEVEL_REGISTERS, "m", DTYPE_F32, 1, 1);
    tile_alloc(&m_new, b, LEVEL_REGISTERS, "m_new", DTYPE_F32, 1, 1);
    tile_alloc(&l, b, LEVEL_REGISTERS, "l", DTYPE_F32, 1, 1);
    tile_alloc(&c, b, LEVEL_REGISTERS, "c", DTYPE_F32, 1, 1);
    tile_alloc(&Oi, b, LEVEL_REGISTERS, "Oi", DTYPE_F32, 1, a->head_dim_v);
    tile_alloc(&Li, b, LEVEL_REGISTERS, "Li", DTYPE_F32, 1, 1);
    if (block_failed(b))
        return;

    tile_fill(&m, -INFINITY);
    tile_fill(&l, 0.0f);
    tile_fill(&Oi, 0.0f);
    const int keys = attention_visible_keys(a, i);
    for (int j = loop_begin(b, 0); j < keys; j = loop_next(b, j, keys)) {
        score(&Sij, args, plane, i, j);
        block_step(b, "Sij = scale Qi KjT", i, j);
        tile_row_max(&m_new, &m, &Sij, 1, 1);
        tile_correction(&c, &m, &m_new, 1);
        tile_exp_sum(&Sij, &m_new, &l, &c, 1, 1);
        block_step(b, "online softmax", i, j);
        tile_scale_rows(&Oi, &c, 1, Oi.cols);
        add_value_row(&Oi, &Sij, args, plane, j);
        tile_copy(&m, &m_new);
        block_step_rows(b, "Oi = diag(c) Oi + Pij Vj", i, j, 1, &m, &l, &Oi);
    }
    tile_divide_rows(&Oi, &l, 1, Oi.cols);
    tile_log_sum_exp(&Li, &m, &l, 1);
    store_row(&args->t->O, plane, i, &Oi);
    store_row(&args->t->LSE, plane, i, &Li);
    block_step(b, "store Oi, Li", i, -1);
}

enum status naive_attention(struct gpu *gpu, const struct attention *a,
                            struct attention_tensors *t, struct error *error)
{
    const struct attention_args args = {a, t};
    return gpu_launch(gpu,
                      &(struct launch){.name = "naive_attention",
                                       .grid = {a->seqlen_q, 1, attention_planes_q(a)},
                                       .alike = attention_alike(a, a->mask == MASK_NONE),
                                       .block = naive_attention_block,
                                       .args = &args},
                      error);
}
