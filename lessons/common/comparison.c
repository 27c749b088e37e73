#include "common/comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random_inputs.h"
#include "models/io.h"

/* How far two values of the same quantity may lie apart: simulator and kernel add up in
 * different orders and have different exps. About 170 roundings of a float; a value that
 * belongs to another row, tile or step misses it by far. */
static double tolerance_of(double value)
{
    return 1e-5 * (1.0 + fabs(value));
}

/* The difference as a share of the tolerance. Equal infinities and two NaNs do not differ. */
static double difference(double simulated, double measured)
{
    if (simulated == measured || (isnan(simulated) && isnan(measured)))
        return 0.0;
    const double share = fabs(simulated - measured) / tolerance_of(simulated);
    return isfinite(share) ? share : INFINITY;
}

/* The simulator's results. */
struct results {
    float *o, *lse;
    size_t o_count, lse_count;
};

static void results_free(struct results *r)
{
    free(r->o);
    free(r->lse);
}

/* Runs the simulator with the kernels' own options; with steps, keeps its trace in c. */
static enum status simulate(struct comparison *c, struct results *r, struct simulation *s,
                            uint64_t seed, bool steps, struct error *error)
{
    const struct attention *a = &s->attention;
    struct random_inputs x;
    struct trace trace = {step_log_add, &c->simulated_steps};
    if (random_inputs_make(&x, a, seed, error))
        return error->status;
    r->lse_count = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    r->o_count = r->lse_count * (size_t)a->head_dim_v;
    r->o = malloc(r->o_count * sizeof *r->o);
    r->lse = malloc(r->lse_count * sizeof *r->lse);
    enum status status = STATUS_OK;
    s->trace = steps ? &trace : NULL;
    if (!r->o || !r->lse)
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the results");
    else
        status = attention_simulate(s, x.q, x.k, x.v, r->o, r->lse, error);
    s->trace = NULL;
    random_inputs_free(&x);
    return status;
}

static void compare_launch(struct compared_launch *l, const struct launch_record *simulated,
                           const struct observed_launch *seen)
{
    static const enum counter counters[DIRECTION_COUNT] = {
        COUNTER_LOAD_SECTORS, COUNTER_STORE_SECTORS, COUNTER_REDUCE_SECTORS};
    *l = (struct compared_launch){.equal = simulated && seen &&
                                           strcmp(simulated->name, seen->kernel) == 0};
    if (simulated)
        snprintf(l->kernel, sizeof l->kernel, "%s", simulated->name);
    else if (seen)
        memcpy(l->kernel, seen->kernel, sizeof l->kernel);
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        if (simulated)
            l->simulated[k] = account_total(&simulated->account).of[k].sectors;
        if (seen)
            l->measured[k] = (int64_t)seen->of[counters[k]];
        l->equal &= l->simulated[k] == l->measured[k];
    }
}

static void compare_traffic(struct comparison *c, const struct simulation *s)
{
    const struct account predicted = io_predict(s->algorithm, &s->attention, s->tma);
    const struct account simulated = gpu_account(&s->gpu);
    const int seen = c->seen.launches, own = s->gpu.launch_count;
    c->traffic_equal = account_equal(&predicted, &simulated);
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        c->predicted[k] = account_total(&predicted).of[k].sectors;
        c->simulated[k] = account_total(&simulated).of[k].sectors;
    }
    if (seen == 0)
        return;
    c->launches = seen > own ? seen : own;
    for (int i = 0; i < c->launches; i++) {
        compare_launch(&c->launch[i], i < own ? &s->gpu.launches[i] : NULL,
                       i < seen ? &c->seen.launch[i] : NULL);
        c->traffic_equal &= c->launch[i].equal;
        for (int k = 0; k < DIRECTION_COUNT; k++)
            c->measured[k] += c->launch[i].measured[k];
    }
}

/* Notes a difference of two steps, if it is the first. */
static void note(struct comparison *c, const struct step_record *record, const char *what,
                 int row, double simulated, double measured)
{
    if (!c->step.found)
        c->step = (struct step_difference){true, *record, what, row, simulated, measured};
}

static bool same_place(const struct step_record *a, const struct step_record *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->step, b->step) == 0 && a->i == b->i &&
           a->j == b->j && memcmp(a->block, b->block, sizeof a->block) == 0;
}

