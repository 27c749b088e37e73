#include "common/comparison_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/report.h"

static const char *const direction_names[DIRECTION_COUNT] = {"read", "written", "reduced"};

/* What the kernel's side is called: in columns, and beside predicted and simulated. */
static const char *side_of(const struct comparison *c)
{
    return c->seen.on_cpu ? "CPU" : "GPU";
}

static const char *column_of(const struct comparison *c)
{
    return c->seen.on_cpu ? "CPU" : "measured";
}

static void print_problem(const struct comparison *c, const struct simulation *s,
                          const struct comparison_source *source)
{
    const struct attention *a = &s->attention;
    const struct observation *g = &c->seen;
    printf("%s: simulator and ", algorithm_name(s->algorithm));
    if (g->on_cpu)
        printf("the CUDA source, executed on this CPU\n");
    else
        printf("%s (driver %s, CUDA %d.%d)\n", g->gpu, g->driver, g->cuda_version / 1000,
               g->cuda_version % 1000 / 10);
    if (source->recording)
        printf("recorded %s in %s\n", source->date, source->recording);
    printf("batch %d, heads %d/%d, N %d/%d, d %d/%d, Br %d, Bc %d, mask %s, seed %" PRIu64
           "\n\n",
           a->batch, a->heads_q, a->heads_kv, a->seqlen_q, a->seqlen_k, a->head_dim,
           a->head_dim_v, a->block_q, a->block_k, mask_name(a->mask), source->seed);
}

static void print_sectors(const char *kernel, const char *side, const int64_t *sectors,
                          const char *verdict)
{
    char x[DIRECTION_COUNT][32];
    printf("%-18s %-10s %15s %15s %11s%s\n", kernel, side, report_grouped(x[0], sectors[0]),
           report_grouped(x[1], sectors[1]), report_grouped(x[2], sectors[2]), verdict);
}

static void print_traffic(const struct comparison *c)
{
    printf("%-29s %15s %15s %11s\n", "sectors of 32 bytes", "read", "written", "reduced");
    for (int i = 0; i < c->launches; i++) {
        const struct compared_launch *l = &c->launch[i];
        print_sectors(l->kernel, "simulated", l->simulated, "");
        print_sectors("", column_of(c), l->measured, l->equal ? " equal" : " NOT EQUAL");
    }
    print_sectors("whole run", "predicted", c->predicted, "");
    print_sectors("", "simulated", c->simulated, "");
    if (c->launches > 0)
        print_sectors("", column_of(c), c->measured, "");
    printf("\n");
}

/* Of shared memory, which the simulator does not lay out over banks. */
static void print_conflicts(const struct comparison *c)
{
    char x[2][32];
    for (int i = 0; i < c->seen.launches; i++) {
        const double *of = c->seen.launch[i].of;
        printf("%s: bank conflicts of shared memory: %s of loads, %s of stores\n",
               c->seen.launch[i].kernel,
               report_grouped(x[0], (int64_t)of[COUNTER_SHARED_LOAD_CONFLICTS]),
               report_grouped(x[1], (int64_t)of[COUNTER_SHARED_STORE_CONFLICTS]));
    }
    printf("\n");
}

/* In columns of width, "-" for what a step does not know. */
static void print_value(float value, int width, int decimals)
{
    if (isnan(value))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, decimals, (double)value);
}

/* Both sides' row 0, the line below its step. */
static void print_row_pair(const struct step_record *a, const struct step_record *b)
{
    printf("    row 0  m");
    print_value(a->m[0], 9, 5);
    print_value(b->m[0], 9, 5);
    printf("  l");
    print_value(a->l[0], 9, 4);
    print_value(b->l[0], 9, 4);
    printf("  |O|");
    print_value(a->o_norm[0], 8, 4);
    print_value(b->o_norm[0], 8, 4);
    printf("\n");
}

static void print_steps(const struct comparison *c)
{
    printf("Each pair: simulator, %s. Bytes are those that the thread block moved so far.\n\n"
           "%4s %4s %5s  %-39s %11s %11s\n",
           side_of(c), "i", "j", "block", "step", "simulator", side_of(c));
    for (int64_t n = 0; n < c->steps_compared; n++) {
        const struct step_record *a = &c->simulated_steps.records[n];
        const struct step_record *b = &c->seen.steps.records[n];
        printf("%4d %4d %3d,%d  %-39s %11" PRId64 " %11" PRId64 "\n", a->i, a->j, a->block[0],
               a->block[2], a->step, a->read_bytes + a->written_bytes + a->reduced_bytes,
               b->read_bytes + b->written_bytes + b->reduced_bytes);
        if (a->rows > 0 && b->rows > 0)
            print_row_pair(a, b);
    }
    printf("\n");
}

void comparison_print_step_difference(const struct comparison *c)
{
    const struct step_difference *d = &c->step;
    const struct step_record *r = &d->record;
    printf("      first difference: %s, block (%d, %d, %d), i %d, j %d\n      step \"%s\"",
           r->kernel, r->block[0], r->block[1], r->block[2], r->i, r->j, r->step);
    if (d->row >= 0)
        printf(", row %d", d->row);
    printf("\n      %s: simulator %.9g, %s %.9g\n", d->what, d->simulated, side_of(c),
           d->measured);
}

