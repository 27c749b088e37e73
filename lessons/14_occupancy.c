/* Lesson 14, occupancy: what limits the warps of an SM, and when few of them are enough. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/figure.h"
#include "common/lesson.h"
#include "common/occupancy_data.h"
#include "common/report.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

#define OWN_OPTIONS                                                                            \
    (OPTION_BIT(OPTION_MACHINE) | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_CSV) |           \
     OPTION_BIT(OPTION_PLOT))

static const struct usage usage = {
    .program = "14_occupancy",
    .summary = "Lesson 14: occupancy, and why few warps can be enough",
    .options = OWN_OPTIONS,
    .refused = LESSON_OPTIONS & ~OWN_OPTIONS,
    .why = "what this lesson shows was recorded (cuda/results/h200_occupancy*.csv); on a GPU, "
           "make gpu-occupancy and make gpu-occupancy-times measure it anew",
};

static const char question[] =
    "1. Question\n\n"
    "An SM switches among its warps to hide how long each of them waits. Occupancy is\n"
    "the share of the warps it could hold that a kernel lets it hold. What limits it,\n"
    "and is a kernel with a higher occupancy faster?";

enum { FULL_WARPS = 64 };

static void prediction(struct lesson *l, const struct occupancy_data *d)
{
    const struct machine *m = machine_find("H200");
    char x[32];
    lesson_section(l, "2. Prediction");
    lesson_say(
        l, "Little's law: in flight = rate x latency. Warps hide latency only because they\n"
           "have something in flight, and a warp may have more than one thing:\n\n"
           "  warps x independent operations of each >= rate x latency\n\n");
    lesson_say(
        l,
        "  HBM   %.1f TB/s over %d SMs x %.0f ns (a load that waits for the one before)\n"
        "        = %s bytes in flight an SM: %.0f %% of its warps, if each thread has\n"
        "        one load of 16 bytes in flight; %.0f %% if it has 8\n",
        m->hbm_bytes_per_second / 1e12, m->sms, d->load_latency_ns,
        report_grouped(x, d->needed_bytes),
        100.0 * (double)d->needed_bytes / (16.0 * 32 * FULL_WARPS),
        100.0 * (double)d->needed_bytes / (8 * 16.0 * 32 * FULL_WARPS));
    lesson_say(
        l, "  FMA   each of the 4 schedulers begins one a cycle, its result takes 4 cycles:\n"
           "        4 in flight, of 4 warps a scheduler (25 %% occupancy), or of one warp\n"
           "        with 4 chains of FMAs that do not need each other (6 %%)\n");
}

/* The kernels that are shown, as h200_occupancy.csv has them. */
static const struct shown {
    const char *name, *kernel, *head_dim, *tile;
} shown[] = {
    {"vector_add", "vector_add", "", ""},
    {"softmax_online", "softmax_online", "", ""},
    {"matmul_tiled 16", "matmul_tiled", "", "16"},
    {"matmul_tiled 32", "matmul_tiled", "", "32"},
    {"matmul_tiled 64", "matmul_tiled", "", "64"},
    {"flash1_forward 64", "flash1_forward", "64", "64"},
    {"flash2_forward 16", "flash2_forward", "64", "16"},
    {"flash2_forward 32", "flash2_forward", "64", "32"},
    {"flash2_forward 64", "flash2_forward", "64", "64"},
};

/* All that limits them on one machine. */
static enum status one_machine(struct lesson *l, const struct occupancy_data *d,
                               struct error *error)
{
    const char *machine = l->options->simulation.machine->name;
    const struct sm_limits *sm = sm_limits_of_machine(machine);
    lesson_say(l, "Our kernels on one SM of %s (tiles 16, 32, 64; d = 64):\n\n", machine);
    lesson_say(l, "%-18s %8s %9s %8s %7s %6s %6s  %s\n", "kernel", "threads", "registers",
               "shared", "blocks", "warps", "occ.", "limited by");
    for (size_t i = 0; i < LENGTH(shown); i++) {
        struct block_needs needs;
        char x[32];
        if (occupancy_data_needs(&needs, d, shown[i].kernel, shown[i].head_dim, shown[i].tile,
                                 error))
            return error->status;
        const struct occupancy o = occupancy_of(sm, &needs);
        lesson_say(l, "%-18s %8d %9d %8s %7d %6d %5.0f%%  %s\n", shown[i].name, needs.threads,
                   needs.registers, report_grouped(x, needs.shared_bytes), o.blocks, o.warps,
                   100.0 * o.warps / sm_warps(sm), occupancy_limit_name(o.limit));
    }
    return STATUS_OK;
}

