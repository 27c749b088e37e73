#include "common/basic_column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/kernel_twin.h"
#include "common/report.h"
#include "common/results_table.h"

/* Where counters and times are recorded: of a shape that is in several, the first. */
#define RESULTS FLASHLAB_ROOT "/cuda/results/"
static const char *const files[] = {RESULTS "h200_basic.csv", RESULTS "h200_counters.csv",
                                    RESULTS "h200_times.csv"};
enum { FILES = sizeof files / sizeof files[0] };

static bool same_shape(const struct results_table *t, int n, const struct cpu_run *shape)
{
    const uint64_t has = kernel_shape_options(shape->kernel);
    const struct {
        enum option_id id;
        int value;
    } sides[] = {{OPTION_ROWS, shape->rows},
                 {OPTION_COLS, shape->cols},
                 {OPTION_DEPTH, shape->depth},
                 {OPTION_TILE, shape->tile}};
    const char *kernel = results_table_text(t, n, "kernel");
    if (!kernel || strcmp(kernel, cpu_kernel_name(shape->kernel)) != 0)
        return false;
    for (int i = 0; i < 4; i++) {
        double recorded;
        if ((has & OPTION_BIT(sides[i].id)) &&
            (!results_table_number(&recorded, t, n, option_name(sides[i].id)) ||
             recorded != sides[i].value))
            return false;
    }
    return true;
}

static void forget_measured(struct basic_row *row)
{
    row->dram_read_bytes = row->dram_write_bytes = row->l2_sectors = -1;
    row->shared_loads = row->shared_load_wavefronts = row->median_us = -1;
}

/* Fills what the table's row has and the row lacks. */
static void take_row(struct basic_column *k, struct basic_row *row,
                     const struct results_table *t, int n)
{
    static const char *const sectors[DIRECTION_COUNT] = {"measured_load", "measured_store",
                                                         "measured_reduce"};
    double value[DIRECTION_COUNT];
    bool counted = true;
    for (int i = 0; i < DIRECTION_COUNT; i++)
        counted &= results_table_number(&value[i], t, n, sectors[i]);
    snprintf(k->gpu, sizeof k->gpu, "%s", t->gpu);
    snprintf(k->software, sizeof k->software, "%s", t->software);
    snprintf(k->date, sizeof k->date, "%s", t->date);
    if (counted && row->source == BASIC_UNKNOWN) {
        for (int i = 0; i < DIRECTION_COUNT; i++)
            row->sectors.measured[i] = (int64_t)value[i];
        row->source = BASIC_RECORDED;
        results_table_number(&row->dram_read_bytes, t, n, "dram_read_bytes");
        results_table_number(&row->dram_write_bytes, t, n, "dram_write_bytes");
        results_table_number(&row->l2_sectors, t, n, "l2_sectors");
    }
    if (row->shared_loads < 0) {
        results_table_number(&row->shared_loads, t, n, "shared_load_instructions");
        results_table_number(&row->shared_load_wavefronts, t, n, "shared_load_wavefronts");
    }
    if (row->median_us < 0)
        results_table_number(&row->median_us, t, n, "median_us");
}

enum status basic_column_recorded(struct basic_column *k, struct basic_row *row,
                                  struct error *error)
{
    forget_measured(row);
    for (int i = 0; i < FILES; i++) {
        struct results_table t;
        if (results_table_read(&t, files[i], error))
            return error->status;
        for (int n = 0; n < t.rows; n++)
            if (same_shape(&t, n, &row->shape))
                take_row(k, row, &t, n);
        results_table_free(&t);
    }
    return STATUS_OK;
}

