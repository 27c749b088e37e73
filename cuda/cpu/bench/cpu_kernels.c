/* What it costs to run a CUDA kernel on the CPU, observed and not.
 *
 *   cpu_kernels OUT.json   prints a table, writes OUT.json
 *
 * Every kernel on one core; then flash2_forward at N 512, d 64, one head, on all cores; then
 * its growth with N. Medians of several runs. An access is said in time of the process on its
 * cores, whatever else they have to do.
 */
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/status.h"
#include "cuda/cpu/run.h"

enum { REPEATS = 5, ARRAY_VALUES = 17 };

/* Seconds of a launch: as they pass, and on the cores. */
struct seconds {
    double passed, core;
};
struct cost {
    int64_t accesses; /* to HBM and shared memory, of single threads */
    struct seconds observed, unobserved;
};

static struct cpu_run problem(enum cpu_kernel kernel, int n)
{
    return (struct cpu_run){.kernel = kernel,
                            .rows = n,
                            .cols = kernel == CPU_VECTOR_ADD ? n * n * 16 : n,
                            .depth = n,
                            .tile = kernel == CPU_MATMUL_SHARED ? 32 : 64,
                            .a = {.batch = 1,
                                  .heads_q = 1,
                                  .heads_kv = 1,
                                  .seqlen_q = n,
                                  .seqlen_k = n,
                                  .head_dim = 64,
                                  .head_dim_v = 64,
                                  .scale = 0.125f,
                                  .dtype = DTYPE_F32,
                                  .block_q = 64,
                                  .block_k = 64,
                                  .tiled_gemm = kernel == CPU_STANDARD_ATTENTION}};
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double core_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static struct seconds median_seconds(const struct cpu_run *run, bool unobserved)
{
    const struct cpu_options options = {.unobserved = unobserved};
    double passed[REPEATS], core[REPEATS];
    for (int n = 0; n < REPEATS; n++) {
        struct error error;
        const double start = omp_get_wtime(), core_start = core_seconds();
        CHECK(cpu_run_launch(run, &options, &error) == STATUS_OK, "%s", error.text);
        passed[n] = omp_get_wtime() - start;
        core[n] = core_seconds() - core_start;
    }
    qsort(passed, REPEATS, sizeof *passed, by_value);
    qsort(core, REPEATS, sizeof *core, by_value);
    return (struct seconds){passed[REPEATS / 2], core[REPEATS / 2]};
}

static int64_t accesses_made(void)
{
    const struct cpu_counts *counts = cpu_counts();
    int64_t sum = 0;
    for (int n = 0; n < counts->launches; n++)
        for (int way = 0; way < CPU_WAYS; way++)
            sum += counts->launch[n].hbm[way].accesses + counts->launch[n].shared[way].accesses;
    return sum;
}

static struct cost measure(enum cpu_kernel kernel, int n, int cores)
{
    struct cpu_run run = problem(kernel, n);
    struct error error;
    struct cost cost;
    omp_set_num_threads(cores);
    CHECK(cpu_run_open(&run, &error) == STATUS_OK, "%s", error.text);
    for (int k = 0; k < run.arrays; k++)
        for (int64_t i = 0; run.array[k].input && i < run.array[k].count; i++)
            run.array[k].memory[i] = (float)(i % ARRAY_VALUES) / ARRAY_VALUES;
    cost.unobserved = median_seconds(&run, true);
    cost.observed = median_seconds(&run, false);
    cost.accesses = accesses_made();
    cpu_run_close(&run);
    return cost;
}

static void report(FILE *out, const char *end, enum cpu_kernel kernel, int n, int cores)
{
    const struct cost c = measure(kernel, n, cores);
    const double ns = 1e9 * c.observed.core / (double)c.accesses;
    const double more = 1e9 * (c.observed.core - c.unobserved.core) / (double)c.accesses;
    printf("%-20s %5d %5d %13" PRId64 " %10.3f %12.3f %8.1f %8.1f\n", cpu_kernel_name(kernel),
           n, cores, c.accesses, c.observed.passed, c.unobserved.passed, ns, more);
    fprintf(out,
            "  {\"kernel\": \"%s\", \"n\": %d, \"cores\": %d, \"accesses\": %" PRId64
            ", \"observed_s\": %.4f, \"unobserved_s\": %.4f, \"core_ns_per_access\": %.2f, "
            "\"observing_ns\": %.2f}%s\n",
            cpu_kernel_name(kernel), n, cores, c.accesses, c.observed.passed,
            c.unobserved.passed, ns, more, end);
}

int main(int argc, char **argv)
{
    const int cores = omp_get_max_threads();
    if (argc != 2) {
        fprintf(stderr, "usage: cpu_kernels OUT.json\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out) {
        fprintf(stderr, "cpu_kernels: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    printf("CUDA kernels on this CPU; d 64, one head, tiles of 64\n"
           "ns: core time of an access, and what of it observing costs\n"
           "%-20s %5s %5s %13s %10s %12s %8s %8s\n",
           "kernel", "N", "cores", "accesses", "observed s", "unobserved s", "ns", "observing");
    fprintf(out, "[\n");
    for (int kernel = 0; kernel < CPU_KERNELS; kernel++)
        report(out, ",", (enum cpu_kernel)kernel, 256, 1);
    for (int n = 256; n <= 1024; n *= 2)
        report(out, n < 1024 ? "," : "", CPU_FLASH2_FORWARD, n, cores);
    fprintf(out, "]\n");
    return fclose(out) == 0 ? 0 : 2;
}
