#include "common/gpu_column.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/comparison_report.h"
#include "common/counting.h"
#include "common/gpu.h"

/* Steps are compared where all of them can be kept: 4 x 4 tiles. One query row a step, as naive
 * attention goes, would fill a book. */
enum { STEPS_SEQLEN = 256, SEED = 1 };

static bool wanted(const struct gpu_column *g, int algorithm)
{
    return g->algorithms & ALGORITHM_BIT(algorithm);
}

static bool wants_steps(const struct gpu_column *g, int algorithm)
{
    return wanted(g, algorithm) && algorithm != ALGORITHM_NAIVE;
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
    o.simulation.attention = counting_with_seqlen(&o.simulation.attention, STEPS_SEQLEN);
    o.simulation.attention.scale = 0.125f; /* 1 / sqrt(64) */
    return simulation_of(&o.simulation, algorithm);
}

static enum status open_live(struct gpu_column *g, const struct options *o, int algorithm,
                             struct error *error)
{
    struct simulation s = simulation_of(&o->simulation, algorithm);
    if (gpu_run(&g->traffic[algorithm], s.algorithm, &s.attention,
                &(struct gpu_plan){.seed = SEED}, error))
        return error->status;
    s = steps_simulation(algorithm);
    if (wants_steps(g, algorithm))
        return comparison_live(&g->steps[algorithm], &s,
                               &(struct gpu_plan){.seed = SEED, .steps = true}, error);
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

static enum status open_recorded(struct gpu_column *g, const struct options *o, int algorithm,
                                 struct error *error)
{
    const struct simulation s = simulation_of(&o->simulation, algorithm);
    struct simulation steps = steps_simulation(algorithm);
    struct gpu_recording r;
    if (read_recording(&r, "traffic", algorithm, error))
        return error->status;
    if (r.algorithm == s.algorithm && same_problem(&r.attention, &s.attention)) {
        g->traffic[algorithm] = r.seen;
        r.seen = (struct observation){0};
    }
    memcpy(g->date, r.date, sizeof g->date);
    gpu_recording_free(&r);
    if (!wants_steps(g, algorithm))
        return STATUS_OK;
    if (read_recording(&r, "steps", algorithm, error))
        return error->status;
    const enum status status = comparison_recorded(&g->steps[algorithm], &steps, &r, error);
    gpu_recording_free(&r);
    return status;
}

enum status gpu_column_open(struct gpu_column *g, const struct options *o, unsigned algorithms,
                            struct error *error)
{
    *g = (struct gpu_column){.live = o->gpu, .algorithms = algorithms};
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        if (wanted(g, i) && (g->live ? open_live : open_recorded)(g, o, i, error)) {
            gpu_column_close(g);
            return error->status;
        }
    }
    return STATUS_OK;
}

static const char *const direction_names[DIRECTION_COUNT] = {"loaded", "stored", "reduced"};

/* A row of the table for each direction in which anything moves or should. */
static void claim_sectors(struct lesson *l, const struct counted *c,
                          const struct observation *seen)
{
    static const enum counter counters[DIRECTION_COUNT] = {
        COUNTER_LOAD_SECTORS, COUNTER_STORE_SECTORS, COUNTER_REDUCE_SECTORS};
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        const int64_t predicted = account_total(&c->predicted).of[k].sectors;
        const int64_t simulated = account_total(&c->simulated).of[k].sectors;
        int64_t measured = 0;
        char claim[64];
        for (int i = 0; i < seen->launches; i++)
            measured += (int64_t)seen->launch[i].of[counters[k]];
        if (predicted == 0 && simulated == 0 && measured == 0)
            continue;
        snprintf(claim, sizeof claim, "%s, %s", algorithm_name(c->simulation.algorithm),
                 direction_names[k]);
        lesson_claim_measured(l, claim, predicted, simulated, measured);
    }
}

static void say_source(struct lesson *l, const struct gpu_column *g,
                       const struct observation *seen)
{
    lesson_say(l, "Our own kernels, cuda/kernels, on an %s (driver %s, CUDA %d.%d),\n%s%s.\n",
               seen->gpu, seen->driver, seen->cuda_version / 1000,
               seen->cuda_version % 1000 / 10, g->live ? "run just now" : "recorded ",
               g->live ? "" : g->date);
}

enum status gpu_column_claim_traffic(struct lesson *l, const struct gpu_column *g,
                                     struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    bool headed = false;
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        const struct observation *seen = &g->traffic[i];
        struct counted c;
        if (!wanted(g, i) || seen->launches == 0)
            continue;
        const struct simulation s = simulation_of(base, i);
        if (counting_run(&c, base, s.algorithm, &s.attention, error))
            return error->status;
        if (!headed) {
            say_source(l, g, seen);
            lesson_say(l,
                       "Sectors of 32 bytes; standard attention on real tiles.\n\n"
                       "      %-28s %14s %14s %14s\n",
                       "algorithm", "predicted", "simulated", "measured");
            headed = true;
        }
        claim_sectors(l, &c, seen);
    }
    for (int i = 0; i < ALGORITHM_COUNT && !headed; i++) {
        if (wanted(g, i)) {
            lesson_say(l, "Not measured: %s\n",
                       g->live ? g->traffic[i].uncounted
                               : "no recording has this shape. --gpu runs it on a GPU.");
            headed = true;
        }
    }
    return STATUS_OK;
}

/* One comparison: steps and results. */
static void claim_steps(struct lesson *l, const struct comparison *c, const char *algorithm)
{
    char claim[80];
    snprintf(claim, sizeof claim, "%s: every step moved the same bytes", algorithm);
    lesson_claim_same(l, claim, "steps", c->simulated_steps.count,
                      c->step.found && c->step.row < 0 ? -1 : c->steps_compared);
    if (c->rows_compared > 0) { /* 0: the sides differ before the first row */
        snprintf(claim, sizeof claim, "%s: m, l and |O| of every row agree", algorithm);
        lesson_claim_error(l, claim, 1.0, c->largest_difference);
    }
    snprintf(claim, sizeof claim, "%s: so do O and LSE", algorithm);
    lesson_claim_error(l, claim, 1.0,
                       c->o_difference > c->lse_difference ? c->o_difference
                                                           : c->lse_difference);
    if (c->step.found && !l->json)
        comparison_print_step_difference(&c->step);
}

void gpu_column_claim_steps(struct lesson *l, const struct gpu_column *g)
{
    lesson_say(
        l,
        "\nStep by step at N = %d: each thread block on both sides says after every step\n"
        "what it has moved, and after every K/V tile m, l and the norm of O. Errors are\n"
        "shares of the tolerance, 1e-5 (1 + |x|).\n\n",
        STEPS_SEQLEN);
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (wants_steps(g, i))
            claim_steps(l, &g->steps[i], algorithm_name((enum algorithm)i));
}

void gpu_column_close(struct gpu_column *g)
{
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        observation_free(&g->traffic[i]);
        comparison_free(&g->steps[i]);
    }
}
