/* The host interface in a build without nvcc: every call says so. */
#include "cuda/attention.h"
#include "cuda/basic.h"
#include "cuda/counters.h"
#include "cuda/device.h"

static enum status no_cuda(struct error *error)
{
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "built without CUDA: nvcc was not found (make cuda says where it looks)");
}

enum status device_query(struct device_info *info, struct error *error)
{
    *info = (struct device_info){0};
    return no_cuda(error);
}

enum status device_alloc(void **memory, const char *name, size_t bytes, struct error *error)
{
    (void)name, (void)bytes;
    *memory = NULL;
    return no_cuda(error);
}

void device_free(void *memory)
{
    (void)memory;
}

enum status device_upload(void *device, const void *host, size_t bytes, struct error *error)
{
    (void)device, (void)host, (void)bytes;
    return no_cuda(error);
}

enum status device_download(void *host, const void *device, size_t bytes, struct error *error)
{
    (void)host, (void)device, (void)bytes;
    return no_cuda(error);
}

enum status device_copy(void *dst, const void *src, size_t bytes, void *stream,
                        struct error *error)
{
    (void)dst, (void)src, (void)bytes, (void)stream;
    return no_cuda(error);
}

enum status stream_create(void **stream, struct error *error)
{
    *stream = NULL;
    return no_cuda(error);
}

void stream_destroy(void *stream)
{
    (void)stream;
}

enum status stream_wait(void *stream, struct error *error)
{
    (void)stream;
    return no_cuda(error);
}

enum status device_time(struct timing *timing, device_work *work, void *context,
                        const struct timing_plan *plan, struct error *error)
{
    (void)timing, (void)work, (void)context, (void)plan;
    return no_cuda(error);
}

static enum status no_launch(const struct attention *a, const struct device_tensors *t,
                             struct error *error)
{
    (void)a, (void)t;
    return no_cuda(error);
}

attention_launcher *const attention_launchers[ALGORITHM_COUNT] = {
    [ALGORITHM_NAIVE] = no_launch,
    [ALGORITHM_STANDARD] = no_launch,
    [ALGORITHM_FLASH1] = no_launch,
    [ALGORITHM_FLASH2] = no_launch,
};

enum status device_tensors_alloc(struct device_tensors *t, enum algorithm algorithm,
                                 const struct attention *a, struct error *error)
{
    (void)algorithm, (void)a;
    *t = (struct device_tensors){0};
    return no_cuda(error);
}

void device_tensors_free(struct device_tensors *t)
{
    (void)t;
}

enum status flash1_finish_lse(float *lse, const struct attention *a,
                              const struct device_tensors *t, struct error *error)
{
    (void)lse, (void)a, (void)t;
    return no_cuda(error);
}

enum status attention_on_device(enum algorithm algorithm, const struct attention *a,
                                const float *q, const float *k, const float *v, float *o,
                                float *lse, struct error *error)
{
    (void)algorithm, (void)a, (void)q, (void)k, (void)v, (void)o, (void)lse;
    return no_cuda(error);
}

enum status launch_naive_attention(const struct attention *a, const struct device_tensors *t,
                                   struct error *error)
{
    return no_launch(a, t, error);
}

enum status launch_standard_attention(const struct attention *a, const struct device_tensors *t,
                                      struct error *error)
{
    return no_launch(a, t, error);
}

enum status launch_flash1_forward(const struct attention *a, const struct device_tensors *t,
                                  struct error *error)
{
    return no_launch(a, t, error);
}

enum status launch_flash2_forward(const struct attention *a, const struct device_tensors *t,
                                  struct error *error)
{
    return no_launch(a, t, error);
}

enum status launch_vector_add(float *c, const float *a, const float *b, int64_t count,
                              void *stream, struct error *error)
{
    (void)c, (void)a, (void)b, (void)count, (void)stream;
    return no_cuda(error);
}

enum status launch_matmul_naive(float *C, const float *A, const float *B,
                                const struct matmul_shape *shape, void *stream,
                                struct error *error)
{
    (void)C, (void)A, (void)B, (void)shape, (void)stream;
    return no_cuda(error);
}

enum status launch_matmul_tiled(float *C, const float *A, const float *B,
                                const struct matmul_shape *shape, int tile, void *stream,
                                struct error *error)
{
    (void)C, (void)A, (void)B, (void)shape, (void)tile, (void)stream;
    return no_cuda(error);
}

enum status launch_softmax_safe(float *Y, const float *X, int rows, int cols, void *stream,
                                struct error *error)
{
    (void)Y, (void)X, (void)rows, (void)cols, (void)stream;
    return no_cuda(error);
}

enum status launch_softmax_online(float *Y, const float *X, int rows, int cols, void *stream,
                                  struct error *error)
{
    return launch_softmax_safe(Y, X, rows, cols, stream, error);
}

const char *counter_metric(enum counter counter)
{
    (void)counter;
    return "";
}

enum status counters_open(struct counters **counters, struct error *error)
{
    *counters = NULL;
    return no_cuda(error);
}

enum status counters_measure(struct counter_values *values, int most, int *launches,
                             struct counters *counters, device_work *work, void *context,
                             struct error *error)
{
    (void)values, (void)most, (void)counters, (void)work, (void)context;
    *launches = 0;
    return no_cuda(error);
}

void counters_close(struct counters *counters)
{
    (void)counters;
}
