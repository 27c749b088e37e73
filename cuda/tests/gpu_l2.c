/* Prints what passes between the SMs, L2 and DRAM in runs of our kernels with cold caches, as
 * CSV: for tests/test_l2_twins.c, which holds the model of L2 to it.
 *
 * The counters take several passes. Before each, memory of 8 times the size of L2 is read: L2
 * is then full of clean lines that the kernels do not use. A run of several launches is counted
 * as a whole, and the later launches find in L2 what the earlier ones left there.
 *
 * What collides in L2 depends on where arrays lie: each run is counted in several places. Rows
 * of the kernel "wait", which touches nothing, say what DRAM moves meanwhile for others.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cold_cache.h"
#include "common/problem.h"
#include "cuda/counters.h"
#include "l2_curve_kernels.h"
#include "results.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const struct {
    const char *column, *metric;
} counted[] = {
    {"dram_read_bytes", "dram__bytes_read.sum"},
    {"dram_write_bytes", "dram__bytes_write.sum"},
    {"duration_ns", "gpu__time_duration.sum"},
    /* what instructions asked for */
    {"load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    {"store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    /* of L2: a sector that crosses from one partition to the other counts in both */
    {"l2_read_sectors", "lts__t_sectors_op_read.sum"},
    {"l2_write_sectors", "lts__t_sectors_op_write.sum"},
};
enum { COUNTED = LENGTH(counted), PLACES = 5, WAIT_NS = 300000000 };

/* Vectors have cols only, softmaxes rows and cols, products all. */
static const struct run basic_runs[] = {
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 20},
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 22},
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 23},
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 24},
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 25},
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 26},
    {.kernel = KERNEL_SOFTMAX_SAFE, .rows = 8192, .cols = 1024},
    {.kernel = KERNEL_SOFTMAX_SAFE, .rows = 8192, .cols = 2048},
    {.kernel = KERNEL_SOFTMAX_SAFE, .rows = 8192, .cols = 4096},
    {.kernel = KERNEL_SOFTMAX_SAFE, .rows = 8192, .cols = 8192},
    {.kernel = KERNEL_SOFTMAX_SAFE, .rows = 4096, .cols = 16384},
    {.kernel = KERNEL_SOFTMAX_ONLINE, .rows = 8192, .cols = 1024},
    {.kernel = KERNEL_SOFTMAX_ONLINE, .rows = 8192, .cols = 2048},
    {.kernel = KERNEL_SOFTMAX_ONLINE, .rows = 8192, .cols = 4096},
    {.kernel = KERNEL_SOFTMAX_ONLINE, .rows = 8192, .cols = 8192},
    {.kernel = KERNEL_SOFTMAX_ONLINE, .rows = 4096, .cols = 16384},
    {.kernel = KERNEL_MATMUL_NAIVE, .rows = 1024, .cols = 1024, .depth = 1024},
    {.kernel = KERNEL_MATMUL_NAIVE, .rows = 256, .cols = 4096, .depth = 2048},
    {.kernel = KERNEL_MATMUL_NAIVE, .rows = 256, .cols = 4096, .depth = 4096},
    {.kernel = KERNEL_MATMUL_NAIVE, .rows = 128, .cols = 8192, .depth = 4096},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 1024, .cols = 1024, .depth = 1024, .tile = 64},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 2048, .cols = 2048, .depth = 2048, .tile = 64},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 3072, .cols = 3072, .depth = 3072, .tile = 64},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 4096, .cols = 4096, .depth = 4096, .tile = 64},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 2048, .cols = 2048, .depth = 2048, .tile = 32},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 3072, .cols = 3072, .depth = 3072, .tile = 32},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 2048, .cols = 2048, .depth = 2048, .tile = 16},
};

/* One sequence, tiles of 64 x 64. */
static const struct {
    enum kernel kernel;
    int heads, seqlen, head_dim;
    enum mask mask;
} attention_runs[] = {
    {KERNEL_STANDARD, 1, 512, 64, MASK_NONE},   {KERNEL_STANDARD, 1, 1024, 64, MASK_NONE},
    {KERNEL_STANDARD, 1, 2048, 64, MASK_NONE},  {KERNEL_STANDARD, 1, 4096, 64, MASK_NONE},
    {KERNEL_STANDARD, 4, 1024, 64, MASK_NONE},  {KERNEL_STANDARD, 4, 2048, 64, MASK_NONE},
    {KERNEL_STANDARD, 4, 4096, 64, MASK_NONE},  {KERNEL_STANDARD, 16, 512, 64, MASK_NONE},
    {KERNEL_STANDARD, 16, 1024, 64, MASK_NONE}, {KERNEL_STANDARD, 16, 2048, 64, MASK_NONE},
    {KERNEL_FLASH1, 1, 4096, 64, MASK_NONE},    {KERNEL_FLASH1, 1, 8192, 64, MASK_NONE},
    {KERNEL_FLASH1, 4, 4096, 64, MASK_NONE},    {KERNEL_FLASH1, 4, 8192, 64, MASK_NONE},
    {KERNEL_FLASH1, 16, 1024, 64, MASK_NONE},   {KERNEL_FLASH1, 16, 2048, 64, MASK_NONE},
    {KERNEL_FLASH1, 16, 4096, 64, MASK_NONE},   {KERNEL_FLASH1, 16, 8192, 64, MASK_NONE},
    {KERNEL_FLASH1, 16, 16384, 64, MASK_NONE},  {KERNEL_FLASH1, 64, 1024, 64, MASK_NONE},
    {KERNEL_FLASH1, 64, 2048, 64, MASK_NONE},   {KERNEL_FLASH1, 64, 4096, 64, MASK_NONE},
    {KERNEL_FLASH1, 16, 4096, 64, MASK_CAUSAL}, {KERNEL_FLASH1, 16, 8192, 64, MASK_CAUSAL},
    {KERNEL_FLASH1, 16, 2048, 128, MASK_NONE},  {KERNEL_FLASH1, 16, 4096, 128, MASK_NONE},
    {KERNEL_FLASH2, 1, 1024, 64, MASK_NONE},    {KERNEL_FLASH2, 1, 16384, 64, MASK_NONE},
    {KERNEL_FLASH2, 4, 4096, 64, MASK_NONE},    {KERNEL_FLASH2, 4, 8192, 64, MASK_NONE},
    {KERNEL_FLASH2, 4, 16384, 64, MASK_NONE},   {KERNEL_FLASH2, 16, 1024, 64, MASK_NONE},
    {KERNEL_FLASH2, 16, 2048, 64, MASK_NONE},   {KERNEL_FLASH2, 16, 4096, 64, MASK_NONE},
    {KERNEL_FLASH2, 16, 8192, 64, MASK_NONE},   {KERNEL_FLASH2, 16, 16384, 64, MASK_NONE},
    {KERNEL_FLASH2, 64, 1024, 64, MASK_NONE},   {KERNEL_FLASH2, 64, 4096, 64, MASK_NONE},
    {KERNEL_FLASH2, 16, 4096, 64, MASK_CAUSAL}, {KERNEL_FLASH2, 16, 8192, 64, MASK_CAUSAL},
    {KERNEL_FLASH2, 64, 4096, 64, MASK_CAUSAL}, {KERNEL_FLASH2, 16, 2048, 128, MASK_NONE},
    {KERNEL_FLASH2, 16, 8192, 128, MASK_NONE},
};

