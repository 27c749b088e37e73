#include "cpu/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/problem.h"
#include "common/rows.h"

static int extent(const struct csv *table, int row, const char *column)
{
    return *csv_text(table, row, column) ? (int)csv_int(table, row, column) : 0;
}

struct cpu_run run_of_row(const struct csv *table, int row)
{
    enum cpu_kernel kernel;
    if (!cpu_kernel_parse(&kernel, csv_text(table, row, "kernel")))
        fail_msg("row %d: kernel %s", row, csv_text(table, row, "kernel"));
    struct cpu_run run = {.kernel = kernel,
                          .rows = extent(table, row, "rows"),
                          .cols = extent(table, row, "cols"),
                          .depth = extent(table, row, "depth"),
                          .tile = extent(table, row, "tile")};
    if (kernel < CPU_NAIVE_ATTENTION)
        return run;
    run.a = attention_of_row(table, row);
    run.a.tiled_gemm = kernel == CPU_STANDARD_ATTENTION;
    return run;
}

void run_open(struct cpu_run *run)
{
    struct error error = {0};
    uint64_t seed = 1;
    if (cpu_run_open(run, &error))
        fail_msg("%s", error.text);
    for (int n = 0; n < run->arrays; n++) {
        const struct cpu_run_array *array = &run->array[n];
        float *values = array->memory + run->pad;
        for (int64_t i = 0; array->input && i < array->count; i++)
            values[i] = random_normal(&seed);
    }
    float *A = cpu_run_data(run, "A");
    for (int64_t i = 0; A && i < run->array[0].count; i++)
        A[i] /= sqrtf((float)run->depth); /* sums are about 1, as is their tolerance */
}

struct cpu_launch_counts run_observe(const struct cpu_run *run)
{
    struct cpu_launch_counts sum = {.kernel = ""};
    struct error error = {0};
    if (cpu_run_launch(run, &(struct cpu_options){0}, &error))
        fail_msg("%s", error.text);
    const struct cpu_counts *counts = cpu_counts();
    for (int n = 0; n < counts->launches; n++) {
        for (int way = 0; way < CPU_WAYS; way++) {
            cpu_traffic_add(&sum.hbm[way], &counts->launch[n].hbm[way]);
            cpu_traffic_add(&sum.shared[way], &counts->launch[n].shared[way]);
        }
    }
    return sum;
}
