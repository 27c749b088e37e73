/* flashlab record: a run on this machine's GPU, kept in a file for machines without one. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/gpu.h"
#include "common/gpu_recording.h"
#include "common/options.h"
#include "common/output_file.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab record",
    .summary =
        "Runs an algorithm on this machine's GPU and writes what was seen to --recording "
        "FILE:\n"
        "GPU, driver, date, shape, seed, results in a few sums, hardware counters and, with\n"
        "--steps, the step records. `flashlab compare --recording FILE` reads it anywhere.",
    .options = RUN_OPTIONS | OPTION_BIT(OPTION_SEED) | OPTION_BIT(OPTION_STEPS) |
               OPTION_BIT(OPTION_NCU) | OPTION_BIT(OPTION_RECORDING),
    .refused = OPTION_BIT(OPTION_CPU),
    .why = "recordings are made on a GPU; a CPU needs none: see flashlab compare --cpu",
};

/* The command and the date, for whoever finds the file. */
static void sign(struct gpu_recording *r, int argc, char **argv)
{
    const time_t now = time(NULL);
    size_t at = (size_t)snprintf(r->command, sizeof r->command, "flashlab");
    for (int i = 0; i < argc && at < sizeof r->command; i++)
        at += (size_t)snprintf(r->command + at, sizeof r->command - at, " %s", argv[i]);
    strftime(r->date, sizeof r->date, "%Y-%m-%d", localtime(&now));
}

static enum status observe(struct gpu_recording *r, const struct options *o,
                           struct error *error)
{
    const struct attention *a = &r->attention;
    const size_t rows = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    const struct gpu_plan plan = {.seed = o->seed, .steps = o->steps, .ncu = o->ncu};
    if (attention_check(a, error) || gpu_run(&r->seen, r->algorithm, a, &plan, error))
        return error->status;
    r->o = result_summarize(r->seen.o, rows * (size_t)a->head_dim_v);
    r->lse = result_summarize(r->seen.lse, rows);
    return STATUS_OK;
}

static enum status write_file(const struct gpu_recording *r, const char *path,
                              struct error *error)
{
    struct output_file file;
    if (output_open(&file, "--recording", path, error))
        return error->status;
    gpu_recording_write(r, file.stream); /* a stream that failed fails again below */
    return output_commit(&file, error);
}

int flashlab_record(int argc, char **argv)
{
    struct options o;
    struct error error = {0};
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    struct gpu_recording r = {.algorithm = o.simulation.algorithm,
                              .attention = o.simulation.attention,
                              .seed = o.seed};
    r.attention.tiled_gemm = r.algorithm == ALGORITHM_STANDARD;
    if (!o.recording)
        error_format(&error, STATUS_BAD_ARGUMENT, "--recording FILE: must be given");
    else if (observe(&r, &o, &error) == STATUS_OK) {
        sign(&r, argc, argv);
        write_file(&r, o.recording, &error);
    }
    gpu_recording_free(&r);
    if (error.status)
        return usage_error(&usage, &error);
    printf("wrote %s\n", o.recording);
    return exit_status(&usage, EXIT_OK);
}
