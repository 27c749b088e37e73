#include "cuda/attention.h"

#include <math.h>
#include <stdlib.h>

#include "cuda/device.h"

attention_launcher *const attention_launchers[ALGORITHM_COUNT] = {
    [ALGORITHM_NAIVE] = launch_naive_attention,
    [ALGORITHM_STANDARD] = launch_standard_attention,
    [ALGORITHM_FLASH1] = launch_flash1_forward,
    [ALGORITHM_FLASH2] = launch_flash2_forward,
};

attention_launcher *const trace_launchers[ALGORITHM_COUNT] = {
    [ALGORITHM_NAIVE] = trace_naive_attention,
    [ALGORITHM_STANDARD] = trace_standard_attention,
    [ALGORITHM_FLASH1] = trace_flash1_forward,
    [ALGORITHM_FLASH2] = trace_flash2_forward,
};

/* Bytes of planes * rows * cols floats. */
static size_t bytes_of(int planes, int rows, int cols)
{
    return (size_t)planes * (size_t)rows * (size_t)cols * sizeof(float);
}

static size_t q_bytes(const struct attention *a)
{
    return bytes_of(attention_planes_q(a), a->seqlen_q, a->head_dim);
}

static size_t k_bytes(const struct attention *a)
{
    return bytes_of(attention_planes_kv(a), a->seqlen_k, a->head_dim);
}

static size_t v_bytes(const struct attention *a)
{
    return bytes_of(attention_planes_kv(a), a->seqlen_k, a->head_dim_v);
}

static size_t o_bytes(const struct attention *a)
{
    return bytes_of(attention_planes_q(a), a->seqlen_q, a->head_dim_v);
}

static size_t row_bytes(const struct attention *a)
{
    return bytes_of(attention_planes_q(a), a->seqlen_q, 1);
}

enum status device_tensors_alloc(struct device_tensors *t, enum algorithm algorithm,
                                 const struct attention *a, struct error *error)
{
    *t = (struct device_tensors){0};
    const size_t s_bytes = algorithm == ALGORITHM_STANDARD
                               ? bytes_of(attention_planes_q(a), a->seqlen_q, a->seqlen_k)
                               : 0;
    const size_t state_bytes = algorithm == ALGORITHM_FLASH1 ? row_bytes(a) : 0;
    const struct {
        float **memory;
        const char *name;
        size_t bytes; /* 0: not needed */
    } all[] = {
        {&t->Q, "Q", q_bytes(a)}, {&t->K, "K", k_bytes(a)},       {&t->V, "V", v_bytes(a)},
        {&t->O, "O", o_bytes(a)}, {&t->LSE, "LSE", row_bytes(a)}, {&t->S, "S", s_bytes},
        {&t->P, "P", s_bytes},    {&t->l, "l", state_bytes},      {&t->m, "m", state_bytes}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].bytes > 0 &&
            device_alloc((void **)all[i].memory, all[i].name, all[i].bytes, error)) {
            device_tensors_free(t);
            return error->status;
        }
    }
    return STATUS_OK;
}

void device_tensors_free(struct device_tensors *t)
{
    float *const all[] = {t->Q, t->K, t->V, t->O, t->LSE, t->S, t->P, t->l, t->m};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        device_free(all[i]);
    *t = (struct device_tensors){0};
}

static enum status flash1_finish_lse(float *lse, const struct attention *a,
                                     const struct device_tensors *t, struct error *error)
{
    const size_t bytes = row_bytes(a), count = bytes / sizeof(float);
    float *l = malloc(bytes);
    if (!l)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %zu floats", count);
    enum status status = device_download(lse, t->m, bytes, error);
    if (status == STATUS_OK)
        status = device_download(l, t->l, bytes, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        lse[i] = l[i] == 0.0f ? -INFINITY : lse[i] + logf(l[i]);
    free(l);
    return status;
}

enum status attention_upload(const struct device_tensors *t, const struct attention *a,
                             const float *q, const float *k, const float *v,
                             struct error *error)
{
    if (device_upload(t->Q, q, q_bytes(a), error) || device_upload(t->K, k, k_bytes(a), error))
        return error->status;
    return device_upload(t->V, v, v_bytes(a), error);
}

enum status attention_download(float *o, float *lse, enum algorithm algorithm,
                               const struct attention *a, const struct device_tensors *t,
                               struct error *error)
{
    if (device_download(o, t->O, o_bytes(a), error))
        return error->status;
    if (algorithm == ALGORITHM_FLASH1)
        return flash1_finish_lse(lse, a, t, error);
    return device_download(lse, t->LSE, row_bytes(a), error);
}

enum status attention_on_device(enum algorithm algorithm, const struct attention *a,
                                const float *q, const float *k, const float *v, float *o,
                                float *lse, struct error *error)
{
    struct device_tensors t;
    if (attention_check(a, error) || device_tensors_alloc(&t, algorithm, a, error))
        return error->status;
    const bool failed = attention_upload(&t, a, q, k, v, error) ||
                        attention_launchers[algorithm](a, &t, error) ||
                        stream_wait(t.stream, error) ||
                        attention_download(o, lse, algorithm, a, &t, error);
    device_tensors_free(&t);
    return failed ? error->status : STATUS_OK;
}
