/* FlashAttention-2's order on an Ascend 910B: cube cores multiply, vector cores do the softmax,
 * and S, P and each Pij Vj travel between them through global memory.
 *
 * One launch, a thread block an AI core: each works through its share of the Q tiles. On the
 * hardware its cube core and its vector cores run at the same time, a tile apart; here one
 * after the other. Source of the order: README.md of kernels/manual/common/flash_atten in
 * Huawei's cann/pto-isa, stages compute_qk, compute_p, compute_pv and compute_gu.
 */
#include "kernels/ascend_forward.h"

#include <math.h>

#include "kernels/attention_kernels.h"
#include "ops/tile_ops.h"

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* What every AI core is given. */
struct ascend_args {
    const struct ascend_run *run;
    struct attention_tensors *t;
    struct hbm_tensor *products; /* Oij */
    int ai_cores;                /* that have work */
};

/* The tiles of an AI core. L0A, L0B and L0C serve both products, one after the other. */
struct ascend_tiles {
    struct tile Qi, Kj, Vj, Pij;                         /* L1 */
    struct tile left, right, result;                     /* L0A, L0B, L0C */
    struct tile Sij, P_out, Oij, Oi, m, m_new, l, c, Li; /* UB */
};

static void alloc_tiles(struct ascend_tiles *t, struct thread_block *b,
                        const struct attention *a)
{
    const int Br = a->block_q, Bc = a->block_k, d = a->head_dim, dv = a->head_dim_v;
    const enum dtype dtype = a->dtype;
    tile_alloc(&t->Qi, b, LEVEL_L1, "Qi", dtype, Br, d);
    tile_alloc(&t->Kj, b, LEVEL_L1, "Kj", dtype, Bc, d);
    tile_alloc(&t->Vj, b, LEVEL_L1, "Vj", dtype, Bc, dv);
    tile_alloc(&t->Pij, b, LEVEL_L1, "Pij", dtype, Br, Bc);
    tile_alloc(&t->left, b, LEVEL_L0A, "Qi or Pij", dtype, Br, d > Bc ? d : Bc);
    tile_alloc(&t->right, b, LEVEL_L0B, "Kj or Vj", dtype, Bc, d > dv ? d : dv);
    tile_alloc(&t->result, b, LEVEL_L0C, "Sij or Oij", DTYPE_F32, Br, Bc > dv ? Bc : dv);
    /* Each vector core has room for half of the rows, the odd one included. S, if
     * it is not in F32, arrives where Pij will be. */
    const int rows = (Br + 1) / VECTOR_CORES_PER_CUBE_CORE * VECTOR_CORES_PER_CUBE_CORE;
    tile_alloc(&t->Sij, b, LEVEL_UB, "Sij", DTYPE_F32, rows, Bc);
    tile_alloc(&t->P_out, b, LEVEL_UB, "Pij", dtype, rows, Bc);
    tile_alloc(&t->Oij, b, LEVEL_UB, "Oij", DTYPE_F32, rows, dv);
    tile_alloc(&t->Oi, b, LEVEL_UB, "Oi", DTYPE_F32, rows, dv);
    tile_alloc(&t->m, b, LEVEL_UB, "m", DTYPE_F32, rows, 1);
    tile_alloc(&t->m_new, b, LEVEL_UB, "m_new", DTYPE_F32, rows, 1);
    tile_alloc(&t->l, b, LEVEL_UB, "l", DTYPE_F32, rows, 1);
    tile_alloc(&t->c, b, LEVEL_UB, "c", DTYPE_F32, rows, 1);
    tile_alloc(&t->Li, b, LEVEL_UB, "Li", DTYPE_F32, rows, 1);
}

/* What the cube core has made reaches the vector cores. */
static void cube_to_vector(struct tile *in_ub, struct hbm_tensor *workspace, int slot,
                           const struct tile *in_l0c, const struct ascend *chip)
{
    if (chip->direct) {
        fixpipe_move(in_ub, in_l0c);
        return;
    }
    fixpipe_store(workspace, slot, in_l0c);
    mte2_load(in_ub, in_l0c->rows, in_l0c->cols, workspace, slot, 0);
}

/* And back: what the vector cores have made. */
static void vector_to_cube(struct tile *in_l1, struct hbm_tensor *workspace, int slot,
                           const struct tile *in_ub, const struct ascend *chip)
{
    if (chip->direct) {
        mte3_move(in_l1, in_ub);
        return;
    }
    mte3_store(workspace, slot, 0, in_ub);
    mte2_load(in_l1, in_ub->rows, in_ub->cols, workspace, slot, 0);
}