static void take_run(struct basic_column *k, struct basic_row *row,
                     const struct kernel_run *run)
{
    const struct observation *seen = &run->seen;
    row->sectors = run->sectors;
    if (run->results > 0)
        row->result = run->result[0];
    forget_measured(row);
    if (run->counts) {
        row->source = BASIC_ON_CPU;
        row->shared_loads = (double)run->counts->launch[0].shared[CPU_LOAD].requests;
        row->shared_load_wavefronts =
            (double)run->counts->launch[0].shared[CPU_LOAD].wavefronts;
        return;
    }
    snprintf(k->gpu, sizeof k->gpu, "%s", seen->gpu);
    snprintf(k->software, sizeof k->software, "driver %s, CUDA %d.%d", seen->driver,
             seen->cuda_version / 1000, seen->cuda_version % 1000 / 10);
    row->median_us = seen->median_us;
    if (seen->launches == 0) {
        snprintf(k->uncounted, sizeof k->uncounted, "%s", seen->uncounted);
        return;
    }
    row->source = BASIC_ON_GPU;
    row->dram_read_bytes = seen->launch[0].of[COUNTER_DRAM_READ_BYTES];
    row->dram_write_bytes = seen->launch[0].of[COUNTER_DRAM_WRITE_BYTES];
    row->l2_sectors = seen->launch[0].of[COUNTER_L2_SECTORS];
    row->shared_loads = seen->launch[0].of[COUNTER_SHARED_LOAD_INSTRUCTIONS];
    row->shared_load_wavefronts = seen->launch[0].of[COUNTER_SHARED_LOAD_WAVEFRONTS];
}

/* Runs the row's kernel, on the GPU or the CPU as the options say. */
static enum status run_row(struct basic_column *k, struct basic_row *row, bool results,
                           const struct options *o, struct error *error)
{
    struct kernel_run run;
    if (kernel_run_at(&run, &row->shape, results, o, error)) {
        if (!o->gpu)
            error_prefix(error, "--cpu: ");
        return error->status;
    }
    take_run(k, row, &run);
    kernel_run_free(&run);
    return STATUS_OK;
}

/* Predicted and simulated sectors, and those recorded. */
static enum status look_up_row(struct basic_column *k, struct basic_row *row,
                               const struct options *o, struct error *error)
{
    struct kernel_twin twin;
    if (basic_column_recorded(k, row, error) ||
        kernel_twin_count(&twin, &row->shape, o->simulation.machine, error))
        return error->status;
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        row->sectors.predicted[n] = account_total(&twin.predicted).of[n].sectors;
        row->sectors.simulated[n] = account_total(&twin.simulated).of[n].sectors;
    }
    return STATUS_OK;
}

enum status basic_column_open(struct basic_column *k, const struct options *o,
                              const struct cpu_run *shapes, int count,
                              const struct cpu_run *small, int small_count, struct error *error)
{
    CHECK(count <= BASIC_COLUMN_ROWS && small_count <= BASIC_COLUMN_ROWS, "%d and %d shapes",
          count, small_count);
    *k = (struct basic_column){
        .live = o->gpu || o->cpu, .rows = count, .small_rows = o->cpu ? 0 : small_count};
    for (int n = 0; n < k->rows; n++) {
        k->row[n].shape = shapes[n];
        if (k->live ? run_row(k, &k->row[n], o->cpu, o, error)
                    : look_up_row(k, &k->row[n], o, error))
            return error->status;
    }
    for (int n = 0; n < k->small_rows; n++) {
        k->small[n].shape = small[n];
        if (run_row(k, &k->small[n], true, o, error))
            return error->status;
    }
    return STATUS_OK;
}

static const char *const direction_names[DIRECTION_COUNT] = {"loaded", "stored", "reduced"};

static void claim_sectors(struct lesson *l, const char *who, const struct kernel_sectors *s)
{
    char claim[3 * KERNEL_SHAPE_LENGTH];
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        if (s->predicted[n] == 0 && s->simulated[n] == 0 && s->measured[n] == 0)
            continue;
        snprintf(claim, sizeof claim, "%s: sectors %s", who, direction_names[n]);
        lesson_claim_measured(l, l->json ? claim : direction_names[n], s->predicted[n],
                              s->simulated[n], s->measured[n]);
    }
}

