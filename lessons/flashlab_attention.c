/* flashlab attention: the user's own Q, K, V through a simulated kernel. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/inputs.h"
#include "common/options.h"
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
    char o_path[4096], lse_path[4096];
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
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return error_set(error, STATUS_BAD_FILE, "--out %s: cannot be made: %s", directory,
                         strerror(errno));
    if (stat(directory, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(error, STATUS_BAD_FILE, "--out %s: is not a directory", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return error_set(error, STATUS_BAD_FILE, "--out %s: cannot be written: %s", directory,
                         strerror(errno));
    const int a = snprintf(out->o_path, sizeof out->o_path, "%s/o.npy", directory);
    const int b = snprintf(out->lse_path, sizeof out->lse_path, "%s/lse.npy", directory);
    if (a >= (int)sizeof out->o_path || b >= (int)sizeof out->lse_path)
        return error_set(error, STATUS_BAD_FILE, "--out: the name is too long");
    return STATUS_OK;
}

static enum status alloc_outputs(struct outputs *out, const struct attention *a,
                                 struct error *error)
{
    const size_t rows = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    out->o = malloc(rows * (size_t)a->head_dim_v * sizeof *out->o);
    out->lse = malloc(rows * sizeof *out->lse);
    if (out->o && out->lse)
        return STATUS_OK;
    return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the results");
}

/* Runs the simulation, its trace going to the file --trace if there is one. The file appears
 * under its name only when it is complete. */
static enum status simulate(struct options *o, const struct inputs *in, struct outputs *out,
                            struct error *error)
{
    char partial[4096];
    struct trace trace = {.record = trace_write_json};
    struct simulation *s = &o->simulation;
    if (o->trace) {
        snprintf(partial, sizeof partial, "%.4000s.partial", o->trace);
        trace.context = fopen(partial, "w");
        if (!trace.context)
            return error_set(error, STATUS_BAD_FILE, "--trace %s: cannot be written: %s",
                             o->trace, strerror(errno));
        s->trace = &trace;
    }
    progress_show(s);
    enum status status =
        attention_simulate(s, in->q.data, in->k.data, in->v.data, out->o, out->lse, error);
    progress_end();
    if (o->trace) {
        const int failed = ferror(trace.context) | fclose(trace.context);
        if (!status && (failed || rename(partial, o->trace) != 0))
            status = error_set(error, STATUS_BAD_FILE, "--trace %s: cannot be written: %s",
                               o->trace, strerror(errno));
        if (status)
            unlink(partial);
    }
    return status;
}

/* Writes both files, or none. The axes are those of Q. */
static enum status write_outputs(const struct outputs *out, const struct inputs *in,
                                 struct error *error)
{
    int64_t shape[NPY_MAX_DIMS];
    const int ndim = in->q.ndim;
    memcpy(shape, in->q.shape, sizeof shape);
    shape[ndim - 1] = in->v.shape[ndim - 1];
    if (npy_write(out->o_path, out->o, ndim, shape, error))
        return error->status;
    if (npy_write(out->lse_path, out->lse, ndim - 1, shape, error)) {
        unlink(out->o_path);
        return error->status;
    }
    return STATUS_OK;
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
    if (alloc_outputs(out, &o->simulation.attention, &error) || simulate(o, in, out, &error) ||
        write_outputs(out, in, &error))
        return usage_error(&usage, &error);
    report_nonfinite(in, out, &o->simulation.attention);
    const bool equal = report(&o->simulation, o->json);
    if (!o->json)
        printf("wrote %s and %s\n", out->o_path, out->lse_path);
    return equal ? EXIT_OK : EXIT_CLAIM_FAILED;
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
        return result == OPTIONS_DONE ? EXIT_OK : EXIT_USAGE;
    if (check_given(&o, &error) || inputs_read(&in, &o, &error))
        return usage_error(&usage, &error);
    int code;
    if (simulation_check(&o.simulation, &error) || prepare_directory(&out, o.out, &error))
        code = usage_error(&usage, &error);
    else
        code = run(&o, &in, &out);
    free(out.o);
    free(out.lse);
    inputs_free(&in);
    return code;
}
