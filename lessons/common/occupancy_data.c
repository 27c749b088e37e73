#include "common/occupancy_data.h"

#include <math.h>
#include <string.h>

#include "core/machine.h"
#include "models/latency.h"

#define RESULTS FLASHLAB_ROOT "/cuda/results/"
#define SIZES RESULTS "h200_occupancy.csv"
#define TIMES RESULTS "h200_times.csv"
#define SWEEPS RESULTS "h200_occupancy_times.csv"
#define MACHINE "H200"

/* An operation of the first sweep: a warp loads 16 bytes a lane. Of the second: one of an SM's
 * four schedulers begins an FMA of a warp; one that needs its result can follow after 4 cycles
 * (Jia et al. 2018, arXiv 1804.06826, for Volta; the first row of the sweep shows it here). */
enum { LOAD_BYTES = 16, SCHEDULERS = 4, FMA_CYCLES = 4, ROUNDS = 256 };

static enum status number(double *value, const struct results_table *t, const char *path,
                          int row, const char *column, struct error *error)
{
    if (results_table_number(value, t, row, column) && *value >= 0 && *value <= 1e18)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_FILE, "%s: row %d: no number in column %s", path,
                     row + 1, column);
}

/* The block of a row, and the blocks that the driver gives an SM. */
static enum status read_block(struct block_needs *needs, double *blocks,
                              const struct results_table *t, const char *path, int row,
                              struct error *error)
{
    double threads = 0, registers = 0, fixed = 0, dynamic = 0;
    if (number(&threads, t, path, row, "threads", error) ||
        number(&registers, t, path, row, "registers", error) ||
        number(&fixed, t, path, row, "static_shared", error) ||
        number(&dynamic, t, path, row, "dynamic_shared", error) ||
        number(blocks, t, path, row, "blocks", error))
        return error->status;
    if (threads < 1 || threads > MOST_THREADS_PER_BLOCK ||
        registers > MOST_REGISTERS_PER_THREAD ||
        *blocks > sm_limits_of_machine(MACHINE)->blocks)
        return error_set(error, STATUS_BAD_FILE, "%s: row %d: no such block", path, row + 1);
    *needs = (struct block_needs){(int)threads, (int)registers, (int64_t)(fixed + dynamic)};
    return STATUS_OK;
}

/* Compares the driver's blocks with the calculator's in every row. */
static enum status check_blocks(struct occupancy_data *d, const struct results_table *t,
                                const char *path, struct error *error)
{
    for (int row = 0; row < t->rows; row++) {
        struct block_needs needs = {0};
        double blocks = 0;
        if (read_block(&needs, &blocks, t, path, row, error))
            return error->status;
        d->blocks_rows++;
        d->blocks_equal += occupancy_of(sm_limits_of_machine(MACHINE), &needs).blocks == blocks;
    }
    return STATUS_OK;
}

/* The first row whose fields are these, or -1. */
struct field {
    const char *column, *text;
};

static int find_row(const struct results_table *t, const struct field *fields, int count)
{
    for (int row = 0; row < t->rows; row++) {
        int equal = 0;
        for (int i = 0; i < count; i++) {
            const char *text = results_table_text(t, row, fields[i].column);
            equal += text && strcmp(text, fields[i].text) == 0;
        }
        if (equal == count)
            return row;
    }
    return -1;
}

/* A warp's load on an SM that has its share of the machine's bandwidth; in picoseconds. */
static struct latency_unit load_unit(const struct occupancy_data *d)
{
    const struct machine *m = machine_find(MACHINE);
    const double sm_bytes_per_second = m->hbm_bytes_per_second / m->sms;
    return (struct latency_unit){
        .latency = (int64_t)(d->load_latency_ns * 1e3 + 0.5),
        .interval = (int64_t)(WARP_THREADS * LOAD_BYTES / sm_bytes_per_second * 1e12 + 0.5)};
}

static void predict_loads(struct sweep_point *p, const struct occupancy_data *d)
{
    const struct latency_unit unit = load_unit(d);
    const struct latency_warps warps = {.warps = p->warps,
                                        .independent = p->independent,
                                        .in_rounds = true,
                                        .operations = (int64_t)ROUNDS * p->independent};
    const int64_t load = (int64_t)WARP_THREADS * LOAD_BYTES;
    const double scale = (double)load * 1e12 * machine_find(MACHINE)->sms;
    p->in_flight = p->warps * p->independent * load;
    p->predicted = scale * latency_rate(&unit, (int64_t)p->warps * p->independent);
    p->simulated = scale * latency_simulate(&unit, &warps);
}

