/* flashlab attention: the user's own Q, K, V through a simulated kernel. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/inputs.h"
#include "common/options.h"
#include "common/output_file.h"
#include "common/progress.h"
#include "common/report.h"
#include "core/trace.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab attention",
    .summary =
        "Runs attention on your own tensors on the simulated GPU, writes o.npy and "
        "lse.npy,\nand prints the HBM traffic, counted and predicted. Needs --q, --k, --v "
        "and --out.",
    .options = OPTION_BIT(OPTION_ALGORITHM) | OPTION_BIT(OPTION_Q) | OPTION_BIT(OPTION_K) |
               OPTION_BIT(OPTION_V) | OPTION_BIT(OPTION_MASK) | OPTION_BIT(OPTION_SCALE) |
               OPTION_BIT(OPTION_BLOCK_Q) | OPTION_BIT(OPTION_BLOCK_K) |
               OPTION_BIT(OPTION_DTYPE) | OPTION_BIT(OPTION_TILED_GEMM) |
               OPTION_BIT(OPTION_TMA) | OPTION_BIT(OPTION_MACHINE) | OPTION_BIT(OPTION_OUT) |
               OPTION_BIT(OPTION_TRACE) | OPTION_BIT(OPTION_JSON),
};

/* The results in host memory, and where they go. */
struct outputs {
    float *o, *lse;
    bool made_directory; /* by this run: removed again if the run fails */
    char o_path[OUTPUT_PATH_LENGTH], lse_path[OUTPUT_PATH_LENGTH];
    char o_partial[OUTPUT_PATH_LENGTH], lse_partial[OUTPUT_PATH_LENGTH];
};

static enum status check_given(const struct options *o, struct error *error)
{
    const struct {
        const char *option, *value;
    } needed[] = {{"--q", o->q}, {"--k", o->k}, {"--v", o->v}, {"--out", o->out}};
    for (int i = 0; i < 4; i++)
        if (!needed[i].value)
            return error_set(error, STATUS_BAD_ARGUMENT, "%s: must be given", needed[i].option);
    return STATUS_OK;
}

/* Makes the directory if it is missing, and finds out before the work whether it can be used.
 */
