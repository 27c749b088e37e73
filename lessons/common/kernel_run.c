#include "common/kernel_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/gpu.h"
#include "common/kernel_twin.h"
#include "common/progress.h"
#include "common/random_inputs.h"

#define SOFTMAX_OPTIONS (OPTION_BIT(OPTION_ROWS) | OPTION_BIT(OPTION_COLS))
#define MATMUL_OPTIONS (SOFTMAX_OPTIONS | OPTION_BIT(OPTION_DEPTH))

/* What shape options a kernel has, and its shape if they are not given. */
static const struct {
    uint64_t options;
    const char *names; /* of the options, for messages */
    int rows, cols, depth, tile;
} shapes[CPU_NAIVE_ATTENTION] = {
    [CPU_VECTOR_ADD] = {OPTION_BIT(OPTION_COLS), "--cols", 1, 1 << 20, 1, 0},
    [CPU_MATMUL_NAIVE] = {MATMUL_OPTIONS, "--rows, --cols and --depth", 256, 256, 256, 0},
    [CPU_MATMUL_SHARED] = {MATMUL_OPTIONS | OPTION_BIT(OPTION_TILE),
                           "--rows, --cols, --depth and --tile", 256, 256, 256, 32},
    [CPU_MATMUL_TILED] = {MATMUL_OPTIONS | OPTION_BIT(OPTION_TILE),
                          "--rows, --cols, --depth and --tile", 256, 256, 256, 32},
    [CPU_SOFTMAX_NAIVE] = {SOFTMAX_OPTIONS, "--rows and --cols", 256, 1024, 1, 0},
    [CPU_SOFTMAX_SAFE] = {SOFTMAX_OPTIONS, "--rows and --cols", 256, 1024, 1, 0},
    [CPU_SOFTMAX_ONLINE] = {SOFTMAX_OPTIONS, "--rows and --cols", 256, 1024, 1, 0},
};

static enum status check_options(enum cpu_kernel kernel, const struct options *o,
                                 struct error *error)
{
    const bool attention = cpu_kernel_is_attention(kernel);
    const uint64_t has =
        attention ? RUN_OPTIONS & ~OPTION_BIT(OPTION_ALGORITHM) : shapes[kernel].options;
    for (int id = 0; id < OPTION_COUNT; id++)
        if (o->given & KERNEL_SHAPE_OPTIONS & ~has & OPTION_BIT(id))
            return error_set(error, STATUS_BAD_ARGUMENT, "--%s: the shape of %s has %s",
                             option_name((enum option_id)id), cpu_kernel_name(kernel),
                             attention ? "--seqlen, --head-dim, ..., see --help"
                                       : shapes[kernel].names);
    if (kernel == CPU_MATMUL_SHARED && o->tile && o->tile != 16 && o->tile != 32)
        return error_set(error, STATUS_BAD_ARGUMENT, "--tile %d: must be 16 or 32 (%s)",
                         o->tile, cpu_kernel_name(kernel));
    if (o->tile && o->tile != 16 && o->tile != 32 && o->tile != 64)
        return error_set(error, STATUS_BAD_ARGUMENT, "--tile %d: must be 16, 32 or 64",
                         o->tile);
    return STATUS_OK;
}

static struct cpu_run run_of(enum cpu_kernel kernel, const struct options *o)
{
    struct cpu_run run = {.kernel = kernel, .a = o->simulation.attention};
    if (cpu_kernel_is_attention(kernel)) {
        run.a.tiled_gemm = kernel == CPU_STANDARD_ATTENTION;
        return run;
    }
    run.rows = o->rows ? o->rows : shapes[kernel].rows;
    run.cols = o->cols ? o->cols : shapes[kernel].cols;
    run.depth = o->depth ? o->depth : shapes[kernel].depth;
    run.tile = o->tile ? o->tile : shapes[kernel].tile;
    return run;
}

