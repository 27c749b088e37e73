#include "common/gpu.h"

#include <dlfcn.h>

#include "common/ncu_csv.h"
#include "common/progress.h"
#include "common/random_inputs.h"
#include "cuda/cpu/observe.h"

typedef enum status observe_function(struct observation *, const struct observe_request *,
                                     struct error *);

/* gpu_observe() of the shared library, which stays loaded: kernels cannot be unloaded safely.
 */
static enum status find_observe(observe_function **observe, struct error *error)
{
    static void *library;
    if (!library)
        library = dlopen(FLASHLAB_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(error, STATUS_BAD_FILE,
                         "--gpu: the CUDA kernels are not built: run make cuda (%s)",
                         dlerror());
    *(void **)observe = dlsym(library, "gpu_observe"); /* as POSIX writes it */
    if (!*observe)
        return error_set(error, STATUS_BAD_FILE, "--gpu: %s", dlerror());
    return STATUS_OK;
}

static enum status observe(struct observation *seen, enum algorithm algorithm,
                           const struct attention *a, const struct gpu_plan *plan,
                           struct error *error)
{
    observe_function *run = cpu_observe;
    struct random_inputs x;
    if ((!plan->cpu && find_observe(&run, error)) ||
        random_inputs_make(&x, a, plan->seed, error))
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
