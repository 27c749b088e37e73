#include "cuda/observe_basic.h"

#include <string.h>

#include "cuda/basic.h"
#include "cuda/see.h"

/* What is launched: a device_work. */
struct work {
    const struct basic_request *request;
    float *input[BASIC_INPUTS], *output; /* on the device, owned */
};

static enum status launch(void *context, struct error *error)
{
    const struct work *w = context;
    const struct basic_request *r = w->request;
    const struct matmul_shape shape = {r->rows, r->cols, r->depth};
    const float *first = w->input[0], *second = w->input[1];
    if (strcmp(r->kernel, "vector_add") == 0)
        return launch_vector_add(w->output, first, second, r->cols, NULL, error);
    if (strcmp(r->kernel, "matmul_naive") == 0)
        return launch_matmul_naive(w->output, first, second, &shape, NULL, error);
    if (strcmp(r->kernel, "matmul_shared") == 0)
        return launch_matmul_shared(w->output, first, second, &shape, r->tile, NULL, error);
    if (strcmp(r->kernel, "matmul_tiled") == 0)
        return launch_matmul_tiled(w->output, first, second, &shape, r->tile, NULL, error);
    if (strcmp(r->kernel, "softmax_naive") == 0)
        return launch_softmax_naive(w->output, first, r->rows, r->cols, NULL, error);
    if (strcmp(r->kernel, "softmax_safe") == 0)
        return launch_softmax_safe(w->output, first, r->rows, r->cols, NULL, error);
    CHECK(strcmp(r->kernel, "softmax_online") == 0, "kernel %s", r->kernel);
    return launch_softmax_online(w->output, first, r->rows, r->cols, NULL, error);
}

static enum status upload(struct work *work, struct error *error)
{
    const struct basic_request *r = work->request;
    for (int n = 0; n < BASIC_INPUTS && r->input[n].values; n++) {
        const size_t bytes = r->input[n].count * sizeof(float);
        if (device_alloc((void **)&work->input[n], r->input[n].name, bytes, error) ||
            device_upload(work->input[n], r->input[n].values, bytes, error))
            return error->status;
    }
    return device_alloc((void **)&work->output, "the result", r->outputs * sizeof(float),
                        error);
}

static enum status see_run(struct observation *seen, struct work *work, struct error *error)
{
    static const struct timing_plan plan = {.warmup = 2, .repeats = 9};
    const struct basic_request *r = work->request;
    struct timing time;
    if (upload(work, error) || launch(work, error) || stream_wait(NULL, error) ||
        device_download(r->output, work->output, r->outputs * sizeof(float), error) ||
        device_time(&time, launch, work, &plan, error))
        return error->status;
    seen->median_us = time.median_us;
    return STATUS_OK;
}

enum status gpu_observe_basic(struct observation *seen, const struct basic_request *request,
                              struct error *error)
{
    const char *const kernels[MAX_OBSERVED_LAUNCHES] = {request->kernel};
    struct work work = {.request = request};
    *seen = (struct observation){0};
    const bool failed = see_device(seen, error) || see_run(seen, &work, error);
    if (!failed)
        see_counters(seen, kernels, launch, &work);
    for (int n = 0; n < BASIC_INPUTS; n++)
        device_free(work.input[n]);
    device_free(work.output);
    if (!failed)
        return STATUS_OK;
    observation_free(seen);
    return error->status;
}