/* Blocks, and the first letter of what limits them. */
static enum status all_machines(struct lesson *l, const struct occupancy_data *d,
                                struct error *error)
{
    int count;
    const struct machine *table = machine_table(&count);
    lesson_say(
        l,
        "\nBlocks an SM on every machine, limited by its count of (b)locks, by (w)arps,\n"
        "(r)egisters or (s)hared memory; 0: one does not fit. Compiled for the H200:\n\n"
        "%-10s",
        "");
    for (size_t i = 2; i < LENGTH(shown); i++)
        lesson_say(l, " %6.6s %2s", shown[i].kernel, shown[i].tile);
    lesson_say(l, "\n");
    for (int m = 0; m < count; m++) {
        const struct sm_limits *sm = sm_limits_of_machine(table[m].name);
        if (!sm)
            continue;
        lesson_say(l, "%-10s", table[m].name);
        for (size_t i = 2; i < LENGTH(shown); i++) {
            struct block_needs needs;
            if (occupancy_data_needs(&needs, d, shown[i].kernel, shown[i].head_dim,
                                     shown[i].tile, error))
                return error->status;
            const struct occupancy o = occupancy_of(sm, &needs);
            lesson_say(l, " %7d %c", o.blocks, *occupancy_limit_name(o.limit));
        }
        lesson_say(l, "\n");
    }
    lesson_say(l, "\n");
    return STATUS_OK;
}

static enum status limits(struct lesson *l, const struct occupancy_data *d, struct error *error)
{
    lesson_section(l, "3. Experiment: what limits the blocks of an SM");
    if (one_machine(l, d, error) || all_machines(l, d, error))
        return error->status;
    lesson_claim_judged(l, "The calculator's blocks an SM are those of the H200's driver",
                        d->blocks_equal == d->blocks_rows, "%d of %d launches equal",
                        d->blocks_equal, d->blocks_rows);
    return STATUS_OK;
}

/* Larger tiles hold fewer warps, and are faster. */
static enum status tiles_of(struct lesson *l, const struct occupancy_data *d,
                            const char *kernel, const char *head_dim, struct error *error)
{
    static const char *const tiles[] = {"16", "32", "64"};
    struct timed_tile timed[LENGTH(tiles)];
    const struct timed_tile *fastest = timed, *emptiest = timed;
    char claim[96];
    for (size_t i = 0; i < LENGTH(tiles); i++) {
        const struct timed_tile *t = &timed[i];
        if (occupancy_data_tile(&timed[i], d, kernel, head_dim, tiles[i], error))
            return error->status;
        lesson_say(l, "%-16s %4s %10d %8d %9.0f %% %12.1f\n", kernel, tiles[i],
                   t->occupancy.blocks, t->occupancy.warps,
                   100.0 * t->occupancy.warps / FULL_WARPS, t->tflops);
        fastest = t->tflops > fastest->tflops ? t : fastest;
        emptiest = t->occupancy.warps < emptiest->occupancy.warps ? t : emptiest;
    }
    snprintf(claim, sizeof claim, "The fastest %s has the fewest warps an SM of the three",
             kernel);
    lesson_claim_judged(l, claim, fastest->occupancy.warps == emptiest->occupancy.warps,
                        "fewest %d  the fastest has %d of %d", emptiest->occupancy.warps,
                        fastest->occupancy.warps, FULL_WARPS);
    return STATUS_OK;
}

static enum status tiles(struct lesson *l, const struct occupancy_data *d, struct error *error)
{
    lesson_section(l, "4. Experiment: the fastest tiles fill the SM the least");
    lesson_say(l, "%-16s %4s %10s %8s %11s %12s\n", "kernel", "tile", "blocks", "warps",
               "occupancy", "TFLOP/s");
    if (tiles_of(l, d, "flash2_forward", "64", error))
        return error->status;
    lesson_say(l, "\n");
    if (tiles_of(l, d, "matmul_tiled", "", error))
        return error->status;
    lesson_say(
        l, "\nA larger tile needs more registers and shared memory, and so fewer blocks\n"
           "fit; but it loads less for each FLOP, and each thread has more sums in flight.\n");
    return STATUS_OK;
}