void comparison_print(const struct comparison *c, const struct simulation *s,
                      const struct comparison_source *source, bool steps)
{
    print_problem(c, s, source);
    print_traffic(c);
    if (c->seen.on_cpu)
        print_conflicts(c);
    if (steps)
        print_steps(c);
    printf("%s traffic: predicted = simulated", c->traffic_equal ? "PASS" : "FAIL");
    if (c->launches > 0)
        printf(" = %s\n", column_of(c));
    else
        printf("; not measured:\n%s\n", c->seen.uncounted);
    if (c->steps_compared > 0 || c->step.found)
        printf("%s steps: %" PRId64 ", %" PRId64 " rows: m, l and |O| within %.2g of the "
               "tolerance\n",
               c->step.found ? "FAIL" : "PASS", c->steps_compared, c->rows_compared,
               c->largest_difference);
    if (c->step.found)
        comparison_print_step_difference(c);
    printf("%s results: O within %.2g, LSE within %.2g of the tolerance\n",
           c->results_equal ? "PASS" : "FAIL", c->o_difference, c->lse_difference);
}

static void add_sectors(cJSON *parent, const char *key, const int64_t *sectors)
{
    cJSON *object = cJSON_AddObjectToObject(parent, key);
    char name[32];
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        snprintf(name, sizeof name, "%s_sectors", direction_names[k]);
        report_add_integer(object, name, sectors[k]);
    }
}

static void add_launches(cJSON *json, const struct comparison *c)
{
    cJSON *launches = cJSON_AddArrayToObject(json, "launches");
    for (int i = 0; i < c->launches; i++) {
        cJSON *launch = cJSON_CreateObject();
        cJSON_AddItemToArray(launches, launch);
        cJSON_AddStringToObject(launch, "kernel", c->launch[i].kernel);
        add_sectors(launch, "simulated", c->launch[i].simulated);
        add_sectors(launch, "measured", c->launch[i].measured);
        cJSON *counters = cJSON_AddObjectToObject(launch, "counters");
        for (int k = 0; i < c->seen.launches && k < COUNTER_COUNT; k++)
            cJSON_AddNumberToObject(counters, counter_name((enum counter)k),
                                    c->seen.launch[i].of[k]);
        cJSON_AddBoolToObject(launch, "equal", c->launch[i].equal);
    }
}

/* JSON has no infinities: they are strings, as in traces. */
static void add_value(cJSON *object, const char *key, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddStringToObject(object, key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static void add_step_difference(cJSON *json, const struct step_difference *d)
{
    const struct step_record *r = &d->record;
    cJSON *object = cJSON_AddObjectToObject(json, "first_difference");
    cJSON_AddStringToObject(object, "kernel", r->kernel);
    cJSON_AddItemToObject(object, "block", cJSON_CreateIntArray(r->block, 3));
    report_add_integer(object, "i", r->i);
    report_add_integer(object, "j", r->j);
    cJSON_AddStringToObject(object, "step", r->step);
    cJSON_AddStringToObject(object, "what", d->what);
    report_add_integer(object, "row", d->row);
    add_value(object, "simulated", d->simulated);
    add_value(object, "measured", d->measured);
}

static void add_steps(cJSON *json, const struct comparison *c)
{
    static const char *const sides[] = {"simulated", "measured"};
    cJSON *steps = cJSON_AddArrayToObject(json, "steps");
    for (int64_t n = 0; n < c->steps_compared; n++) {
        const struct step_record *of[] = {&c->simulated_steps.records[n],
                                          &c->seen.steps.records[n]};
        cJSON *step = cJSON_CreateObject();
        cJSON_AddItemToArray(steps, step);
        cJSON_AddStringToObject(step, "kernel", of[0]->kernel);
        cJSON_AddItemToObject(step, "block", cJSON_CreateIntArray(of[0]->block, 3));
        report_add_integer(step, "i", of[0]->i);
        report_add_integer(step, "j", of[0]->j);
        cJSON_AddStringToObject(step, "step", of[0]->step);
        for (int side = 0; side < 2; side++) {
            cJSON *values = cJSON_AddObjectToObject(step, sides[side]);
            report_add_integer(values, "read_bytes", of[side]->read_bytes);
            report_add_integer(values, "written_bytes", of[side]->written_bytes);
            if (of[side]->rows > 0) {
                add_value(values, "m0", (double)of[side]->m[0]);
                add_value(values, "l0", (double)of[side]->l[0]);
                add_value(values, "o_norm0", (double)of[side]->o_norm[0]);
            }
        }
    }
}

void comparison_print_json(const struct comparison *c, const struct simulation *s,
                           const struct comparison_source *source, bool steps)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "algorithm", algorithm_name(s->algorithm));
    report_add_options(json, s);
    report_add_integer(json, "seed", (int64_t)source->seed);
    cJSON_AddBoolToObject(json, "on_cpu", c->seen.on_cpu);
    if (!c->seen.on_cpu) {
        cJSON_AddStringToObject(json, "gpu", c->seen.gpu);
        cJSON_AddStringToObject(json, "driver", c->seen.driver);
    }
    if (source->recording)
        cJSON_AddStringToObject(json, "recorded", source->date);
    add_sectors(json, "predicted", c->predicted);
    add_sectors(json, "simulated", c->simulated);
    if (c->launches > 0)
        add_sectors(json, "measured", c->measured);
    else
        cJSON_AddStringToObject(json, "uncounted", c->seen.uncounted);
    add_launches(json, c);
    cJSON_AddBoolToObject(json, "traffic_equal", c->traffic_equal);
    report_add_integer(json, "steps_compared", c->steps_compared);
    add_value(json, "largest_step_difference", c->largest_difference);
    if (c->step.found)
        add_step_difference(json, &c->step);
    if (steps)
        add_steps(json, c);
    add_value(json, "o_difference", c->o_difference);
    add_value(json, "lse_difference", c->lse_difference);
    cJSON_AddBoolToObject(json, "results_equal", c->results_equal);
    cJSON_AddBoolToObject(json, "equal", comparison_equal(c));
    report_write_json(json);
}