static struct run attention_run(size_t i)
{
    const int heads = attention_runs[i].heads, d = attention_runs[i].head_dim;
    return (struct run){.kernel = attention_runs[i].kernel,
                        .a = {.batch = 1,
                              .heads_q = heads,
                              .heads_kv = heads,
                              .seqlen_q = attention_runs[i].seqlen,
                              .seqlen_k = attention_runs[i].seqlen,
                              .head_dim = d,
                              .head_dim_v = d,
                              .scale = 1.0f / sqrtf((float)d),
                              .mask = attention_runs[i].mask,
                              .block_q = 64,
                              .block_k = 64}};
}

/* The same in all rows. */
struct recording {
    struct counters *counters;
    struct cold_cache cold;
    int place;
};

/* What the passes of a row need. */
struct row {
    const struct recording *recording;
    struct run run;
    bool wait; /* instead of the run */
};

static enum status make_cold(void *context, struct error *error)
{
    const struct row *row = context;
    return cold_cache_fill(&row->recording->cold, error);
}

static enum status launch(void *context, struct error *error)
{
    static const struct l2_curve_point wait = {L2_WAIT, 1, 1, WAIT_NS, 0};
    struct row *row = context;
    return row->wait ? launch_l2_curve_point(&wait, NULL, NULL, error)
                     : run_launch(&row->run, error);
}

static enum status print_row(struct row *row, struct error *error)
{
    double values[COUNTED];
    if (counters_measure_range(values, row->recording->counters, make_cold, launch, row, error))
        return error->status;
    if (row->wait)
        printf("wait,,,,,,,,,,,,,,");
    else
        results_shape(stdout, &row->run);
    printf(",%d", row->recording->place);
    for (int k = 0; k < COUNTED; k++)
        printf(",%.0f", values[k]);
    printf("\n");
    fflush(stdout);
    return STATUS_OK;
}

/* Memory of 1 to 16 times 2 MiB, held to the end of the program, moves the arrays of all runs
 * that follow. */
static enum status hold_memory(struct error *error)
{
    static uint64_t seed = 1;
    void *held;
    return device_alloc(&held, "memory between arrays",
                        (size_t)random_between(&seed, 1, 16) << 21, error);
}

static enum status print_run(const struct recording *recording, const struct run *run,
                             struct error *error)
{
    struct row row = {.recording = recording, .run = *run};
    if (hold_memory(error) || run_open(&row.run, 0, error))
        return error->status;
    print_row(&row, error);
    run_close(&row.run);
    return error->status;
}

static enum status print_place(const struct recording *recording, struct error *error)
{
    if (print_row(&(struct row){.recording = recording, .wait = true}, error))
        return error->status;
    for (size_t i = 0; i < LENGTH(basic_runs); i++)
        if (print_run(recording, &basic_runs[i], error))
            return error->status;
    for (size_t i = 0; i < LENGTH(attention_runs); i++) {
        const struct run run = attention_run(i);
        if (print_run(recording, &run, error))
            return error->status;
    }
    return STATUS_OK;
}

static enum status print_places(struct recording *recording, struct error *error)
{
    results_shape_columns(stdout);
    printf(",place");
    for (int k = 0; k < COUNTED; k++)
        printf(",%s", counted[k].column);
    printf("\n");
    for (recording->place = 0; recording->place < PLACES; recording->place++)
        if (print_place(recording, error))
            return error->status;
    return STATUS_OK;
}

int main(void)
{
    struct error error = {0};
    struct recording recording = {0};
    const char *metrics[COUNTED];
    for (int k = 0; k < COUNTED; k++)
        metrics[k] = counted[k].metric;
    if (!results_machine(stdout, "make gpu-l2", &error) &&
        !cold_cache_open(&recording.cold, &error) &&
        !counters_open_metrics(&recording.counters, metrics, COUNTED, &error))
        print_places(&recording, &error);
    counters_close(recording.counters);
    cold_cache_close(&recording.cold);
    if (error.status)
        fprintf(stderr, "gpu_l2: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
