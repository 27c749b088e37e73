#include "common/kernel_column.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/comparison_report.h"
#include "common/counting.h"
#include "common/gpu.h"

/* Steps are compared where all of them can be kept: 4 x 4 tiles. One query row a step, as naive
 * attention goes, would fill a book. */
enum { SMALL_SEQLEN = 256, SEED = 1 };

static bool wanted(const struct kernel_column *k, int algorithm)
{
    return k->algorithms & ALGORITHM_BIT(algorithm);
}

static bool wants_steps(const struct kernel_column *k, int algorithm)
{
    return wanted(k, algorithm) && algorithm != ALGORITHM_NAIVE;
}

/* The lesson's problem as the kernels run it: standard attention on real tiles. */
static struct simulation simulation_of(const struct simulation *base, int algorithm)
{
    struct simulation s = *base;
    s.algorithm = (enum algorithm)algorithm;
    s.attention.tiled_gemm = s.algorithm == ALGORITHM_STANDARD;
    return s;
}

static struct simulation steps_simulation(int algorithm)
{
    struct options o;
    options_init(&o);
    o.simulation.attention = counting_with_seqlen(&o.simulation.attention, SMALL_SEQLEN);
    o.simulation.attention.scale = 0.125f; /* 1 / sqrt(64) */
    return simulation_of(&o.simulation, algorithm);
}

static enum status open_live(struct kernel_column *k, const struct options *o, int algorithm,
                             struct error *error)
{
    struct simulation s = simulation_of(&o->simulation, algorithm);
    struct gpu_plan plan = {.seed = SEED, .cpu = o->cpu, .machine = s.machine};
    if (gpu_run(&k->traffic[algorithm], s.algorithm, &s.attention, &plan, error))
        return error->status;
    s = steps_simulation(algorithm);
    plan.steps = true;
    plan.machine = NULL;
    if (wants_steps(k, algorithm))
        return comparison_live(&k->steps[algorithm], &s, &plan, error);
    return STATUS_OK;
}

/* lessons/recordings/<kind>_<algorithm>.json */
static enum status read_recording(struct gpu_recording *r, const char *kind, int algorithm,
                                  struct error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/lessons/recordings/%s_%s.json", FLASHLAB_ROOT, kind,
             algorithm_name((enum algorithm)algorithm));
    return gpu_recording_read(r, path, error);
}

static bool same_problem(const struct attention *a, const struct attention *b)
{
    return a->batch == b->batch && a->heads_q == b->heads_q && a->heads_kv == b->heads_kv &&
           a->seqlen_q == b->seqlen_q && a->seqlen_k == b->seqlen_k &&
           a->head_dim == b->head_dim && a->head_dim_v == b->head_dim_v && a->mask == b->mask &&
           a->dtype == b->dtype && a->block_q == b->block_q && a->block_k == b->block_k &&
           a->tiled_gemm == b->tiled_gemm;
}

static enum status open_recorded(struct kernel_column *k, const struct options *o,
                                 int algorithm, struct error *error)
{
    const struct simulation s = simulation_of(&o->simulation, algorithm);
    struct simulation steps = steps_simulation(algorithm);
    struct gpu_recording r;
    if (read_recording(&r, "traffic", algorithm, error))
        return error->status;
    if (r.algorithm == s.algorithm && same_problem(&r.attention, &s.attention)) {
        k->traffic[algorithm] = r.seen;
        r.seen = (struct observation){0};
    }
    memcpy(k->date, r.date, sizeof k->date);
    gpu_recording_free(&r);
    if (!wants_steps(k, algorithm))
        return STATUS_OK;
    if (read_recording(&r, "steps", algorithm, error))
        return error->status;
    const enum status status = comparison_recorded(&k->steps[algorithm], &steps, &r, error);
    gpu_recording_free(&r);
    return status;
}

/* The small problem, which any machine can wait for, on the CPU. */
static enum status open_on_cpu(struct kernel_column *k, int algorithm, struct error *error)
{
    struct simulation s = steps_simulation(algorithm);
    const struct gpu_plan plan = {
        .seed = SEED, .cpu = true, .steps = wants_steps(k, algorithm)};
    return comparison_live(&k->on_cpu[algorithm], &s, &plan, error);
}

static enum status open_one(struct kernel_column *k, const struct options *o, int algorithm,
                            struct error *error)
{
    if (k->live)
        return open_live(k, o, algorithm, error);
    if (open_recorded(k, o, algorithm, error))
        return error->status;
    return open_on_cpu(k, algorithm, error);
}

enum status kernel_column_open(struct kernel_column *k, const struct options *o,
                               unsigned algorithms, struct error *error)
{
    *k = (struct kernel_column){.live = o->gpu || o->cpu, .algorithms = algorithms};
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        if (wanted(k, i) && open_one(k, o, i, error)) {
            kernel_column_close(k);
            return error->status;
        }
    }
    return STATUS_OK;
}

static const char *const direction_names[DIRECTION_COUNT] = {"loaded", "stored", "reduced"};

/* A row of the table for each direction in which anything moves or should. */
static void claim_sectors(struct lesson *l, const char *who, const int64_t *predicted,
                          const int64_t *simulated, const int64_t *measured)
{
    char claim[64];
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        if (predicted[n] == 0 && simulated[n] == 0 && measured[n] == 0)
            continue;
        snprintf(claim, sizeof claim, "%s, %s", who, direction_names[n]);
        lesson_claim_measured(l, claim, predicted[n], simulated[n], measured[n]);
    }
}