static void predict_fmas(struct sweep_point *p)
{
    static const struct latency_unit unit = {.latency = FMA_CYCLES, .interval = 1};
    const struct latency_warps warps = {.warps = p->warps / SCHEDULERS,
                                        .independent = p->independent,
                                        .oldest_first = true,
                                        .operations = (int64_t)ROUNDS * p->independent};
    const double most = machine_find(MACHINE)->fp32_flops;
    p->in_flight = (int64_t)p->warps / SCHEDULERS * p->independent;
    p->predicted = most * latency_rate(&unit, p->in_flight);
    p->simulated = most * latency_simulate(&unit, &warps);
}

/* A row of the sweeps. The warps are those of blocks that share a scheduler evenly. */
static enum status read_point(struct sweep_point *p, const struct occupancy_data *d, int row,
                              struct error *error)
{
    const struct sm_limits *sm = sm_limits_of_machine(MACHINE);
    struct block_needs needs = {0};
    double blocks = 0, independent = 0, work = 0, median_us = 0;
    if (read_block(&needs, &blocks, &d->sweeps, SWEEPS, row, error) ||
        number(&independent, &d->sweeps, SWEEPS, row, "independent", error) ||
        number(&work, &d->sweeps, SWEEPS, row, "work", error) ||
        number(&median_us, &d->sweeps, SWEEPS, row, "median_us", error))
        return error->status;
    const int warps = (int)blocks * (needs.threads / WARP_THREADS);
    if (warps < SCHEDULERS || warps > sm_warps(sm) || warps % SCHEDULERS != 0 ||
        independent < 1 || independent > LATENCY_MOST_INDEPENDENT || median_us <= 0)
        return error_set(error, STATUS_BAD_FILE, "%s: row %d: no such launch", SWEEPS, row + 1);
    *p = (struct sweep_point){.is_load = p->is_load,
                              .independent = (int)independent,
                              .occupancy = (double)warps / sm_warps(sm),
                              .warps = warps,
                              .measured = (p->is_load ? 1 : 2) * work / median_us * 1e6};
    return STATUS_OK;
}

static enum status read_sweeps(struct occupancy_data *d, struct error *error)
{
    for (int row = 0; row < d->sweeps.rows; row++) {
        struct sweep_point *p = &d->point[d->points];
        const char *kernel = results_table_text(&d->sweeps, row, "kernel");
        p->is_load = kernel && strcmp(kernel, "sum_vector") == 0;
        if (!kernel || (!p->is_load && strcmp(kernel, "fma_chains") != 0))
            continue;
        if (d->points == SWEEP_MOST - 1)
            return error_set(error, STATUS_BAD_FILE, "%s: more than %d rows of the sweeps",
                             SWEEPS, d->points);
        if (read_point(p, d, row, error))
            return error->status;
        if (p->is_load)
            predict_loads(p, d);
        else
            predict_fmas(p);
        d->points++;
    }
    return d->points > 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FILE, "%s: no row of the sweeps", SWEEPS);
}

static enum status read_latency(struct occupancy_data *d, struct error *error)
{
    static const struct field chase = {"kernel", "pointer_chase"};
    const int row = find_row(&d->sweeps, &chase, 1);
    double loads = 0, us = 0;
    if (row < 0)
        return error_set(error, STATUS_BAD_FILE, "%s: no row of pointer_chase", SWEEPS);
    if (number(&loads, &d->sweeps, SWEEPS, row, "work", error) ||
        number(&us, &d->sweeps, SWEEPS, row, "median_us", error))
        return error->status;
    d->load_latency_ns = us * 1e3 / loads;
    if (!(d->load_latency_ns >= 1 && d->load_latency_ns <= 1e6))
        return error_set(error, STATUS_BAD_FILE, "%s: row %d: %g ns are no latency", SWEEPS,
                         row + 1, d->load_latency_ns);
    const struct latency_unit unit = load_unit(d);
    d->needed_bytes = latency_in_flight_needed(&unit) * WARP_THREADS * LOAD_BYTES;
    return STATUS_OK;
}

enum status occupancy_data_read(struct occupancy_data *d, struct error *error)
{
    *d = (struct occupancy_data){0};
    if (results_table_read(&d->sizes, SIZES, error) ||
        results_table_read(&d->times, TIMES, error) ||
        results_table_read(&d->sweeps, SWEEPS, error) ||
        check_blocks(d, &d->sizes, SIZES, error) ||
        check_blocks(d, &d->sweeps, SWEEPS, error) || read_latency(d, error) ||
        read_sweeps(d, error)) {
        occupancy_data_free(d);
        return error->status;
    }
    return STATUS_OK;
}

void occupancy_data_free(struct occupancy_data *d)
{
    results_table_free(&d->sizes);
    results_table_free(&d->times);
    results_table_free(&d->sweeps);
}

