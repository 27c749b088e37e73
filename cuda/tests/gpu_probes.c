/* Prints what this GPU's counters say of each probe of tests/common/probes.h, as CSV: for
 * tests/test_probes.c, which predicts every number. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/counters.h"
#include "probe_kernels.h"
#include "results.h"

enum { BATCH = 8 }; /* launches that are measured together */

/* Whole numbers of one launch, in the columns' order. */
static const enum counter columns[] = {
    COUNTER_LOAD_SECTORS,
    COUNTER_STORE_SECTORS,
    COUNTER_SHARED_LOAD_INSTRUCTIONS,
    COUNTER_SHARED_LOAD_WAVEFRONTS,
    COUNTER_SHARED_STORE_INSTRUCTIONS,
    COUNTER_SHARED_STORE_WAVEFRONTS,
    COUNTER_MATRIX_LOAD_INSTRUCTIONS,
    COUNTER_MATRIX_LOAD_WAVEFRONTS,
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

struct batch {
    const struct probe *probe;
    int count;
    void *memory;
};

static enum status launch_batch(void *context, struct error *error)
{
    const struct batch *batch = context;
    for (int i = 0; i < batch->count; i++)
        if (launch_probe(&batch->probe[i], batch->memory, error))
            return error->status;
    return STATUS_OK;
}

static void print_probe(const struct probe *probe, const struct counter_values *values)
{
    printf("%s,%d,%d,%s,%d,%d", probe_access_name(probe->access), probe->bytes, probe->lanes,
           probe_pattern_name(probe->pattern), probe->a, probe->b);
    for (int k = 0; k < COLUMNS; k++)
        printf(",%.0f", values->of[columns[k]]);
    printf("\n");
}

static enum status measure(struct counters *counters, void *memory, struct error *error)
{
    static struct probe_list list;
    struct counter_values values[BATCH];
    probe_list_fill(&list);
    for (int first = 0; first < list.count; first += BATCH) {
        const int left = list.count - first;
        struct batch batch = {&list.probe[first], left < BATCH ? left : BATCH, memory};
        int launches;
        if (counters_measure(values, BATCH, &launches, counters, launch_batch, &batch, error))
            return error->status;
        if (launches != batch.count)
            return error_set(error, STATUS_BAD_ARGUMENT, "%d launches measured, not %d",
                             launches, batch.count);
        for (int i = 0; i < launches; i++)
            print_probe(&batch.probe[i], &values[i]);
    }
    return STATUS_OK;
}

int main(void)
{
    struct error error = {0};
    struct counters *counters = NULL;
    void *memory = NULL;
    if (!results_machine(stdout, "make gpu-probes", &error) &&
        !device_alloc(&memory, "the probes' memory", PROBE_SLOTS * 16, &error) &&
        !counters_open(&counters, &error)) {
        printf("access,bytes,lanes,pattern,a,b");
        for (int k = 0; k < COLUMNS; k++)
            printf(",%s", counter_name(columns[k]));
        printf("\n");
        measure(counters, memory, &error);
    }
    counters_close(counters);
    device_free(memory);
    if (error.status)
        fprintf(stderr, "gpu_probes: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