static void compare_step(struct comparison *c, const struct step_record *simulated,
                         const struct step_record *measured)
{
    const struct {
        const char *what;
        int64_t simulated, measured;
    } whole[] = {{"bytes read", simulated->read_bytes, measured->read_bytes},
                 {"bytes written", simulated->written_bytes, measured->written_bytes},
                 {"bytes reduced", simulated->reduced_bytes, measured->reduced_bytes},
                 {"rows", simulated->rows, measured->rows}};
    if (!same_place(simulated, measured))
        note(c, simulated, "kernel, block, (i, j) or step", -1, NAN, NAN);
    for (int k = 0; k < 4; k++)
        if (whole[k].simulated != whole[k].measured)
            note(c, simulated, whole[k].what, -1, (double)whole[k].simulated,
                 (double)whole[k].measured);
    if (simulated->rows != measured->rows)
        return;
    const struct {
        const char *what;
        const float *simulated, *measured;
    } of_rows[] = {{"m", simulated->m, measured->m},
                   {"l", simulated->l, measured->l},
                   {"norm of O", simulated->o_norm, measured->o_norm}};
    c->rows_compared += simulated->rows;
    for (int row = 0; row < simulated->rows; row++) {
        for (int k = 0; k < 3; k++) {
            const double x = (double)of_rows[k].simulated[row];
            const double y = (double)of_rows[k].measured[row];
            const double share = difference(x, y);
            c->largest_difference = fmax(c->largest_difference, share);
            if (share > 1.0)
                note(c, simulated, of_rows[k].what, row, x, y);
        }
    }
}

static void compare_steps(struct comparison *c)
{
    const struct step_log *own = &c->simulated_steps, *seen = &c->seen.steps;
    const int64_t both = own->count < seen->count ? own->count : seen->count;
    if (seen->count == 0)
        return;
    for (int64_t i = 0; i < both && !c->step.found; i++) {
        compare_step(c, &own->records[i], &seen->records[i]);
        c->steps_compared++;
    }
    if (own->count > both)
        note(c, &own->records[both], "steps that the kernel does not have", -1,
             (double)own->count, (double)seen->count);
    if (seen->count > both)
        note(c, &seen->records[both], "steps that the simulator does not have", -1,
             (double)own->count, (double)seen->count);
}

static double largest_difference(const float *simulated, const float *measured, size_t count)
{
    double largest = 0.0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, difference((double)simulated[i], (double)measured[i]));
    return largest;
}

/* Of sums over count elements: errors of the elements add up like random steps. */
static double difference_of_sums(double simulated, double measured,
                                 const struct result_summary *s)
{
    const double tolerance = 1e-5 * (sqrt((double)s->count) + s->norm);
    const double share = fabs(simulated - measured) / tolerance;
    return isfinite(share) ? share : INFINITY;
}

static double difference_of_summaries(const float *values, size_t count,
                                      const struct result_summary *measured)
{
    const struct result_summary own = result_summarize(values, count);
    if (own.count != measured->count || own.nonfinite != measured->nonfinite)
        return INFINITY;
    double largest = fmax(difference_of_sums(own.sum, measured->sum, &own),
                          difference_of_sums(own.norm, measured->norm, &own));
    for (int k = 0; k < PROJECTIONS; k++)
        largest =
            fmax(largest, difference_of_sums(own.projection[k], measured->projection[k], &own));
    return largest;
}

enum status comparison_live(struct comparison *c, struct simulation *s,
                            const struct gpu_plan *plan, struct error *error)
{
    struct results r = {0};
    *c = (struct comparison){0};
    s->attention.tiled_gemm = s->algorithm == ALGORITHM_STANDARD;
    if (attention_count(s, error) || /* refuses what does not fit, before the kernel runs */
        gpu_run(&c->seen, s->algorithm, &s->attention, plan, error))
        return error->status;
    const enum status status = simulate(c, &r, s, plan->seed, plan->steps, error);
    if (status == STATUS_OK) {
        compare_traffic(c, s);
        compare_steps(c);
        c->o_difference = largest_difference(r.o, c->seen.o, r.o_count);
        c->lse_difference = largest_difference(r.lse, c->seen.lse, r.lse_count);
        c->results_equal = c->o_difference <= 1.0 && c->lse_difference <= 1.0;
    } else {
        comparison_free(c);
    }
    results_free(&r);
    return status;
}

enum status comparison_recorded(struct comparison *c, struct simulation *s,
                                struct gpu_recording *recording, struct error *error)
{
    struct results r = {0};
    *c = (struct comparison){.seen = recording->seen};
    recording->seen = (struct observation){0};
    s->algorithm = recording->algorithm;
    s->attention = recording->attention;
    const enum status status =
        simulate(c, &r, s, recording->seed, c->seen.steps.count > 0, error);
    if (status == STATUS_OK) {
        compare_traffic(c, s);
        compare_steps(c);
        c->o_difference = difference_of_summaries(r.o, r.o_count, &recording->o);
        c->lse_difference = difference_of_summaries(r.lse, r.lse_count, &recording->lse);
        c->results_equal = c->o_difference <= 1.0 && c->lse_difference <= 1.0;
    } else {
        comparison_free(c);
    }
    results_free(&r);
    return status;
}

bool comparison_equal(const struct comparison *c)
{
    return c->traffic_equal && !c->step.found && c->results_equal;
}

void comparison_free(struct comparison *c)
{
    step_log_free(&c->simulated_steps);
    observation_free(&c->seen);
}