/* A tile is in column block_q of attention, in column tile of a matmul. */
static const char *tile_column(const char *head_dim)
{
    return *head_dim ? "block_q" : "tile";
}

enum status occupancy_data_needs(struct block_needs *needs, const struct occupancy_data *d,
                                 const char *kernel, const char *head_dim, const char *tile,
                                 struct error *error)
{
    const struct field fields[] = {
        {"kernel", kernel}, {"head_dim", head_dim}, {tile_column(head_dim), tile}};
    const int row = find_row(&d->sizes, fields, 3);
    double blocks = 0;
    if (row < 0)
        return error_set(error, STATUS_BAD_FILE, "%s: no row of %s, d \"%s\", tile \"%s\"",
                         SIZES, kernel, head_dim, tile);
    return read_block(needs, &blocks, &d->sizes, SIZES, row, error);
}

enum status occupancy_data_tile(struct timed_tile *timed, const struct occupancy_data *d,
                                const char *kernel, const char *head_dim, const char *tile,
                                struct error *error)
{
    const struct field fields[] = {{"kernel", kernel},
                                   {"head_dim", head_dim},
                                   {tile_column(head_dim), tile},
                                   {"mask", *head_dim ? "none" : ""},
                                   {"rows", *head_dim ? "" : "8192"}};
    const int row = find_row(&d->times, fields, 5);
    if (row < 0)
        return error_set(error, STATUS_BAD_FILE, "%s: no row of %s, d \"%s\", tile \"%s\"",
                         TIMES, kernel, head_dim, tile);
    if (occupancy_data_needs(&timed->needs, d, kernel, head_dim, tile, error) ||
        number(&timed->tflops, &d->times, TIMES, row, "tflops", error))
        return error->status;
    timed->occupancy = occupancy_of(sm_limits_of_machine(MACHINE), &timed->needs);
    return STATUS_OK;
}

double sweep_best(const struct occupancy_data *d, bool is_load)
{
    double best = 0;
    for (int i = 0; i < d->points; i++)
        if (d->point[i].is_load == is_load && d->point[i].measured > best)
            best = d->point[i].measured;
    return best;
}

double sweep_share(const struct occupancy_data *d, bool is_load, int independent, int warps)
{
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *p = &d->point[i];
        if (p->is_load == is_load && p->independent == independent && p->warps == warps)
            return p->measured / sweep_best(d, is_load);
    }
    return 0;
}

struct deviation sweep_deviation(const struct occupancy_data *d, bool is_load, bool simulated)
{
    struct deviation deviation = {.lowest = INFINITY, .highest = -INFINITY};
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *p = &d->point[i];
        if (p->is_load != is_load)
            continue;
        const double off = p->measured / (simulated ? p->simulated : p->predicted) - 1;
        deviation.settings++;
        deviation.lowest = fmin(deviation.lowest, off);
        deviation.highest = fmax(deviation.highest, off);
    }
    return deviation;
}

struct spread sweep_spread(const struct occupancy_data *d, bool by_occupancy)
{
    struct spread spread = {0};
    for (int i = 0; i < d->points; i++) {
        for (int k = 0; k < i; k++) {
            const struct sweep_point *a = &d->point[i], *b = &d->point[k];
            if (!a->is_load || !b->is_load ||
                (by_occupancy ? a->warps != b->warps : a->in_flight != b->in_flight))
                continue;
            const double most = fmax(a->measured, b->measured);
            spread.pairs++;
            spread.largest = fmax(spread.largest, 1 - fmin(a->measured, b->measured) / most);
        }
    }
    return spread;
}

int64_t sweep_in_flight_for(const struct occupancy_data *d, double share)
{
    const double wanted = share * sweep_best(d, true);
    int64_t most_below = -1, least = INT64_MAX;
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *p = &d->point[i];
        if (p->is_load && p->measured < wanted && p->in_flight > most_below)
            most_below = p->in_flight;
    }
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *p = &d->point[i];
        if (p->is_load && p->in_flight > most_below && p->in_flight < least)
            least = p->in_flight;
    }
    return least;
}

struct sweep_matches sweep_matches(const struct occupancy_data *d, double high, double low)
{
    struct sweep_matches m = {0};
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *full = &d->point[i];
        bool matched = false;
        for (int k = 0; k < d->points; k++) {
            const struct sweep_point *p = &d->point[k];
            matched |= p->is_load == full->is_load && p->occupancy <= low &&
                       p->measured >= 0.95 * full->measured;
        }
        m.settings += full->occupancy >= high;
        m.matched += full->occupancy >= high && matched;
    }
    return m;
}