/* K/V tile j meets the Q tile i that is on chip. */
static void update_tile(struct ascend_tiles *t, const struct ascend_args *args, int plane,
                        int i, int j)
{
    const struct attention *a = &args->run->attention;
    const struct ascend *chip = args->run->chip;
    struct attention_tensors *gm = args->t;
    const int Br = a->block_q, Bc = a->block_k, d = a->head_dim, dv = a->head_dim_v;
    const int rows = min(Br, a->seqlen_q - i * Br), cols = min(Bc, a->seqlen_k - j * Bc);
    const int kv_plane = attention_kv_plane(a, plane);
    const int slot = ASCEND_SLOTS * t->Qi.block->x + j % ASCEND_SLOTS;

    /* Cube core: Sij = Qi KjT. tile_scores() applies the scale for the vector cores. */
    mte2_load(&t->Kj, cols, d, &gm->K, kv_plane, j * Bc);
    mte1_move(&t->left, &t->Qi);
    mte1_move(&t->right, &t->Kj);
    tile_shape(&t->result, rows, cols);
    tile_scores(&t->result, &t->left, &t->right, rows, cols, a->scale);
    cube_to_vector(&t->Sij, &gm->S, slot, &t->result, chip);

    /* Vector cores: online softmax. */
    tile_mask(&t->Sij, a, i * Br, j * Bc, rows, cols);
    tile_row_max(&t->m_new, &t->m, &t->Sij, rows, cols);
    tile_correction(&t->c, &t->m, &t->m_new, rows);
    tile_exp_sum(&t->Sij, &t->m_new, &t->l, &t->c, rows, cols);
    tile_round(&t->Sij, a->dtype, rows, cols);
    tile_shape(&t->P_out, rows, cols);
    tile_copy(&t->P_out, &t->Sij);
    vector_to_cube(&t->Pij, &gm->P, slot, &t->P_out, chip);

    /* Cube core: Oij = Pij Vj. It cannot add to O, which is elsewhere. */
    mte2_load(&t->Vj, cols, dv, &gm->V, kv_plane, j * Bc);
    mte1_move(&t->left, &t->Pij);
    mte1_move(&t->right, &t->Vj);
    tile_shape(&t->result, rows, dv);
    tile_fill(&t->result, 0.0f);
    tile_add_masked_product(&t->result, &t->left, &t->right, a, i * Br, j * Bc, rows, cols);
    cube_to_vector(&t->Oij, args->products, slot, &t->result, chip);

    /* Vector cores: Oi = diag(c) Oi + Oij. */
    tile_scale_rows(&t->Oi, &t->c, rows, dv);
    tile_add(&t->Oi, &t->Oij, rows, dv);
    tile_copy(&t->m, &t->m_new);
}

static void ascend_forward_q_tile(struct ascend_tiles *t, const struct ascend_args *args,
                                  int plane, int i)
{
    const struct attention *a = &args->run->attention;
    struct thread_block *b = t->Qi.block;
    const int Br = a->block_q, rows = min(Br, a->seqlen_q - i * Br);
    mte2_load(&t->Qi, rows, a->head_dim, &args->t->Q, plane, i * Br);
    tile_shape(&t->Oi, rows, a->head_dim_v);
    tile_fill(&t->Oi, 0.0f);
    tile_fill(&t->m, -INFINITY);
    tile_fill(&t->l, 0.0f);

    const int Tc = attention_visited_tiles(a, i);
    for (int j = loop_begin(b, 0); j < Tc; j = loop_next(b, j, Tc))
        update_tile(t, args, plane, i, j);

    tile_divide_rows(&t->Oi, &t->l, rows, a->head_dim_v);
    tile_shape(&t->Li, rows, 1);
    tile_log_sum_exp(&t->Li, &t->m, &t->l, rows);
    mte3_store(&args->t->O, plane, i * Br, &t->Oi); /* rounded where Oij was */
    mte3_store(&args->t->LSE, plane, i * Br, &t->Li);
}