/* A of products is so small that sums are about 1, whatever the depth. */
static void fill_inputs(const struct cpu_run *run, uint64_t seed)
{
    for (int n = 0; n < run->arrays; n++)
        if (run->array[n].input)
            random_fill(run->array[n].memory, (size_t)run->array[n].count, seed,
                        (unsigned)n + 1);
    float *A = cpu_run_data(run, "A");
    for (int64_t i = 0; A && i < run->array[0].count; i++)
        A[i] /= sqrtf((float)run->depth);
}

static enum status execute(struct kernel_run *k, struct error *error)
{
    const struct cpu_options options = {.shared_bytes = k->machine->sram_bytes_per_block};
    char prefix[64];
    progress_on_cpu(cpu_kernel_name(k->run.kernel));
    const enum status status = cpu_run_launch(&k->run, &options, error);
    progress_end();
    if (status) {
        snprintf(prefix, sizeof prefix, "--machine %s: ", k->machine->name);
        if (error->status == STATUS_ON_CHIP_FULL)
            error_prefix(error, prefix);
        return error->status;
    }
    k->counts = cpu_counts();
    for (int n = 0; n < k->counts->launches; n++) {
        const struct cpu_traffic *hbm = k->counts->launch[n].hbm;
        k->sectors.measured[DIRECTION_READ] += hbm[CPU_LOAD].sectors;
        k->sectors.measured[DIRECTION_WRITE] += hbm[CPU_STORE].sectors;
        k->sectors.measured[DIRECTION_REDUCE] += hbm[CPU_REDUCE].sectors;
    }
    return STATUS_OK;
}

static enum status execute_on_gpu(struct kernel_run *k, struct error *error)
{
    static const enum counter counters[DIRECTION_COUNT] = {
        COUNTER_LOAD_SECTORS, COUNTER_STORE_SECTORS, COUNTER_REDUCE_SECTORS};
    if (gpu_run_basic(&k->seen, &k->run, error))
        return error->status;
    for (int n = 0; n < DIRECTION_COUNT && k->seen.launches > 0; n++)
        k->sectors.measured[n] = (int64_t)k->seen.launch[0].of[counters[n]];
    return STATUS_OK;
}

double kernel_tolerance(int terms)
{
    return fmax(1e-5, 5e-7 * sqrt((double)terms));
}

struct kernel_result kernel_result_compare(const char *array, const float *simulated,
                                           const float *measured, int64_t count, int terms)
{
    struct kernel_result result = {array, kernel_tolerance(terms), 0.0};
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(simulated[i]))
            squares += (double)simulated[i] * (double)simulated[i];
    const double rms = sqrt(squares / (double)count);
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)simulated[i], y = (double)measured[i];
        if (x == y)
            continue;
        const double share = fabs(x - y) / (result.tolerance * (rms + fabs(x)));
        result.difference = isfinite(share) ? fmax(result.difference, share) : INFINITY;
    }
    return result;
}

/* Of the sums that make an element of the result. */
static int terms_of(const struct cpu_run *run)
{
    if (cpu_kernel_is_attention(run->kernel))
        return run->a.seqlen_k;
    return run->kernel == CPU_VECTOR_ADD ? 1 : cpu_run_data(run, "X") ? run->cols : run->depth;
}

static void set_sectors(struct kernel_sectors *s, const struct kernel_twin *twin)
{
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        s->predicted[n] = account_total(&twin->predicted).of[n].sectors;
        s->simulated[n] = account_total(&twin->simulated).of[n].sectors;
    }
}

static enum status count(struct kernel_run *k, struct error *error)
{
    struct kernel_twin twin;
    if (kernel_twin_count(&twin, &k->run, k->machine, error))
        return error->status;
    set_sectors(&k->sectors, &twin);
    return STATUS_OK;
}

