/* flashlab machines: the table of GPUs. */
#include <stdio.h>

#include "common/options.h"
#include "common/report.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab machines",
    .summary = "Lists the GPUs that --machine can name.",
    .options = OPTION_BIT(OPTION_JSON),
};

static void print_table(const struct machine *machines, int count)
{
    printf("%-10s %4s %5s %6s %5s %7s %7s %7s %6s\n", "machine", "SMs", "HBM", "HBM", "L2",
           "SRAM/SM", "block", "16-bit", "fp32");
    printf("%-10s %4s %5s %6s %5s %7s %7s %7s %6s\n", "", "", "GB", "TB/s", "MB", "KB", "KB",
           "TFLOP/s", "");
    for (int i = 0; i < count; i++) {
        const struct machine *m = &machines[i];
        printf("%-10s %4d %5.0f %6.3f %5.0f %7.0f %7.0f %7.0f %6.1f  %s\n", m->name, m->sms,
               (double)m->hbm_bytes / 1e9, m->hbm_bytes_per_second / 1e12,
               (double)m->l2_bytes / 1048576, (double)m->sram_bytes_per_sm / 1024,
               (double)m->sram_bytes_per_block / 1024, m->tensor_flops / 1e12,
               m->fp32_flops / 1e12, m == machine_default() ? "default" : "");
    }
    printf("\nregisters: %.0f KB an SM in all of them\n",
           (double)machines[0].register_bytes / 1024);
    for (int i = 0; i < count; i++)
        printf("%-10s %s\n", machines[i].name, machines[i].note);
}

static void print_json(const struct machine *machines, int count)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) {
        const struct machine *m = &machines[i];
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToArray(list, entry);
        cJSON_AddStringToObject(entry, "name", m->name);
        report_add_integer(entry, "sms", m->sms);
        report_add_integer(entry, "hbm_bytes", m->hbm_bytes);
        cJSON_AddNumberToObject(entry, "hbm_bytes_per_second", m->hbm_bytes_per_second);
        report_add_integer(entry, "l2_bytes", m->l2_bytes);
        report_add_integer(entry, "sram_bytes_per_sm", m->sram_bytes_per_sm);
        report_add_integer(entry, "sram_bytes_per_block", m->sram_bytes_per_block);
        report_add_integer(entry, "register_bytes", m->register_bytes);
        cJSON_AddNumberToObject(entry, "tensor_flops", m->tensor_flops);
        cJSON_AddNumberToObject(entry, "fp32_flops", m->fp32_flops);
        cJSON_AddStringToObject(entry, "note", m->note);
    }
    report_write_json(list);
}

int flashlab_machines(int argc, char **argv)
{
    struct options o;
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    int count;
    const struct machine *machines = machine_table(&count);
    if (o.json)
        print_json(machines, count);
    else
        print_table(machines, count);
    return exit_status(&usage, EXIT_OK);
}
