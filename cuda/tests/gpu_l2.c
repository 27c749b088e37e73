/* Prints what passes between the SMs, L2 and DRAM in runs of our kernels with cold caches, as
 * CSV: for tests/test_l2_twins.c, which holds the model of L2 to it.
 *
 * The counters take several passes. Before each, memory of 8 times the size of L2 is read: L2
 * is then full of clean lines that the kernels do not use. A run of several launches is counted
 * as a whole, and the later launches find in L2 what the earlier ones left there.
 *
 * gpu_l2 places: some of the runs only, each with its arrays in several places of memory.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cold_cache.h"
#include "cuda/counters.h"
#include "results.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const struct {
    const char *column, *metric;
} counted[] = {
    {"dram_read_bytes", "dram__bytes_read.sum"},
    {"dram_write_bytes", "dram__bytes_write.sum"},
    /* what load instructions asked for, and what they found in L1 */
    {"load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    {"load_l1_hit_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"},
    {"store_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    /* of L2: a sector that crosses from one partition to the other counts in both */
    {"l2_read_sectors", "lts__t_sectors_op_read.sum"},
    {"l2_write_sectors", "lts__t_sectors_op_write.sum"},
    {"l2_hit_sectors", "lts__t_sectors_lookup_hit.sum"},
    {"l2_miss_sectors", "lts__t_sectors_lookup_miss.sum"},
    {"l2_sm_sectors", "lts__t_sectors_srcunit_tex.sum"},
    {"l2_sm_read_sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
    {"l2_fabric_sectors", "lts__t_sectors_srcunit_ltcfabric.sum"},
};
enum { COUNTED = LENGTH(counted) };

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

/* What the passes of a row need. */
struct cold_run {
    struct run run;
    const struct cold_cache *cold;
};

static enum status make_cold(void *context, struct error *error)
{
    const struct cold_run *row = context;
    return cold_cache_fill(row->cold, error);
}

static enum status launch(void *context, struct error *error)
{
    struct cold_run *row = context;
    return run_launch(&row->run, error);
}

/* What is counted of a run in each place. */
static const char *const counted_places[] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                             "gpu__time_duration.sum"};
enum { COUNTED_PLACES = LENGTH(counted_places), PLACES = 8 };

/* Runs that nearly fit in L2, and some that do not. */
static bool has_places(const struct run *run)
{
    const int64_t queries = (int64_t)run->a.heads_q * run->a.seqlen_q * run->a.head_dim;
    return (run->kernel == KERNEL_FLASH1 && queries >= 1 << 21 && queries <= 1 << 22) ||
           (run->kernel == KERNEL_FLASH2 && run->a.head_dim == 128) ||
           (run->kernel == KERNEL_MATMUL_TILED && run->cols >= 3072) ||
           (run->kernel == KERNEL_VECTOR_ADD && run->cols >= 1 << 23 && run->cols <= 1 << 24);
}

static enum status print_place(const struct run *run, struct counters *counters,
                               const struct cold_cache *cold, int place, struct error *error)
{
    struct cold_run row = {*run, cold};
    double values[COUNTED_PLACES];
    if (run_open(&row.run, 0, error))
        return error->status;
    if (!counters_measure_range(values, counters, make_cold, launch, &row, error)) {
        results_shape(stdout, &row.run);
        printf(",%d", place);
        for (int k = 0; k < COUNTED_PLACES; k++)
            printf(",%.0f", values[k]);
        printf("\n");
    }
    run_close(&row.run);
    return error->status;
}

/* Memory that is held between one place and the next, 1 to 15 times 2 MiB, moves the arrays. */
static enum status print_run_places(const struct run *run, struct counters *counters,
                                    const struct cold_cache *cold, struct error *error)
{
    void *held[PLACES] = {NULL};
    if (!has_places(run))
        return STATUS_OK;
    for (int place = 0; place < PLACES && !error->status; place++)
        if (!device_alloc(&held[place], "memory between places",
                          (size_t)(1 + place * 7 % PLACES * 2) << 21, error))
            print_place(run, counters, cold, place, error);
    for (int place = 0; place < PLACES; place++)
        device_free(held[place]);
    return error->status;
}

static enum status print_row(const struct run *run, struct counters *counters,
                             const struct cold_cache *cold, struct error *error)
{
    struct cold_run row = {*run, cold};
    double values[COUNTED];
    if (run_open(&row.run, 0, error))
        return error->status;
    if (!counters_measure_range(values, counters, make_cold, launch, &row, error)) {
        results_shape(stdout, &row.run);
        for (int k = 0; k < COUNTED; k++)
            printf(",%.0f", values[k]);
        printf("\n");
    }
    run_close(&row.run);
    return error->status;
}

static enum status print_rows(bool places, struct counters *counters,
                              const struct cold_cache *cold, struct error *error)
{
    enum status (*const print)(const struct run *, struct counters *, const struct cold_cache *,
                               struct error *) = places ? print_run_places : print_row;
    results_shape_columns(stdout);
    for (int k = 0; k < COUNTED && !places; k++)
        printf(",%s", counted[k].column);
    printf(places ? ",place,dram_read_bytes,dram_write_bytes,duration_ns\n" : "\n");
    for (size_t i = 0; i < LENGTH(basic_runs); i++)
        if (print(&basic_runs[i], counters, cold, error))
            return error->status;
    for (size_t i = 0; i < LENGTH(attention_runs); i++) {
        const struct run run = attention_run(i);
        if (print(&run, counters, cold, error))
            return error->status;
    }
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    const bool places = argc == 2 && strcmp(argv[1], "places") == 0;
    struct error error = {0};
    struct counters *counters = NULL;
    struct cold_cache cold = {0};
    const char *metrics[COUNTED];
    for (int k = 0; k < COUNTED; k++)
        metrics[k] = counted[k].metric;
    if (!results_machine(stdout, places ? "make gpu-l2-places" : "make gpu-l2", &error) &&
        !cold_cache_open(&cold, &error) &&
        !counters_open_metrics(&counters, places ? counted_places : metrics,
                               places ? COUNTED_PLACES : COUNTED, &error))
        print_rows(places, counters, &cold, &error);
    counters_close(counters);
    cold_cache_close(&cold);
    if (error.status)
        fprintf(stderr, "gpu_l2: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