/* DRAM and time: beside the claims, for they are no counts of requests. */
static void say_rest(struct lesson *l, const struct basic_row *row)
{
    char x[2][32];
    if (row->dram_read_bytes >= 0)
        lesson_say(l, "      bytes of DRAM: %s read, %s written\n",
                   report_grouped(x[0], (int64_t)row->dram_read_bytes),
                   report_grouped(x[1], (int64_t)row->dram_write_bytes));
    if (row->median_us >= 0)
        lesson_say(l, "      time: %.1f us\n", row->median_us);
}

static void claim_row(struct lesson *l, const struct basic_row *row)
{
    char shape[KERNEL_SHAPE_LENGTH], who[2 * KERNEL_SHAPE_LENGTH];
    snprintf(who, sizeof who, "%s, %s", cpu_kernel_name(row->shape.kernel),
             kernel_run_shape(shape, &row->shape));
    lesson_say(l, "      %s\n", who);
    if (row->source != BASIC_UNKNOWN)
        claim_sectors(l, who, &row->sectors);
    if (row->result.array) {
        char claim[3 * KERNEL_SHAPE_LENGTH];
        snprintf(claim, sizeof claim, "%s%s%s is the simulator's, up to rounding",
                 l->json ? who : "", l->json ? ": " : "", row->result.array);
        lesson_claim_error(l, claim, 1.0, row->result.difference);
    }
    say_rest(l, row);
}

static void claim_rows(struct lesson *l, const struct basic_row *rows, int count,
                       const char *column)
{
    bool known = false;
    for (int n = 0; n < count; n++)
        known |= rows[n].source != BASIC_UNKNOWN || rows[n].median_us >= 0;
    if (!known)
        return;
    lesson_say(l, "      %-28s %14s %14s %14s\n", "sectors of 32 bytes", "predicted",
               "simulated", column);
    for (int n = 0; n < count; n++)
        if (rows[n].source != BASIC_UNKNOWN || rows[n].median_us >= 0)
            claim_row(l, &rows[n]);
}

/* Shapes whose sectors no one has measured, and why. */
static void say_unknown(struct lesson *l, const struct basic_column *k)
{
    char shape[KERNEL_SHAPE_LENGTH];
    for (int n = 0; n < k->rows; n++)
        if (k->row[n].source == BASIC_UNKNOWN)
            lesson_say(l, "Not measured: %s, %s.\n", cpu_kernel_name(k->row[n].shape.kernel),
                       kernel_run_shape(shape, &k->row[n].shape));
    for (int n = 0; n < k->rows; n++) {
        if (k->row[n].source == BASIC_UNKNOWN) {
            lesson_say(l, "%s\n",
                       k->live ? k->uncounted
                               : "No recording has that shape: --gpu runs it on a GPU, --cpu "
                                 "on this CPU.");
            return;
        }
    }
}

void basic_column_claim(struct lesson *l, const struct basic_column *k)
{
    if (k->live && !*k->gpu)
        lesson_say(l, "Our own kernels, cuda/kernels: their source executed on this CPU, every "
                      "access\nobserved. Errors are shares of what rounding may do.\n\n");
    else if (*k->gpu)
        lesson_say(l, "Our own kernels, cuda/kernels, on an %s (%s),\n%s%s.\n\n", k->gpu,
                   k->software, k->live ? "run just now" : "recorded ", k->date);
    claim_rows(l, k->row, k->rows, k->live && !*k->gpu ? "CPU" : "measured");
    say_unknown(l, k);
    if (k->small_rows == 0)
        return;
    lesson_say(l, "\n%s\nErrors are shares of what rounding may do.\n\n",
               k->live ? "Small shapes, with their results."
                       : "The same source executed on this CPU, every access observed.");
    claim_rows(l, k->small, k->small_rows, k->live ? "measured" : "CPU");
}
