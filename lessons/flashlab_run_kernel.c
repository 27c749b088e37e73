/* flashlab run-kernel: a CUDA kernel's source executed on this CPU, every access counted. */
#include <stdio.h>

#include "common/kernel_lines.h"
#include "common/kernel_report.h"
#include "common/report.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab run-kernel",
    .summary =
        "Executes the CUDA source of one of our kernels on this CPU and observes every "
        "access:\n"
        "HBM requests and sectors by array, bank conflicts of shared memory, barriers. "
        "Compares\n"
        "sectors and results with the simulator's. With --lines: the source, with what each\n"
        "line moves.\n\n"
        "NAME is vector_add (--cols), matmul_naive (--rows --cols --depth), matmul_shared or\n"
        "matmul_tiled (also --tile), softmax_naive, softmax_safe or softmax_online (--rows\n"
        "--cols); or naive_attention, standard_attention, flash1_forward or flash2_forward\n"
        "(--seqlen ...; N is 256 if not given). --machine sets the limit of shared memory.",
    .options = KERNEL_SHAPE_OPTIONS | OPTION_BIT(OPTION_MACHINE) | OPTION_BIT(OPTION_SEED) |
               OPTION_BIT(OPTION_CPU) | OPTION_BIT(OPTION_LINES) | OPTION_BIT(OPTION_JSON),
    .operand = "NAME",
    .refused = OPTION_BIT(OPTION_GPU),
    .why = "run-kernel executes on the CPU; on a GPU, ncu profiles flashlab compare --gpu",
};

/* The message lists all names. */
static enum status find_kernel(enum cpu_kernel *kernel, const char *name, struct error *error)
{
    char names[256];
    int used = 0;
    if (name && cpu_kernel_parse(kernel, name))
        return STATUS_OK;
    for (int i = 0; i < CPU_KERNELS; i++)
        used += snprintf(names + used, sizeof names - (size_t)used, "%s%s",
                         i == 0                 ? ""
                         : i == CPU_KERNELS - 1 ? " or "
                                                : ", ",
                         cpu_kernel_name((enum cpu_kernel)i));
    if (!name)
        return error_set(error, STATUS_BAD_ARGUMENT, "NAME: must be given: %s", names);
    return error_set(error, STATUS_BAD_ARGUMENT, "%.100s: no kernel; NAME is %s", name, names);
}

static void show(const struct kernel_run *k, const struct kernel_lines *lines, bool json)
{
    if (json) {
        cJSON *object = kernel_report_json(k);
        if (lines)
            cJSON_AddItemToObject(object, "lines", kernel_lines_json(lines));
        report_write_json(object);
        return;
    }
    kernel_report_problem(k);
    kernel_report_launches(k);
    if (lines)
        kernel_lines_print(lines);
    kernel_report_verdicts(k);
}

static int run(enum cpu_kernel kernel, const struct options *o)
{
    struct error error = {0};
    struct kernel_run k;
    struct kernel_lines lines = {.count = 0};
    if (kernel_run_make(&k, kernel, o, &error))
        return usage_error(&usage, &error);
    int code = k.equal ? EXIT_OK : EXIT_CLAIM_FAILED;
    if (o->lines && kernel_lines_make(&lines, &k, FLASHLAB_ROOT, &error))
        code = usage_error(&usage, &error);
    else
        show(&k, o->lines ? &lines : NULL, o->json);
    kernel_lines_free(&lines);
    kernel_run_free(&k);
    return exit_status(&usage, code);
}

int flashlab_run_kernel(int argc, char **argv)
{
    struct options o;
    struct error error = {0};
    enum cpu_kernel kernel;
    options_init(&o);
    o.simulation.attention.seqlen_q = o.simulation.attention.seqlen_k = KERNEL_RUN_SEQLEN;
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (find_kernel(&kernel, o.operand, &error))
        return usage_error(&usage, &error);
    return run(kernel, &o);
}
