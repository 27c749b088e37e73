#include "cuda/observe.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/attention.h"
#include "cuda/counters.h"
#include "cuda/device.h"
#include "cuda/trace.h"

/* The launches of each algorithm, in order, as those of the simulator are called. */
static const char *const kernels[ALGORITHM_COUNT][MAX_OBSERVED_LAUNCHES] = {
    [ALGORITHM_NAIVE] = {"naive_attention"},
    [ALGORITHM_STANDARD] = {"standard_scores", "standard_softmax", "standard_output"},
    [ALGORITHM_FLASH1] = {"flash1_forward"},
    [ALGORITHM_FLASH2] = {"flash2_forward"},
};

static enum status see_device(struct observation *seen, struct error *error)
{
    struct device_info info;
    if (device_query(&info, error))
        return error->status;
    snprintf(seen->gpu, sizeof seen->gpu, "%.127s", info.name);
    snprintf(seen->driver, sizeof seen->driver, "%s", info.driver);
    seen->compute_major = info.compute_major;
    seen->compute_minor = info.compute_minor;
    seen->cuda_version = info.runtime_version;
    return STATUS_OK;
}

/* What is launched: a device_work. */
struct work {
    const struct observe_request *request;
    const struct device_tensors *t;
};

static enum status launch(void *context, struct error *error)
{
    const struct work *work = context;
    return attention_launchers[work->request->algorithm](&work->request->attention, work->t,
                                                         error);
}

static enum status see_results(struct observation *seen, const struct observe_request *request,
                               const struct device_tensors *t, struct error *error)
{
    const struct attention *a = &request->attention;
    const size_t rows = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    struct work work = {request, t};
    seen->o = malloc(rows * (size_t)a->head_dim_v * sizeof *seen->o);
    seen->lse = malloc(rows * sizeof *seen->lse);
    if (!seen->o || !seen->lse)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for O of %zu rows", rows);
    if (attention_upload(t, a, request->q, request->k, request->v, error) ||
        launch(&work, error) || stream_wait(t->stream, error))
        return error->status;
    return attention_download(seen->o, seen->lse, request->algorithm, a, t, error);
}

static void see_counters(struct observation *seen, const struct observe_request *request,
                         const struct device_tensors *t)
{
    struct counter_values values[MAX_OBSERVED_LAUNCHES];
    struct counters *counters;
    struct work work = {request, t};
    struct error error;
    int launches = 0;
    if (counters_open(&counters, &error)) {
        snprintf(seen->uncounted, sizeof seen->uncounted, "%.511s", error.text);
        return;
    }
    if (counters_measure(values, MAX_OBSERVED_LAUNCHES, &launches, counters, launch, &work,
                         &error)) {
        snprintf(seen->uncounted, sizeof seen->uncounted, "%.511s", error.text);
        launches = 0;
    }
    counters_close(counters);
    seen->launches = launches;
    for (int n = 0; n < launches; n++) {
        const char *kernel = kernels[request->algorithm][n];
        CHECK(kernel, "launch %d of %s has no name", n, algorithm_name(request->algorithm));
        snprintf(seen->launch[n].kernel, KERNEL_NAME_LENGTH, "%s", kernel);
        for (int k = 0; k < COUNTER_COUNT; k++)
            seen->launch[n].of[k] = values[n].of[k];
    }
}

enum status gpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error)
{
    const struct attention *a = &request->attention;
    struct device_tensors t = {0};
    *seen = (struct observation){0};
    bool failed = attention_check(a, error) || see_device(seen, error) ||
                  device_tensors_alloc(&t, request->algorithm, a, error) ||
                  see_results(seen, request, &t, error);
    if (!failed && request->counters)
        see_counters(seen, request, &t);
    if (!failed && request->steps)
        failed = attention_trace(&seen->steps, request->algorithm, a, &t, error);
    device_tensors_free(&t);
    if (!failed)
        return STATUS_OK;
    observation_free(seen);
    return error->status;
}