/* Compares the outputs with those of the twin. */
static enum status compare(struct kernel_run *k, struct error *error)
{
    const struct cpu_run *run = &k->run;
    const bool attention = cpu_kernel_is_attention(run->kernel);
    const struct cpu_run_array *output = &run->array[attention ? 3 : run->arrays - 1];
    const int64_t rows = attention ? run->array[4].count : 0; /* of LSE, l or m */
    struct kernel_twin twin;
    float *lse = malloc((size_t)(rows + 1) * sizeof *lse);
    if (!lse)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for LSE");
    if (kernel_twin_run(&twin, run, k->machine, error)) {
        free(lse);
        return error->status;
    }
    k->results = attention ? 2 : 1;
    k->result[0] = kernel_result_compare(output->name, twin.output, output->memory,
                                         output->count, terms_of(run));
    if (attention) {
        cpu_run_lse(lse, run);
        k->result[1] = kernel_result_compare("LSE", twin.lse, lse, rows, 1);
    }
    set_sectors(&k->sectors, &twin);
    kernel_twin_free(&twin);
    free(lse);
    return STATUS_OK;
}

static void judge(struct kernel_run *k)
{
    const struct kernel_sectors *s = &k->sectors;
    k->equal = true;
    for (int n = 0; n < DIRECTION_COUNT; n++)
        k->equal &= s->predicted[n] == s->simulated[n] && s->simulated[n] == s->measured[n];
    for (int n = 0; n < k->results; n++)
        k->equal &= k->result[n].difference <= 1.0;
}

static enum status run_all(struct kernel_run *k, bool gpu, bool results, struct error *error)
{
    if (cpu_run_open(&k->run, error))
        return error->status;
    fill_inputs(&k->run, k->seed);
    if ((gpu ? execute_on_gpu(k, error) : execute(k, error)) ||
        (results ? compare(k, error) : count(k, error))) {
        kernel_run_free(k);
        return error->status;
    }
    judge(k);
    return STATUS_OK;
}

enum status kernel_run_make(struct kernel_run *k, enum cpu_kernel kernel,
                            const struct options *o, struct error *error)
{
    *k = (struct kernel_run){.machine = o->simulation.machine, .seed = o->seed};
    k->run = run_of(kernel, o);
    return check_options(kernel, o, error) ? error->status : run_all(k, false, true, error);
}

enum status kernel_run_at(struct kernel_run *k, const struct cpu_run *shape, bool results,
                          const struct options *o, struct error *error)
{
    *k = (struct kernel_run){.run = *shape, .machine = o->simulation.machine, .seed = o->seed};
    return run_all(k, o->gpu, results, error);
}

uint64_t kernel_shape_options(enum cpu_kernel kernel)
{
    return shapes[kernel].options;
}

char *kernel_run_shape(char buffer[KERNEL_SHAPE_LENGTH], const struct cpu_run *run)
{
    const struct attention *a = &run->a;
    int used = 0;
    if (cpu_kernel_is_attention(run->kernel)) {
        snprintf(buffer, KERNEL_SHAPE_LENGTH,
                 "batch %d, heads %d/%d, N %d/%d, d %d/%d, Br %d, Bc %d, mask %s", a->batch,
                 a->heads_q, a->heads_kv, a->seqlen_q, a->seqlen_k, a->head_dim, a->head_dim_v,
                 a->block_q, a->block_k, mask_name(a->mask));
        return buffer;
    }
    const uint64_t has = shapes[run->kernel].options;
    const struct {
        enum option_id id;
        int value;
    } sides[] = {{OPTION_ROWS, run->rows},
                 {OPTION_COLS, run->cols},
                 {OPTION_DEPTH, run->depth},
                 {OPTION_TILE, run->tile}};
    for (int i = 0; i < 4; i++)
        if (has & OPTION_BIT(sides[i].id))
            used += snprintf(buffer + used, (size_t)(KERNEL_SHAPE_LENGTH - used), "%s%s %d",
                             used > 0 ? ", " : "", option_name(sides[i].id), sides[i].value);
    return buffer;
}

void kernel_run_free(struct kernel_run *k)
{
    cpu_run_close(&k->run);
    k->counts = NULL;
}