/* latency: that with which what is in flight gives what was measured. */
static void print_loads(struct lesson *l, const struct occupancy_data *d)
{
    const int sms = machine_find("H200")->sms;
    char x[32];
    lesson_say(l, "%5s %5s %7s %9s %10s %10s %9s %8s %8s\n", "loads", "warps", "occ.",
               "in flight", "predicted", "simulated", "measured", "of best", "latency");
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *p = &d->point[i];
        if (!p->is_load)
            continue;
        lesson_say(l, "%5d %5d %6.1f%% %9s %10.2f %10.2f %9.2f %7.0f%% %8.0f\n", p->independent,
                   p->warps, 100 * p->occupancy, report_grouped(x, p->in_flight),
                   p->predicted / 1e12, p->simulated / 1e12, p->measured / 1e12,
                   100 * p->measured / sweep_best(d, true),
                   1e9 * (double)p->in_flight * sms / p->measured);
    }
    lesson_say(l, "\n");
}

static void loads(struct lesson *l, const struct occupancy_data *d)
{
    const struct deviation all = sweep_deviation(d, true, false);
    const struct spread bytes = sweep_spread(d, false), warps = sweep_spread(d, true);
    const int64_t enough = sweep_in_flight_for(d, 0.9);
    const double few = sweep_share(d, true, 8, FULL_WARPS / 8);
    const double many = sweep_share(d, true, 1, FULL_WARPS);
    char x[32];
    lesson_section(l, "5. Experiment: loads in flight");
    lesson_say(
        l, "A vector of 4 GiB, read with 1, 2, 4 or 8 loads of 16 bytes a thread in flight;\n"
           "shared memory that no one uses lowers the blocks of 256 threads an SM. In\n"
           "flight: bytes an SM. Predicted: min(4.8 TB/s, in flight / latency). Simulated:\n"
           "a warp waits for the last of its loads before the next ones. TB/s and ns:\n\n");
    print_loads(l, d);
    lesson_claim_judged(l, "No setting exceeds Little's law",
                        all.settings > 0 && all.highest <= 0,
                        "%.0f to %.0f %% below it, %d settings", -100 * all.highest,
                        -100 * all.lowest, all.settings);
    lesson_say(l,
               "      90 %% of the best takes %s bytes in flight, %.1f times what the law\n"
               "      says: requests queue, and wait longer than one that is alone\n",
               report_grouped(x, enough), (double)enough / (double)d->needed_bytes);
    lesson_claim_judged(
        l, "Settings of the same bytes in flight are closer than of the same warps",
        bytes.pairs > 0 && bytes.largest < warps.largest,
        "at most %.0f %% apart, %d pairs  against %.0f %%, %d pairs", 100 * bytes.largest,
        bytes.pairs, 100 * warps.largest, warps.pairs);
    lesson_claim_judged(l, "A quarter of the warps with 8 loads: at least 95 % of the best",
                        sweep_share(d, true, 8, FULL_WARPS / 4) >= 0.95, "%.1f %% of the best",
                        100 * sweep_share(d, true, 8, FULL_WARPS / 4));
    lesson_claim_judged(
        l, "An eighth with 8 loads: at least 95 % of what all with 1 load reach",
        few >= 0.95 * many, "%.1f %% against %.1f %% of the best", 100 * few, 100 * many);
}

/* Of the many settings those that differ. */
static void print_fmas(struct lesson *l, const struct occupancy_data *d)
{
    lesson_say(l, "%6s %6s %7s %9s %11s %11s %11s %9s\n", "chains", "warps", "occ.",
               "in flight", "predicted", "simulated", "measured", "of best");
    for (int i = 0; i < d->points; i++) {
        const struct sweep_point *p = &d->point[i];
        if (p->is_load || (p->warps > FULL_WARPS * 3 / 8 && p->warps % (FULL_WARPS / 2) != 0))
            continue;
        lesson_say(l, "%6d %6d %6.1f%% %9d %11.2f %11.2f %11.2f %8.0f%%\n", p->independent,
                   p->warps, 100 * p->occupancy, (int)p->in_flight, p->predicted / 1e12,
                   p->simulated / 1e12, p->measured / 1e12,
                   100 * p->measured / sweep_best(d, false));
    }
    lesson_say(l, "\n");
}

