/* flashlab compare: simulator and CUDA kernel side by side, in traffic, results and steps. */
#include <stdio.h>

#include "common/comparison_report.h"
#include "common/kernel_run.h"
#include "common/options.h"
#include "flashlab.h"

/* What the recording says, or what it takes the place of. */
#define NOT_WITH_RECORDING                                                                     \
    (RUN_OPTIONS | OPTION_BIT(OPTION_SEED) | OPTION_BIT(OPTION_GPU) | OPTION_BIT(OPTION_CPU) | \
     OPTION_BIT(OPTION_NCU))

static const struct usage usage = {
    .program = "flashlab compare",
    .summary =
        "Runs an algorithm on the simulator and as a CUDA kernel: on this CPU, where its "
        "source\n"
        "is executed and every access observed (--cpu, the default; N is 256 if not given), "
        "on\n"
        "a GPU (--gpu), or from the recording of one (--recording). Compares traffic to the\n"
        "sector, results and, with --steps, every step of every thread block.",
    .options = NOT_WITH_RECORDING | OPTION_BIT(OPTION_RECORDING) | OPTION_BIT(OPTION_STEPS) |
               OPTION_BIT(OPTION_JSON),
};

static int show(struct comparison *c, const struct options *o,
                const struct comparison_source *source)
{
    const bool equal = comparison_equal(c);
    (o->json ? comparison_print_json : comparison_print)(c, &o->simulation, source, o->steps);
    comparison_free(c);
    return exit_status(&usage, equal ? EXIT_OK : EXIT_CLAIM_FAILED);
}

static int compare_live(struct options *o)
{
    const struct gpu_plan plan = {.seed = o->seed,
                                  .steps = o->steps,
                                  .ncu = o->ncu,
                                  .cpu = !o->gpu,
                                  .machine = o->simulation.machine};
    const uint64_t lengths =
        OPTION_BIT(OPTION_SEQLEN) | OPTION_BIT(OPTION_SEQLEN_Q) | OPTION_BIT(OPTION_SEQLEN_K);
    struct comparison c;
    struct error error = {0};
    if (plan.cpu && o->ncu) {
        error_format(&error, STATUS_BAD_ARGUMENT,
                     "--ncu %.1000s: goes with --gpu only: on the CPU every access is counted",
                     o->ncu);
        return usage_error(&usage, &error);
    }
    if (plan.cpu && !(o->given & lengths))
        o->simulation.attention.seqlen_q = o->simulation.attention.seqlen_k = KERNEL_RUN_SEQLEN;
    if (comparison_live(&c, &o->simulation, &plan, &error))
        return usage_error(&usage, &error);
    return show(&c, o, &(struct comparison_source){.seed = o->seed});
}

static int compare_recorded(struct options *o)
{
    struct gpu_recording recording;
    struct comparison c;
    struct error error = {0};
    if (o->given & NOT_WITH_RECORDING) {
        error_format(&error, STATUS_BAD_ARGUMENT,
                     "--recording %.1000s: algorithm, shape, options and seed come from the "
                     "file; only --steps and --json go with it",
                     o->recording);
        return usage_error(&usage, &error);
    }
    if (gpu_recording_read(&recording, o->recording, &error)) {
        error_prefix(&error, "--recording ");
        return usage_error(&usage, &error);
    }
    const struct comparison_source source = {o->recording, recording.date, recording.seed};
    int code;
    if (o->steps && recording.seen.steps.count == 0) {
        error_format(&error, STATUS_BAD_ARGUMENT,
                     "--steps: the recording %.1000s has no steps (flashlab record --steps)",
                     o->recording);
        code = usage_error(&usage, &error);
    } else if (comparison_recorded(&c, &o->simulation, &recording, &error)) {
        code = usage_error(&usage, &error);
    } else {
        code = show(&c, o, &source);
    }
    gpu_recording_free(&recording);
    return code;
}

int flashlab_compare(int argc, char **argv)
{
    struct options o;
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    return o.recording ? compare_recorded(&o) : compare_live(&o);
}
