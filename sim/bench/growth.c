/* How the simulator's time and memory grow with N.
 *
 *   growth OUT.json    prints a table, writes OUT.json; exit 1 if the memory of data runs grows
 *                      faster than N d (a matrix of N x N somewhere would).
 *
 * FlashAttention-2 forward, fp32, d 64, 1 head, blocks of 64, causal where only counts are
 * asked for (blocks without a mask are counted once and multiplied: their time hardly grows).
 * Every run is a process of its own, so that its peak memory is its own.
 */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/attention_forward.h"

enum { HEAD_DIM = 64, BLOCK = 64, POINTS = 4 };

/* What one run costs. */
struct cost {
    double seconds;
    long peak_kib; /* of the whole process */
};

static struct simulation problem(int n, enum mask mask)
{
    return (struct simulation){.algorithm = ALGORITHM_FLASH2,
                               .machine = machine_default(),
                               .attention = {.batch = 1,
                                             .heads_q = 1,
                                             .heads_kv = 1,
                                             .seqlen_q = n,
                                             .seqlen_k = n,
                                             .head_dim = HEAD_DIM,
                                             .head_dim_v = HEAD_DIM,
                                             .scale = 0.125f,
                                             .mask = mask,
                                             .dtype = DTYPE_F32,
                                             .block_q = BLOCK,
                                             .block_k = BLOCK}};
}

static double run(int n, bool data)
{
    struct simulation s = problem(n, data ? MASK_NONE : MASK_CAUSAL);
    struct error error = {0};
    const size_t count = (size_t)n * HEAD_DIM;
    float *x = data ? malloc(count * sizeof *x) : NULL;
    float *o = data ? calloc(count, sizeof *o) : NULL;
    float *lse = data ? calloc((size_t)n, sizeof *lse) : NULL;
    CHECK(!data || (x && o && lse), "no memory for N = %d", n);
    for (size_t i = 0; data && i < count; i++)
        x[i] = (float)(i % 17) / 17.0f;
    const double start = omp_get_wtime();
    const enum status status =
        data ? attention_simulate(&s, x, x, x, o, lse, &error) : attention_count(&s, &error);
    CHECK(status == STATUS_OK, "%s", error.text);
    const double seconds = omp_get_wtime() - start;
    free(x);
    free(o);
    free(lse);
    return seconds;
}

static struct cost cost_of(int n, bool data)
{
    struct cost cost = {0};
    struct rusage usage;
    int ends[2], exit_status;
    CHECK(pipe(ends) == 0, "pipe: %s", strerror(errno));
    const pid_t pid = fork();
    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        const double seconds = run(n, data);
        _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    }
    close(ends[1]);
    CHECK(read(ends[0], &cost.seconds, sizeof cost.seconds) == sizeof cost.seconds,
          "the run at N = %d ended early", n);
    close(ends[0]);
    CHECK(wait4(pid, &exit_status, 0, &usage) == pid && exit_status == 0, "N = %d", n);
    cost.peak_kib = usage.ru_maxrss;
    return cost;
}

/* Costs at N, 2N, 4N, ...; the power with which each grows over the last doublings. */
struct growth {
    int n[POINTS];
    struct cost cost[POINTS];
    double time_power, memory_power;
};

static struct growth measure(int smallest, bool data)
{
    struct growth g = {0};
    const long base = cost_of(BLOCK, data).peak_kib; /* the process without its tensors */
    for (int k = 0; k < POINTS; k++) {
        g.n[k] = smallest << k;
        g.cost[k] = cost_of(g.n[k], data);
    }
    const struct cost *first = &g.cost[1], *last = &g.cost[POINTS - 1];
    g.time_power = log2(last->seconds / first->seconds) / (POINTS - 2);
    g.memory_power =
        log2((double)(last->peak_kib - base) / (double)(first->peak_kib - base)) / (POINTS - 2);
    return g;
}

static void report(FILE *json, const char *name, const struct growth *g, bool with_memory)
{
    printf("%s\n%10s %12s %14s %18s\n", name, "N", "seconds", "peak MiB", "bytes per N d");
    fprintf(json, "  \"%s\": {\"points\": [", name);
    for (int k = 0; k < POINTS; k++) {
        const struct cost *c = &g->cost[k];
        printf("%10d %12.4f %14.1f %18.1f\n", g->n[k], c->seconds, (double)c->peak_kib / 1024,
               (double)c->peak_kib * 1024 / g->n[k] / HEAD_DIM);
        fprintf(json, "%s{\"n\": %d, \"seconds\": %.6f, \"peak_kib\": %ld}", k ? ", " : "",
                g->n[k], c->seconds, c->peak_kib);
    }
    fprintf(json, "], \"time_power\": %.3f", g->time_power);
    printf("time grows as N^%.2f", g->time_power);
    if (with_memory) {
        fprintf(json, ", \"memory_power\": %.3f", g->memory_power);
        printf(", memory beyond the program's own as N^%.2f", g->memory_power);
    }
    fprintf(json, "}");
    printf("\n\n");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: growth OUT.json\n");
        return 2;
    }
    FILE *json = fopen(argv[1], "w");
    if (!json) {
        fprintf(stderr, "growth: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    const struct growth data = measure(4096, true), counts = measure(1 << 20, false);
    fprintf(json, "{\n");
    report(json, "data", &data, true);
    fprintf(json, ",\n");
    report(json, "counts_only", &counts, false);
    fprintf(json, "\n}\n");
    if (fclose(json) != 0) {
        fprintf(stderr, "growth: %s: %s\n", argv[1], strerror(errno));
        return 2;
    }
    return data.memory_power < 1.15 ? 0 : 1;
}
