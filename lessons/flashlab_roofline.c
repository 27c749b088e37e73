/* flashlab roofline: arithmetic intensity of the algorithms, and what bounds them where. */
#include <inttypes.h>
#include <stdio.h>

#include "common/figure.h"
#include "common/options.h"
#include "common/report.h"
#include "common/roofline_figure.h"
#include "flashlab.h"
#include "models/kernel_work.h"

static const struct usage usage = {
    .program = "flashlab roofline",
    .summary = "Says how many FLOPs the attention algorithms do for a byte, at HBM and at L2,\n"
               "and what bounds them: on one machine with a time, on all in a word.",
    .options = (RUN_OPTIONS & ~OPTION_BIT(OPTION_SCALE)) | OPTION_BIT(OPTION_DTYPE) |
               OPTION_BIT(OPTION_TILED_GEMM) | OPTION_BIT(OPTION_MACHINE) |
               OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_CSV) | OPTION_BIT(OPTION_PLOT),
};

/* Without --algorithm all four. */
static bool wanted(const struct options *o, int algorithm)
{
    return !(o->given & OPTION_BIT(OPTION_ALGORITHM)) ||
           o->simulation.algorithm == (enum algorithm)algorithm;
}

static struct time_estimate time_of_counts(const struct options *o, int algorithm)
{
    const struct time_work work =
        kernel_work_counts((enum algorithm)algorithm, &o->simulation.attention);
    return time_of(o->simulation.machine, &work);
}

static void print_ceilings(const struct machine *m, enum roofline_unit unit)
{
    printf("%s, %s: peak %.1f TFLOP/s\n", m->name, roofline_unit_name(unit),
           roofline_peak(m, unit) / 1e12);
    for (int i = 0; i < ROOFLINE_LEVELS; i++) {
        const enum roofline_level level = (enum roofline_level)i;
        if (roofline_bandwidth(m, level) > 0)
            printf("  %-3s  %.2f TB/s, ridge %.1f FLOPs a byte\n", roofline_level_name(level),
                   roofline_bandwidth(m, level) / 1e12, roofline_ridge(m, unit, level));
    }
    printf("\n");
}

static void print_algorithms(const struct options *o)
{
    const struct machine *m = o->simulation.machine;
    printf("%-9s %8s %17s %18s %9s %9s\n", "", "", "FLOP/B", "TFLOP/s", "ms, units",
           "ms, units");
    printf("%-9s %8s %8s %8s %10s %7s %9s %9s\n", "algorithm", "GFLOP", "at HBM", "at L2",
           "attainable", "bound", "at once", "in turn");
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        if (!wanted(o, i))
            continue;
        const struct roofline_point p =
            roofline_attention((enum algorithm)i, &o->simulation.attention);
        const struct time_estimate t = time_of_counts(o, i);
        printf("%-9s %8.2f %8.1f %8.2f %10.2f %7s %9.3f %9.3f\n",
               algorithm_name((enum algorithm)i), p.flops / 1e9,
               roofline_intensity(&p, ROOFLINE_HBM), roofline_intensity(&p, ROOFLINE_L2),
               roofline_attainable(m, &p) / 1e12, roofline_bound_name(roofline_bound_of(m, &p)),
               1e3 * t.overlapped, 1e3 * t.in_turn);
    }
    printf("\n");
}

static void print_machines(const struct options *o)
{
    const enum roofline_unit unit = roofline_unit_of(o->simulation.attention.dtype);
    int count;
    const struct machine *machines = machine_table(&count);
    printf("%-12s %8s %8s", "", "ridge", "ridge");
    printf("\n%-12s %8s %8s", "bound by", "at HBM", "at L2");
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (wanted(o, i))
            printf(" %9s", algorithm_name((enum algorithm)i));
    printf("\n");
    for (const struct machine *m = machines; m < machines + count; m++) {
        printf("%-12s", m->name);
        for (int i = 0; i < ROOFLINE_LEVELS; i++) {
            const double ridge = roofline_ridge(m, unit, (enum roofline_level)i);
            if (ridge > 0)
                printf(" %8.1f", ridge);
            else
                printf(" %8s", "-");
        }
        for (int i = 0; i < ALGORITHM_COUNT; i++) {
            const struct roofline_point p =
                roofline_attention((enum algorithm)i, &o->simulation.attention);
            if (wanted(o, i))
                printf(" %9s", roofline_peak(m, unit) > 0
                                   ? roofline_bound_name(roofline_bound_of(m, &p))
                                   : "-");
        }
        printf("\n");
    }
    printf("\n-: not known, or no such unit\n");
}