static void claim_traffic(struct lesson *l, const char *who, const struct counted *c,
                          const struct observation *seen)
{
    static const enum counter counters[DIRECTION_COUNT] = {
        COUNTER_LOAD_SECTORS, COUNTER_STORE_SECTORS, COUNTER_REDUCE_SECTORS};
    int64_t predicted[DIRECTION_COUNT], simulated[DIRECTION_COUNT];
    int64_t measured[DIRECTION_COUNT] = {0};
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        predicted[n] = account_total(&c->predicted).of[n].sectors;
        simulated[n] = account_total(&c->simulated).of[n].sectors;
        for (int i = 0; i < seen->launches; i++)
            measured[n] += (int64_t)seen->launch[i].of[counters[n]];
    }
    claim_sectors(l, who, predicted, simulated, measured);
}

/* "flash2", or "flash2 on the CPU". */
static const char *who(char *buffer, size_t size, int algorithm, bool on_cpu)
{
    snprintf(buffer, size, "%s%s", algorithm_name((enum algorithm)algorithm),
             on_cpu ? " on the CPU" : "");
    return buffer;
}

static void say_head(struct lesson *l, bool on_cpu)
{
    lesson_say(l, "      %-28s %14s %14s %14s\n", "algorithm", "predicted", "simulated",
               on_cpu ? "CPU" : "measured");
}

static void say_source(struct lesson *l, const struct kernel_column *k,
                       const struct observation *seen)
{
    if (seen->on_cpu)
        lesson_say(l, "Our own kernels, cuda/kernels, their source executed on this CPU and "
                      "every access\nobserved.\n");
    else
        lesson_say(
            l, "Our own kernels, cuda/kernels, on an %s (driver %s, CUDA %d.%d),\n%s%s.\n",
            seen->gpu, seen->driver, seen->cuda_version / 1000, seen->cuda_version % 1000 / 10,
            k->live ? "run just now" : "recorded ", k->live ? "" : k->date);
    lesson_say(l, "Sectors of 32 bytes; standard attention on real tiles.\n\n");
    say_head(l, seen->on_cpu);
}

/* At the lesson's shape. */
static enum status claim_all_traffic(struct lesson *l, const struct kernel_column *k,
                                     struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    bool headed = false;
    char name[32];
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        const struct observation *seen = &k->traffic[i];
        struct counted c;
        if (!wanted(k, i) || seen->launches == 0)
            continue;
        const struct simulation s = simulation_of(base, i);
        if (counting_run(&c, base, s.algorithm, &s.attention, error))
            return error->status;
        if (!headed)
            say_source(l, k, seen);
        headed = true;
        claim_traffic(l, who(name, sizeof name, i, seen->on_cpu), &c, seen);
    }
    for (int i = 0; i < ALGORITHM_COUNT && !headed; i++) {
        if (wanted(k, i)) {
            lesson_say(l, "Not measured: %s\n",
                       k->live ? k->traffic[i].uncounted
                               : "no recording has this shape. --gpu runs it on a GPU, --cpu "
                                 "on\nthis CPU.");
            headed = true;
        }
    }
    return STATUS_OK;
}

enum status kernel_column_claim_traffic(struct lesson *l, const struct kernel_column *k,
                                        struct error *error)
{
    char name[32];
    if (claim_all_traffic(l, k, error))
        return error->status;
    if (k->live)
        return STATUS_OK;
    lesson_say(l,
               "\nThe same source, executed on this CPU and every access observed, at N = %d,\n"
               "d = 64, Br = Bc = 64:\n\n",
               SMALL_SEQLEN);
    say_head(l, true);
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        const struct comparison *c = &k->on_cpu[i];
        if (wanted(k, i))
            claim_sectors(l, who(name, sizeof name, i, true), c->predicted, c->simulated,
                          c->measured);
    }
    return STATUS_OK;
}

static double largest(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* One comparison: steps and results. */
static void claim_steps(struct lesson *l, const struct comparison *c, int algorithm)
{
    const bool on_cpu = c->seen.on_cpu;
    const double results = largest(c->o_difference, c->lse_difference);
    char claim[80], name[32];
    who(name, sizeof name, algorithm, on_cpu);
    snprintf(claim, sizeof claim, "%s: every step moved the same bytes", name);
    lesson_claim_same(l, claim, "steps", on_cpu ? "CPU" : "measured", c->simulated_steps.count,
                      c->step.found && c->step.row < 0 ? -1 : c->steps_compared);
    if (c->rows_compared > 0) { /* 0: the sides differ before the first row */
        snprintf(claim, sizeof claim, "%s: m, l and |O| of every row agree", name);
        lesson_claim_error(l, claim, 1.0, c->largest_difference);
    }
    snprintf(claim, sizeof claim, "%s: so do O and LSE", name);
    lesson_claim_error(l, claim, 1.0, results);
    if (c->step.found && !l->json)
        comparison_print_step_difference(c);
}

void kernel_column_claim_steps(struct lesson *l, const struct kernel_column *k)
{
    lesson_say(
        l,
        "\nStep by step at N = %d: each thread block on both sides says after every step\n"
        "what it has moved, and after every K/V tile m, l and the norm of O. Errors are\n"
        "shares of the tolerance, 1e-5 (1 + |x|).\n\n",
        SMALL_SEQLEN);
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (wants_steps(k, i))
            claim_steps(l, &k->steps[i], i);
    for (int i = 0; i < ALGORITHM_COUNT && !k->live; i++)
        if (wants_steps(k, i))
            claim_steps(l, &k->on_cpu[i], i);
}

void kernel_column_close(struct kernel_column *k)
{
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        observation_free(&k->traffic[i]);
        comparison_free(&k->steps[i]);
        comparison_free(&k->on_cpu[i]);
    }
}
