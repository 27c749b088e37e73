#include "common/gpu.h"

#include <dlfcn.h>

#include "common/ncu_csv.h"
#include "common/progress.h"
#include "common/random_inputs.h"
#include "cuda/cpu/observe.h"
#include "cuda/observe_basic.h"

typedef enum status observe_function(struct observation *, const struct observe_request *,
                                     struct error *);
typedef enum status observe_basic_function(struct observation *, const struct basic_request *,
                                           struct error *);

/* A function of the shared library, which stays loaded: kernels cannot be unloaded safely. NULL
 * after a failure. */
static void *find(const char *function, struct error *error)
{
    static void *library;
    if (!library)
        library = dlopen(FLASHLAB_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        error_format(error, STATUS_BAD_FILE,
                     "--gpu: the CUDA kernels are not built: run make cuda (%s)", dlerror());
        return NULL;
    }
    void *found = dlsym(library, function);
    if (!found)
        error_format(error, STATUS_BAD_FILE, "--gpu: %s: run make cuda again", dlerror());
    return found;
}

static enum status observe(struct observation *seen, enum algorithm algorithm,
                           const struct attention *a, const struct gpu_plan *plan,
                           struct error *error)
{
    observe_function *run = cpu_observe;
    struct random_inputs x;
    if (!plan->cpu)
        *(void **)&run = find("gpu_observe", error); /* as POSIX writes it */
    if (!run || random_inputs_make(&x, a, plan->seed, error))
        return error->status;
    const struct observe_request request = {.algorithm = algorithm,
                                            .attention = *a,
                                            .q = x.q,
                                            .k = x.k,
                                            .v = x.v,
                                            .counters = plan->ncu == NULL,
                                            .steps = plan->steps,
                                            .machine = plan->machine};
    if (plan->cpu)
        progress_on_cpu(algorithm_name(algorithm));
    const enum status status = run(seen, &request, error);
    if (plan->cpu)
        progress_end();
    random_inputs_free(&x);
    if (status)
        error_prefix(error, plan->cpu ? "--cpu: " : "--gpu: ");
    return status;
}

enum status gpu_run(struct observation *seen, enum algorithm algorithm,
                    const struct attention *a, const struct gpu_plan *plan, struct error *error)
{
    struct observation run = {0};
    *seen = run;
    if (plan->ncu &&
        ncu_csv_read(run.launch, MAX_OBSERVED_LAUNCHES, &run.launches, plan->ncu, error)) {
        error_prefix(error, "--ncu ");
        return error->status;
    }
    if (observe(seen, algorithm, a, plan, error))
        return error->status;
    if (plan->ncu) {
        seen->launches = run.launches;
        for (int i = 0; i < run.launches; i++)
            seen->launch[i] = run.launch[i];
        seen->uncounted[0] = '\0';
    }
    return STATUS_OK;
}

enum status gpu_run_basic(struct observation *seen, const struct cpu_run *run,
                          struct error *error)
{
    const struct cpu_run_array *output = &run->array[run->arrays - 1];
    struct basic_request request = {.kernel = cpu_kernel_name(run->kernel),
                                    .rows = run->rows,
                                    .cols = run->cols,
                                    .depth = run->depth,
                                    .tile = run->tile,
                                    .output = output->memory,
                                    .outputs = (size_t)output->count};
    observe_basic_function *observe_basic;
    *seen = (struct observation){0};
    CHECK(!cpu_kernel_is_attention(run->kernel) && run->pad == 0, "%s, %d elements of padding",
          request.kernel, run->pad);
    for (int n = 0; n < run->arrays - 1; n++) {
        request.input[n].name = run->array[n].name;
        request.input[n].values = run->array[n].memory;
        request.input[n].count = (size_t)run->array[n].count;
    }
    *(void **)&observe_basic = find("gpu_observe_basic", error);
    if (!observe_basic)
        return error->status;
    if (observe_basic(seen, &request, error)) {
        error_prefix(error, "--gpu: ");
        return error->status;
    }
    return STATUS_OK;
}