static void add_algorithm(cJSON *list, const struct options *o, int algorithm)
{
    const struct machine *m = o->simulation.machine;
    const struct roofline_point p =
        roofline_attention((enum algorithm)algorithm, &o->simulation.attention);
    const struct time_estimate t = time_of_counts(o, algorithm);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list, object);
    cJSON_AddStringToObject(object, "algorithm", algorithm_name((enum algorithm)algorithm));
    report_add_integer(object, "flops", (int64_t)p.flops);
    report_add_integer(object, "hbm_bytes", (int64_t)p.bytes[ROOFLINE_HBM]);
    report_add_integer(object, "l2_bytes", (int64_t)p.bytes[ROOFLINE_L2]);
    cJSON_AddNumberToObject(object, "attainable_flops_per_second", roofline_attainable(m, &p));
    cJSON_AddStringToObject(object, "bound", roofline_bound_name(roofline_bound_of(m, &p)));
    cJSON_AddNumberToObject(object, "seconds_at_once", t.overlapped);
    cJSON_AddNumberToObject(object, "seconds_in_turn", t.in_turn);
}

static void print_json(const struct options *o)
{
    const struct machine *m = o->simulation.machine;
    const enum roofline_unit unit = roofline_unit_of(o->simulation.attention.dtype);
    cJSON *json = cJSON_CreateObject();
    report_add_options(json, &o->simulation);
    cJSON_AddStringToObject(json, "unit", roofline_unit_name(unit));
    cJSON_AddNumberToObject(json, "peak_flops_per_second", roofline_peak(m, unit));
    for (int i = 0; i < ROOFLINE_LEVELS; i++) {
        const double ridge = roofline_ridge(m, unit, (enum roofline_level)i);
        const char *key = i == ROOFLINE_HBM ? "hbm_ridge" : "l2_ridge";
        if (ridge > 0)
            cJSON_AddNumberToObject(json, key, ridge);
        else
            cJSON_AddNullToObject(json, key);
    }
    cJSON *list = cJSON_AddArrayToObject(json, "algorithms");
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (wanted(o, i))
            add_algorithm(list, o, i);
    report_write_json(json);
}

/* figure_data */
static enum status write_data(FILE *csv, const struct options *o, struct error *error)
{
    (void)error;
    roofline_figure_header(csv);
    roofline_figure_ceilings(csv, o->simulation.machine,
                             roofline_unit_of(o->simulation.attention.dtype));
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        if (!wanted(o, i))
            continue;
        const struct roofline_point p =
            roofline_attention((enum algorithm)i, &o->simulation.attention);
        roofline_figure_kernel(csv, algorithm_name((enum algorithm)i), &p,
                               time_of_counts(o, i).estimate, 0);
    }
    return STATUS_OK;
}

static enum status check(const struct options *o, struct error *error)
{
    const enum roofline_unit unit = roofline_unit_of(o->simulation.attention.dtype);
    if (attention_check(&o->simulation.attention, error))
        return error->status;
    if (roofline_peak(o->simulation.machine, unit) == 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--dtype %s: how fast %.32s multiplies %s is not known, or it cannot",
                         dtype_name(o->simulation.attention.dtype), o->simulation.machine->name,
                         roofline_unit_name(unit));
    return STATUS_OK;
}

int flashlab_roofline(int argc, char **argv)
{
    static const struct figure figure = {"roofline", "roofline"};
    struct options o;
    struct error error = {0};
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (check(&o, &error) || figure_make(&o, write_data, &figure, 1, &error))
        return usage_error(&usage, &error);
    if (o.json) {
        print_json(&o);
        return exit_status(&usage, EXIT_OK);
    }
    print_ceilings(o.simulation.machine, roofline_unit_of(o.simulation.attention.dtype));
    print_algorithms(&o);
    print_machines(&o);
    return exit_status(&usage, EXIT_OK);
}