static void fmas(struct lesson *l, const struct occupancy_data *d)
{
    const struct deviation law = sweep_deviation(d, false, false);
    const struct deviation played = sweep_deviation(d, false, true);
    const double few = sweep_share(d, false, 4, 4);
    const double many = sweep_share(d, false, 1, FULL_WARPS);
    lesson_section(l, "6. Experiment: FMAs in flight");
    lesson_say(
        l, "Chains x = x / 2 + b, each step needs the one before; 1, 2 or 4 chains a thread,\n"
           "blocks of 128 threads. In flight: FMAs of a warp a scheduler. Simulated: of the\n"
           "warps that are ready the oldest goes first, until all are done. TFLOP/s:\n\n");
    print_fmas(l, d);
    lesson_claim_judged(l, "No setting exceeds Little's law",
                        law.settings > 0 && law.highest <= 0,
                        "%.0f to %.0f %% below it, %d settings", -100 * law.highest,
                        -100 * law.lowest, law.settings);
    lesson_claim_judged(l, "Every setting reaches what is simulated, within 10 %",
                        played.settings > 0 && played.highest <= 0.10 && played.lowest >= -0.10,
                        "%.1f to %.1f %% off, %d settings", 100 * played.lowest,
                        100 * played.highest, played.settings);
    lesson_claim_judged(l, "4 warps with 4 chains reach 95 % of what 64 warps with 1 chain do",
                        few >= 0.95 * many, "%.1f %% against %.1f %% of the best", 100 * few,
                        100 * many);
    lesson_say(
        l,
        "\n5 warps a scheduler (20 an SM) with 1 chain are slower than 4: four keep it busy\n"
        "until they end, then the fifth is alone, and takes as long again.\n");
}

static void popular_claims(struct lesson *l, const struct occupancy_data *d)
{
    const struct sweep_matches m = sweep_matches(d, 0.75, 0.25);
    lesson_section(l, "7. Popular claim, checked");
    lesson_claim_judged(
        l, "\"The higher the occupancy, the faster\": no; it is one way of two",
        2 * m.matched >= m.settings,
        "%d of %d settings of 75 %% and more: one of 25 %% or less reaches 95 %% of it",
        m.matched, m.settings);
}

static enum status write_points(FILE *csv, const struct options *o, struct error *error)
{
    struct occupancy_data d;
    (void)o;
    if (occupancy_data_read(&d, error))
        return error->status;
    fprintf(csv, "sweep,independent,warps,occupancy,in_flight,predicted,simulated,measured\n");
    for (int i = 0; i < d.points; i++) {
        const struct sweep_point *p = &d.point[i];
        fprintf(csv, "%s,%d,%d,%.4f,%" PRId64 ",%.6g,%.6g,%.6g\n",
                p->is_load ? "loads" : "fmas", p->independent, p->warps, p->occupancy,
                p->in_flight, p->predicted, p->simulated, p->measured);
    }
    occupancy_data_free(&d);
    return STATUS_OK;
}

static const struct figure figures[] = {{"occupancy_bandwidth", "bandwidth"},
                                        {"occupancy_in_flight", "in_flight"}};

static const char next[] =
    "  --machine T4                     what limits the same kernels on a smaller SM\n"
    "  flashlab occupancy --threads 128 --registers 168 --shared 57600\n"
    "  make gpu-occupancy-times         the sweeps on your own GPU\n"
    "  08_flash_attention --block-q 64  why larger tiles load less\n";

static int tell(const struct options *o, const struct occupancy_data *d)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson, d);
    if (limits(&lesson, d, &error) || tiles(&lesson, d, &error))
        return lesson_abandon(&lesson, &error);
    loads(&lesson, d);
    fmas(&lesson, d);
    popular_claims(&lesson, d);
    return lesson_end(&lesson, next);
}

static int run(const struct options *o)
{
    struct error error = {0};
    struct occupancy_data data;
    const char *machine = o->simulation.machine->name;
    if (!sm_limits_of_machine(machine)) {
        error_format(&error, STATUS_BAD_ARGUMENT,
                     "--machine %.64s: occupancy is known of NVIDIA's GPUs in the table of "
                     "`flashlab machines`",
                     machine);
        return usage_error(&usage, &error);
    }
    if (occupancy_data_read(&data, &error))
        return usage_error(&usage, &error);
    const int code = figure_make(o, write_points, figures, LENGTH(figures), &error)
                         ? usage_error(&usage, &error)
                         : tell(o, &data);
    occupancy_data_free(&data);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
