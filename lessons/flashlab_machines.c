/* flashlab machines: the table of GPUs, and all figures of one with their sources. */
#include <stdio.h>

#include "common/options.h"
#include "common/own_machine.h"
#include "common/report.h"
#include "core/machine_figures.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab machines",
    .summary =
        "Lists the machines that --machine can name. With MACHINE, a name or a file: each\n"
        "of its figures with unit and source, in the form of a file for --machine.",
    .options = OPTION_BIT(OPTION_JSON),
    .operand = "[MACHINE]",
};

/* A figure in the table, in its column's unit. */
static void print_cell(const struct machine *m, enum machine_figure f, double unit, int width,
                       int decimals)
{
    const double value = machine_figure_get(m, f);
    if (value > 0)
        printf(" %*.*f", width, decimals, value / unit);
    else
        printf(" %*s", width, value == 0 ? "?" : "none");
}

static const struct column {
    const char *heading, *unit_name;
    enum machine_figure f;
    double unit;
    int width, decimals;
} columns[] = {
    {"SMs", "", FIGURE_SMS, 1, 4, 0},
    {"HBM", "GB", FIGURE_HBM_SIZE, 1e9, 4, 0},
    {"HBM", "TB/s", FIGURE_HBM_BANDWIDTH, 1e12, 6, 3},
    {"L2", "MB", FIGURE_L2_SIZE, 0x1p20, 4, 0},
    {"SRAM", "KB/SM", FIGURE_SRAM_PER_SM, 1024, 5, 0},
    {"block", "KB", FIGURE_SRAM_PER_BLOCK, 1024, 5, 0},
    {"warps", "/SM", FIGURE_WARPS_PER_SM, 1, 5, 0},
    {"fp16", "TF/s", FIGURE_TENSOR_F16, 1e12, 5, 0},
    {"fp32", "TF/s", FIGURE_FP32, 1e12, 5, 1},
    {"exp2", "Top/s", FIGURE_EXP2_F32, 1e12, 5, 2},
    {"NVLink", "GB/s", FIGURE_NVLINK, 1e9, 6, 0},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void print_table(const struct machine *machines, int count)
{
    printf("%-11s", "machine");
    for (const struct column *c = columns; c < columns + COLUMNS; c++)
        printf(" %*s", c->width, c->heading);
    printf("\n%-11s", "");
    for (const struct column *c = columns; c < columns + COLUMNS; c++)
        printf(" %*s", c->width, c->unit_name);
    printf("\n");
    for (int i = 0; i < count; i++) {
        printf("%-11s", machines[i].name);
        for (const struct column *c = columns; c < columns + COLUMNS; c++)
            print_cell(&machines[i], c->f, c->unit, c->width, c->decimals);
        printf("\n");
    }
    printf("\nfp16: tensor cores, dense. ?: unknown. Default: %s\n\n", machine_default()->name);
    for (int i = 0; i < count; i++)
        printf("%-11s %s\n", machines[i].name, machines[i].note);
}

/* A file of that machine. What is unknown is a comment there. */
static void print_machine(const struct machine *m)
{
    char value[FIGURE_TEXT_SIZE];
    printf("[%s]\n", m->name);
    if (*m->note)
        printf("note = %s\n", m->note);
    for (int f = 0; f < FIGURE_COUNT; f++) {
        const char *key = machine_figures[f].key, *source = m->source[f];
        machine_figure_format(value, m, (enum machine_figure)f);
        if (machine_figure_get(m, (enum machine_figure)f) == 0)
            printf("# %-17s %s\n", key, value);
        else if (*source)
            printf("%-17s = %-13s # %s\n", key, value, source);
        else
            printf("%-17s = %s\n", key, value);
    }
}

/* In base units; null where unknown, "none" where the machine has no such thing. */
static void add_figure(cJSON *object, const struct machine *m, enum machine_figure f)
{
    const struct machine_figure_info *info = &machine_figures[f];
    const double value = machine_figure_get(m, f);
    if (value == 0)
        cJSON_AddNullToObject(object, info->field);
    else if (value == MACHINE_NONE)
        cJSON_AddStringToObject(object, info->field, "none");
    else if (info->type == TYPE_DOUBLE)
        cJSON_AddNumberToObject(object, info->field, value);
    else
        report_add_integer(object, info->field, (int64_t)value);
}

static cJSON *machine_json(const struct machine *m)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", m->name);
    for (int f = 0; f < FIGURE_COUNT; f++)
        add_figure(object, m, (enum machine_figure)f);
    cJSON_AddStringToObject(object, "note", m->note);
    cJSON *sources = cJSON_AddObjectToObject(object, "sources");
    for (int f = 0; f < FIGURE_COUNT; f++)
        if (*m->source[f])
            cJSON_AddStringToObject(sources, machine_figures[f].field, m->source[f]);
    return object;
}

static void print_all(bool json)
{
    int count;
    const struct machine *machines = machine_table(&count);
    if (!json) {
        print_table(machines, count);
        return;
    }
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, machine_json(&machines[i]));
    report_write_json(list);
}

int flashlab_machines(int argc, char **argv)
{
    struct options o;
    struct error error = {0};
    const struct machine *machine;
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (!o.operand) {
        print_all(o.json);
        return exit_status(&usage, EXIT_OK);
    }
    if (machine_open(&machine, &o.own_machine, o.operand, &error))
        return usage_error(&usage, &error);
    if (o.json)
        report_write_json(machine_json(machine));
    else
        print_machine(machine);
    return exit_status(&usage, EXIT_OK);
}
