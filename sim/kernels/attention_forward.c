#include "kernels/attention_forward.h"

#include "kernels/attention_kernels.h"

struct grid attention_alike(const struct attention *a, bool same_rows)
{
    /* 32 planes of K and V further, heads_q / heads_kv times as many of Q and O, every address
     * is where it was modulo a sector. */
    const int rows = same_rows ? SECTOR_BYTES : 0;
    return (struct grid){rows, rows, SECTOR_BYTES * (a->heads_q / a->heads_kv)};
}

static attention_kernel *const kernels[ALGORITHM_COUNT] = {
    [ALGORITHM_NAIVE] = naive_attention,
    [ALGORITHM_STANDARD] = standard_attention,
    [ALGORITHM_FLASH1] = flash1_forward,
    [ALGORITHM_FLASH2] = flash2_forward,
};

/* The copy engine (TMA) moves boxes whose rows, and the steps between them, are multiples of
 * 16 bytes (CUDA driver API, cuTensorMapEncodeTiled). */
enum { BOX_ALIGNMENT = 16 };

static enum status check_box(const char *option, int elements, const struct attention *a,
                             struct error *error)
{
    const int bytes = elements * dtype_bytes(a->dtype);
    if (bytes % BOX_ALIGNMENT == 0)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "--tma with %s %d: a row of %d %s elements is %d bytes, the copy engine "
                     "needs a multiple of %d",
                     option, elements, elements, dtype_name(a->dtype), bytes, BOX_ALIGNMENT);
}

enum status simulation_check(const struct simulation *s, struct error *error)
{
    const struct attention *a = &s->attention;
    if (attention_check(a, error))
        return error->status;
    if (a->tiled_gemm && s->algorithm != ALGORITHM_STANDARD)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--tiled-gemm with --algorithm %s: only standard attention has it",
                         algorithm_name(s->algorithm));
    if (!s->tma)
        return STATUS_OK;
    if (s->algorithm == ALGORITHM_NAIVE)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--tma with --algorithm naive: it moves single elements, and the copy "
                         "engine moves tiles");
    if (check_box("--head-dim", a->head_dim, a, error) ||
        check_box("--head-dim-v", a->head_dim_v, a, error))
        return error->status;
    if (s->algorithm == ALGORITHM_STANDARD &&
        (check_box("--seqlen-k", a->seqlen_k, a, error) ||
         (a->tiled_gemm && check_box("--block-k", a->block_k, a, error))))
        return error->status;
    return STATUS_OK;
}

static enum status alloc_tensors(struct attention_tensors *t, struct gpu *gpu,
                                 const struct attention *a, const float *q, const float *k,
                                 const float *v, struct error *error)
{
    const int planes_q = attention_planes_q(a), planes_kv = attention_planes_kv(a);
    const enum dtype dtype = a->dtype;
    if (hbm_alloc_input(&t->Q, gpu, "Q", dtype, planes_q, a->seqlen_q, a->head_dim, q, error) ||
        hbm_alloc_input(&t->K, gpu, "K", dtype, planes_kv, a->seqlen_k, a->head_dim, k,
                        error) ||
        hbm_alloc_input(&t->V, gpu, "V", dtype, planes_kv, a->seqlen_k, a->head_dim_v, v,
                        error) ||
        hbm_alloc(&t->O, gpu, "O", dtype, planes_q, a->seqlen_q, a->head_dim_v, error) ||
        hbm_alloc(&t->LSE, gpu, "LSE", DTYPE_F32, planes_q, a->seqlen_q, 1, error))
        return error->status;
    return STATUS_OK;
}

static void free_tensors(struct attention_tensors *t)
{
    struct hbm_tensor *all[] = {&t->Q, &t->K, &t->V, &t->O, &t->LSE,
                                &t->S, &t->P, &t->l, &t->m};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        hbm_free(all[i]);
}

static void start_gpu(struct simulation *s, enum gpu_mode mode)
{
    gpu_init(&s->gpu, s->machine, mode);
    s->gpu.tma = s->tma;
    s->gpu.trace = s->trace;
    s->gpu.observer = s->observer;
    s->gpu.progress = s->progress;
    s->gpu.progress_context = s->progress_context;
}

enum status attention_simulate(struct simulation *s, const float *q, const float *k,
                               const float *v, float *o, float *lse, struct error *error)
{
    if (simulation_check(s, error))
        return error->status;
    start_gpu(s, GPU_DATA);
    struct attention_tensors t = {0};
    enum status status = alloc_tensors(&t, &s->gpu, &s->attention, q, k, v, error);
    if (status == STATUS_OK)
        status = kernels[s->algorithm](&s->gpu, &s->attention, &t, error);
    if (status == STATUS_OK) {
        hbm_download(o, &t.O);
        hbm_download(lse, &t.LSE);
    }
    free_tensors(&t);
    return status;
}

enum status attention_count(struct simulation *s, struct error *error)
{
    if (simulation_check(s, error))
        return error->status;
    start_gpu(s, GPU_COUNTS);
    struct attention_tensors t = {0};
    if (alloc_tensors(&t, &s->gpu, &s->attention, NULL, NULL, NULL, error))
        return error->status;
    return kernels[s->algorithm](&s->gpu, &s->attention, &t, error);
}