static void ascend_forward_core(struct thread_block *b, const void *arguments)
{
    const struct ascend_args *args = arguments;
    const struct attention *a = &args->run->attention;
    const int Tr = attention_tiles_q(a);
    const int64_t q_tiles = (int64_t)attention_planes_q(a) * Tr;
    struct ascend_tiles tiles;
    alloc_tiles(&tiles, b, a);
    if (block_failed(b))
        return;
    for (int64_t n = b->x; n < q_tiles; n += args->ai_cores)
        ascend_forward_q_tile(&tiles, args, (int)(n / Tr), (int)(n % Tr));
}

static enum status check(const struct ascend_run *run, struct error *error)
{
    const struct attention *a = &run->attention;
    if (attention_check(a, error))
        return error->status;
    if (run->scores_dtype != DTYPE_F32 && run->scores_dtype != a->dtype)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "S in %s: must be f32 or the dtype of Q, K and V, %s",
                         dtype_name(run->scores_dtype), dtype_name(a->dtype));
    return STATUS_OK;
}

/* The problem's tensors, and what stands between the cores. */
static enum status alloc_tensors(struct ascend_args *args, struct gpu *gpu, const float *q,
                                 const float *k, const float *v, struct error *error)
{
    const struct attention *a = &args->run->attention;
    struct attention_tensors *t = args->t;
    const int planes_q = attention_planes_q(a), planes_kv = attention_planes_kv(a);
    const int slots = ASCEND_SLOTS * args->ai_cores;
    if (hbm_alloc_input(&t->Q, gpu, "Q", a->dtype, planes_q, a->seqlen_q, a->head_dim, q,
                        error) ||
        hbm_alloc_input(&t->K, gpu, "K", a->dtype, planes_kv, a->seqlen_k, a->head_dim, k,
                        error) ||
        hbm_alloc_input(&t->V, gpu, "V", a->dtype, planes_kv, a->seqlen_k, a->head_dim_v, v,
                        error) ||
        hbm_alloc(&t->O, gpu, "O", a->dtype, planes_q, a->seqlen_q, a->head_dim_v, error) ||
        hbm_alloc(&t->LSE, gpu, "LSE", DTYPE_F32, planes_q, a->seqlen_q, 1, error))
        return error->status;
    if (args->run->chip->direct)
        return STATUS_OK;
    if (hbm_alloc(&t->S, gpu, "S", args->run->scores_dtype, slots, a->block_q, a->block_k,
                  error) ||
        hbm_alloc(&t->P, gpu, "P", a->dtype, slots, a->block_q, a->block_k, error) ||
        hbm_alloc(args->products, gpu, "Oij", DTYPE_F32, slots, a->block_q, a->head_dim_v,
                  error))
        return error->status;
    return STATUS_OK;
}

static enum status run_mode(struct ascend_run *run, enum gpu_mode mode, const float *q,
                            const float *k, const float *v, float *o, float *lse,
                            struct error *error)
{
    if (check(run, error))
        return error->status;
    struct attention_tensors t = {0};
    struct hbm_tensor products = {0};
    const int64_t q_tiles =
        (int64_t)attention_planes_q(&run->attention) * attention_tiles_q(&run->attention);
    struct ascend_args args = {run, &t, &products, run->chip->ai_cores};
    if (q_tiles < args.ai_cores)
        args.ai_cores = (int)q_tiles;
    gpu_init(&run->gpu, machine_find("Ascend-910B"), mode);
    run->gpu.observer = run->observer;
    enum status status = alloc_tensors(&args, &run->gpu, q, k, v, error);
    if (status == STATUS_OK)
        status = gpu_launch(&run->gpu,
                            &(struct launch){.name = "ascend_forward",
                                             .grid = {args.ai_cores, 1, 1},
                                             .block = ascend_forward_core,
                                             .args = &args,
                                             .capacity = run->chip->capacity},
                            error);
    if (status == STATUS_OK && mode == GPU_DATA) {
        hbm_download(o, &t.O);
        hbm_download(lse, &t.LSE);
    }
    struct hbm_tensor *const all[] = {&t.Q, &t.K, &t.V, &t.O, &t.LSE, &t.S, &t.P, &products};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        hbm_free(all[i]);
    return status;
}

enum status ascend_simulate(struct ascend_run *run, const float *q, const float *k,
                            const float *v, float *o, float *lse, struct error *error)
{
    return run_mode(run, GPU_DATA, q, k, v, o, lse, error);
}

enum status ascend_count(struct ascend_run *run, struct error *error)
{
    return run_mode(run, GPU_COUNTS, NULL, NULL, NULL, NULL, NULL, error);
}
