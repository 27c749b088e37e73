#include "cuda/observe.h"

#include <stdlib.h>

#include "cuda/attention.h"
#include "cuda/see.h"
#include "cuda/trace.h"

/* The launches of each algorithm, in order, as those of the simulator are called. */
static const char *const kernels[ALGORITHM_COUNT][MAX_OBSERVED_LAUNCHES] = {
    [ALGORITHM_NAIVE] = {"naive_attention"},
    [ALGORITHM_STANDARD] = {"standard_scores", "standard_softmax", "standard_output"},
    [ALGORITHM_FLASH1] = {"flash1_forward"},
    [ALGORITHM_FLASH2] = {"flash2_forward"},
};

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

enum status gpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error)
{
    const struct attention *a = &request->attention;
    struct device_tensors t = {0};
    *seen = (struct observation){0};
    bool failed = attention_check(a, error) || see_device(seen, error) ||
                  device_tensors_alloc(&t, request->algorithm, a, error) ||
                  see_results(seen, request, &t, error);
    struct work work = {request, &t};
    if (!failed && request->counters)
        see_counters(seen, kernels[request->algorithm], launch, &work);
    if (!failed && request->steps)
        failed = attention_trace(&seen->steps, request->algorithm, a, &t, error);
    device_tensors_free(&t);
    if (!failed)
        return STATUS_OK;
    observation_free(seen);
    return error->status;
}
