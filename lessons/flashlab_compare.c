/* flashlab compare: simulator and GPU side by side, in traffic, results and steps. */
#include <stdio.h>

#include "common/comparison_report.h"
#include "common/options.h"
#include "flashlab.h"

/* What the recording says, or what it takes the place of. */
#define NOT_WITH_RECORDING                                                                     \
    (RUN_OPTIONS | OPTION_BIT(OPTION_SEED) | OPTION_BIT(OPTION_GPU) | OPTION_BIT(OPTION_NCU))

static const struct usage usage = {
    .program = "flashlab compare",
    .summary =
        "Runs an algorithm on the simulator and on a GPU, live (--gpu) or from a recording\n"
        "(--recording), and compares traffic to the sector, results and, with --steps, every\n"
        "step of every thread block.",
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
    const struct gpu_plan plan = {o->seed, o->steps, o->ncu};
    struct comparison c;
    struct error error = {0};
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
    struct error error = {0};
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (o.recording)
        return compare_recorded(&o);
    if (o.gpu)
        return compare_live(&o);
    error_format(
        &error, STATUS_BAD_ARGUMENT,
        "--gpu or --recording FILE must be given: what the simulator is compared with");
    return usage_error(&usage, &error);
}