static enum status prepare_directory(struct outputs *out, const char *directory,
                                     struct error *error)
{
    struct stat info;
    if (strlen(directory) > OUTPUT_PATH_LENGTH - 32)
        return error_set(error, STATUS_BAD_FILE, "--out %.100s...: the name is too long",
                         directory);
    snprintf(out->o_path, sizeof out->o_path, "%s/o.npy", directory);
    snprintf(out->lse_path, sizeof out->lse_path, "%s/lse.npy", directory);
    snprintf(out->o_partial, sizeof out->o_partial, "%s/o.npy.partial", directory);
    snprintf(out->lse_partial, sizeof out->lse_partial, "%s/lse.npy.partial", directory);
    out->made_directory = mkdir(directory, 0777) == 0;
    if (!out->made_directory && errno != EEXIST)
        return error_set(error, STATUS_BAD_FILE, "--out %s: cannot be made: %s", directory,
                         strerror(errno));
    if (stat(directory, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(error, STATUS_BAD_FILE, "--out %s: is not a directory", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return error_set(error, STATUS_BAD_FILE, "--out %s: cannot be written: %s", directory,
                         strerror(errno));
    const char *const paths[] = {out->o_path, out->lse_path};
    for (int i = 0; i < 2; i++)
        if (stat(paths[i], &info) == 0 && !S_ISREG(info.st_mode))
            return error_set(error, STATUS_BAD_FILE, "--out %s: is not a regular file",
                             paths[i]);
    return STATUS_OK;
}

static enum status alloc_outputs(struct outputs *out, const struct attention *a,
                                 struct error *error)
{
    const size_t rows = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    out->o = calloc(rows * (size_t)a->head_dim_v, sizeof *out->o);
    out->lse = calloc(rows, sizeof *out->lse);
    if (out->o && out->lse)
        return STATUS_OK;
    return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the results");
}

static enum status simulate(struct options *o, const struct inputs *in, struct outputs *out,
                            struct error *error)
{
    progress_show(&o->simulation);
    const enum status status = attention_simulate(&o->simulation, in->q.data, in->k.data,
                                                  in->v.data, out->o, out->lse, error);
    progress_end();
    return status;
}

/* Writes both files under partial names. The axes are those of Q. */
static enum status write_partial(const struct outputs *out, const struct inputs *in,
                                 struct error *error)
{
    int64_t shape[NPY_MAX_DIMS];
    const int ndim = in->q.ndim;
    memcpy(shape, in->q.shape, sizeof shape);
    shape[ndim - 1] = in->v.shape[ndim - 1];
    if (npy_write(out->o_partial, out->o, ndim, shape, error) ||
        npy_write(out->lse_partial, out->lse, ndim - 1, shape, error)) {
        error_prefix(error, "--out ");
        return error->status;
    }
    return STATUS_OK;
}

static enum status publish(const struct outputs *out, struct error *error)
{
    if (rename(out->o_partial, out->o_path) != 0 ||
        rename(out->lse_partial, out->lse_path) != 0)
        return error_set(error, STATUS_BAD_FILE, "--out %.1000s: cannot be written: %s",
                         out->o_path, strerror(errno));
    return STATUS_OK;
}

/* The work between checking and reporting: everything it writes appears at its end. */
static enum status work(struct options *o, const struct inputs *in, struct outputs *out,
                        struct error *error)
{
    struct output_file trace_file = {0};
    struct trace trace = {.record = trace_write_json};
    if (alloc_outputs(out, &o->simulation.attention, error))
        return error->status;
    if (o->trace) {
        if (output_open(&trace_file, "--trace", o->trace, error))
            return error->status;
        trace.context = trace_file.stream;
        o->simulation.trace = &trace;
    }
    if (simulate(o, in, out, error) || write_partial(out, in, error)) {
        if (o->trace)
            output_abandon(&trace_file);
        return error->status;
    }
    if ((o->trace && output_commit(&trace_file, error)) || publish(out, error))
        return error->status;
    return STATUS_OK;
}

/* Removes what a failed run has left. */
static void clean_up(const struct outputs *out, const char *directory)
{
    unlink(out->o_partial);
    unlink(out->lse_partial);
    if (out->made_directory)
        rmdir(directory);
}

/* Says on stderr how many elements of each tensor are NaN or infinite. */
static void report_nonfinite(const struct inputs *in, const struct outputs *out,
                             const struct attention *a)
{
    int64_t bad = 0;
    const size_t count =
        (size_t)attention_planes_q(a) * (size_t)a->seqlen_q * (size_t)a->head_dim_v;
    for (size_t i = 0; i < count; i++)
        bad += !isfinite(out->o[i]);
    if (in->q.nonfinite + in->k.nonfinite + in->v.nonfinite + bad > 0)
        fprintf(stderr,
                "flashlab attention: NaN or infinite elements: Q %" PRId64 ", K %" PRId64
                ", V %" PRId64 ", O %" PRId64 "\n",
                in->q.nonfinite, in->k.nonfinite, in->v.nonfinite, bad);
}

static int run(struct options *o, struct inputs *in, struct outputs *out)
{
    struct error error = {0};
    if (simulation_check(&o->simulation, &error))
        return usage_error(&usage, &error);
    if (prepare_directory(out, o->out, &error) || work(o, in, out, &error)) {
        clean_up(out, o->out);
        return usage_error(&usage, &error);
    }
    report_nonfinite(in, out, &o->simulation.attention);
    const bool equal = report(&o->simulation, NULL, o->json);
    if (!o->json)
        printf("wrote %s and %s\n", out->o_path, out->lse_path);
    return exit_status(&usage, equal ? EXIT_OK : EXIT_CLAIM_FAILED);
}

int flashlab_attention(int argc, char **argv)
{
    struct options o;
    struct error error = {0};
    struct inputs in;
    struct outputs out = {0};
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (check_given(&o, &error) || inputs_read(&in, &o, &error))
        return usage_error(&usage, &error);
    const int code = run(&o, &in, &out);
    free(out.o);
    free(out.lse);
    inputs_free(&in);
    return code;
}
