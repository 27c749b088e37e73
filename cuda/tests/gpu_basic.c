/* Counters and times of the kernels of cuda/basic.h at the shapes that lessons show:
 * cuda/results/h200_basic.csv.
 *
 * Usage: gpu_basic >FILE.csv
 * Softmaxes have 2^26 elements in all, in rows of ever greater length, so that it is seen from
 * where on a row that was read once is no longer in a cache. Counters: one launch. Time: the
 * median of 9 runs, by events, before the profiler is there, which would cost a vector larger
 * than L2 a tenth.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/counters.h"
#include "results.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { SOFTMAX_ELEMENTS = 1 << 26, FIRST_COLS = 1 << 6, LAST_COLS = 1 << 22 };

static const struct timing_plan plan = {.warmup = 2, .repeats = 9};

static const enum counter columns[] = {
    COUNTER_LOAD_SECTORS, COUNTER_STORE_SECTORS,   COUNTER_REDUCE_SECTORS,
    COUNTER_L2_SECTORS,   COUNTER_DRAM_READ_BYTES, COUNTER_DRAM_WRITE_BYTES,
};

static const int vectors[] = {1000, 1 << 20, (1 << 20) + 5, 1 << 24, 1 << 26, 1 << 28};
static const int sides[] = {256, 512, 1024, 2048, 4096};
static const int tiles[] = {16, 32, 64};

static enum status count(struct counter_values *values, struct run *run, struct error *error)
{
    struct counters *counters = NULL;
    int launches;
    if (counters_open(&counters, error))
        return error->status;
    const enum status status =
        counters_measure(values, 1, &launches, counters, run_launch, run, error);
    counters_close(counters);
    return status;
}

/* The time first: no profiler is there yet. */
static enum status measure(struct run *run, struct error *error)
{
    struct counter_values values;
    struct timing time;
    if (device_time(&time, run_launch, run, &plan, error) || count(&values, run, error))
        return error->status;
    results_shape(stdout, run);
    for (size_t k = 0; k < LENGTH(columns); k++)
        printf(",%.0f", values.of[columns[k]]);
    printf(",%.2f\n", time.median_us);
    return STATUS_OK;
}

static enum status measure_one(struct run run, struct error *error)
{
    if (run_open(&run, 0, error))
        return error->status;
    const enum status status = measure(&run, error);
    run_close(&run);
    return status;
}

static enum status measure_vectors(struct error *error)
{
    for (size_t i = 0; i < LENGTH(vectors); i++) {
        const struct run run = {.kernel = KERNEL_VECTOR_ADD, .cols = vectors[i]};
        if (measure_one(run, error))
            return error->status;
    }
    return STATUS_OK;
}

/* The run by that kernel, with each tile that it has. */
static enum status measure_tiles(struct run run, enum kernel kernel, struct error *error)
{
    run.kernel = kernel;
    for (size_t k = 0; k < LENGTH(tiles); k++) {
        run.tile = tiles[k];
        if (run.tile <= kernel_most_tile(kernel) && measure_one(run, error))
            return error->status;
    }
    return STATUS_OK;
}

static enum status measure_matmuls(struct error *error)
{
    for (size_t i = 0; i < LENGTH(sides); i++) {
        const int n = sides[i];
        struct run run = {.kernel = KERNEL_MATMUL_NAIVE, .rows = n, .cols = n, .depth = n};
        if (measure_one(run, error))
            return error->status;
        if (measure_tiles(run, KERNEL_MATMUL_SHARED, error) ||
            measure_tiles(run, KERNEL_MATMUL_TILED, error))
            return error->status;
    }
    return STATUS_OK;
}

static enum status measure_softmaxes(struct error *error)
{
    for (int kernel = KERNEL_SOFTMAX_NAIVE; kernel <= KERNEL_SOFTMAX_ONLINE; kernel++) {
        for (int cols = FIRST_COLS; cols <= LAST_COLS; cols *= 2) {
            const struct run run = {
                .kernel = (enum kernel)kernel, .rows = SOFTMAX_ELEMENTS / cols, .cols = cols};
            if (measure_one(run, error))
                return error->status;
        }
    }
    return STATUS_OK;
}

int main(void)
{
    struct error error = {0};
    if (!results_machine(stdout, "make gpu-basic", &error)) {
        results_shape_columns(stdout);
        printf(",measured_load,measured_store,measured_reduce,l2_sectors,dram_read_bytes,"
               "dram_write_bytes,median_us\n");
        if (!measure_vectors(&error) && !measure_matmuls(&error))
            measure_softmaxes(&error);
    }
    if (error.status)
        fprintf(stderr, "gpu_basic: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
