#include "cuda/cpu/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cpu/run.h"

static void see_launch(struct observed_launch *seen, const struct cpu_launch_counts *counts)
{
    const struct cpu_traffic *load = &counts->shared[CPU_LOAD];
    const struct cpu_traffic *store = &counts->shared[CPU_STORE];
    const struct {
        enum counter counter;
        int64_t value;
    } known[] = {
        {COUNTER_LOAD_SECTORS, counts->hbm[CPU_LOAD].sectors},
        {COUNTER_STORE_SECTORS, counts->hbm[CPU_STORE].sectors},
        {COUNTER_REDUCE_SECTORS, counts->hbm[CPU_REDUCE].sectors},
        {COUNTER_SHARED_LOAD_INSTRUCTIONS, load->requests},
        {COUNTER_SHARED_LOAD_WAVEFRONTS, load->wavefronts},
        {COUNTER_SHARED_STORE_INSTRUCTIONS, store->requests},
        {COUNTER_SHARED_STORE_WAVEFRONTS, store->wavefronts},
        {COUNTER_SHARED_LOAD_CONFLICTS, load->wavefronts - load->least_wavefronts},
        {COUNTER_SHARED_STORE_CONFLICTS, store->wavefronts - store->least_wavefronts},
    };
    snprintf(seen->kernel, sizeof seen->kernel, "%.47s", counts->kernel);
    for (int k = 0; k < COUNTER_COUNT; k++)
        seen->of[k] = -1;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        seen->of[known[k].counter] = (double)known[k].value;
}

static void see_counts(struct observation *seen, const struct cpu_counts *counts)
{
    CHECK(counts->launches <= MAX_OBSERVED_LAUNCHES, "%d launches", counts->launches);
    seen->launches = counts->launches;
    for (int n = 0; n < counts->launches; n++)
        see_launch(&seen->launch[n], &counts->launch[n]);
}

static enum status see_results(struct observation *seen, const struct cpu_run *run,
                               struct error *error)
{
    const struct attention *a = &run->a;
    const size_t rows = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    const size_t bytes = rows * (size_t)a->head_dim_v * sizeof *seen->o;
    seen->o = malloc(bytes);
    seen->lse = malloc(rows * sizeof *seen->lse);
    if (!seen->o || !seen->lse)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for O of %zu rows", rows);
    memcpy(seen->o, cpu_run_data(run, "O"), bytes);
    cpu_run_lse(seen->lse, run);
    return STATUS_OK;
}

static void fill(const struct cpu_run *run, const struct observe_request *request)
{
    const float *const inputs[] = {request->q, request->k, request->v};
    for (int n = 0; n < 3; n++) /* Q, K and V are the first arrays of attention kernels */
        memcpy(run->array[n].memory, inputs[n],
               (size_t)run->array[n].count * sizeof *inputs[n]);
}

enum status cpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error)
{
    struct cpu_run run = {.kernel =
                              (enum cpu_kernel)(CPU_NAIVE_ATTENTION + (int)request->algorithm),
                          .a = request->attention};
    *seen = (struct observation){.gpu = "this CPU", .on_cpu = true};
    const struct cpu_options options = {
        .unobserved = !request->counters && !request->steps,
        .shared_bytes = request->machine ? request->machine->sram_bytes_per_block : 0,
        .step_log = request->steps ? &seen->steps : NULL};
    if (cpu_run_open(&run, error))
        return error->status;
    fill(&run, request);
    const bool failed = cpu_run_launch(&run, &options, error) || see_results(seen, &run, error);
    if (!failed && request->counters)
        see_counts(seen, cpu_counts());
    cpu_run_close(&run);
    if (!failed)
        return STATUS_OK;
    observation_free(seen);
    return error->status;
}
