#include "common/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/own_machine.h"
#include "models/occupancy.h"

static const struct {
    const char *name;
    const char *value; /* NULL: a switch */
    const char *help;
} table[OPTION_COUNT] = {
    [OPTION_ALGORITHM] = {"algorithm", "NAME", "naive, standard, flash1 or flash2"},
    [OPTION_Q] = {"q", "F.npy", "queries: (batch, heads, seqlen, head_dim) or fewer axes"},
    [OPTION_K] = {"k", "F.npy", "keys"},
    [OPTION_V] = {"v", "F.npy", "values"},
    [OPTION_BATCH] = {"batch", "N", "sequences"},
    [OPTION_HEADS_Q] = {"heads-q", "N", "query heads"},
    [OPTION_HEADS_KV] = {"heads-kv", "N", "key/value heads, a divisor of the query heads"},
    [OPTION_SEQLEN] = {"seqlen", "N", "queries and keys of a sequence"},
    [OPTION_SEQLEN_Q] = {"seqlen-q", "N", "queries of a sequence"},
    [OPTION_SEQLEN_K] = {"seqlen-k", "N", "keys of a sequence"},
    [OPTION_HEAD_DIM] = {"head-dim", "N", "d: elements of a query, key (and value) row"},
    [OPTION_HEAD_DIM_V] = {"head-dim-v", "N", "elements of a value row, if not d"},
    [OPTION_BLOCK_Q] = {"block-q", "N", "Br: rows of a Q tile"},
    [OPTION_BLOCK_K] = {"block-k", "N", "Bc: rows of a K or V tile"},
    [OPTION_DTYPE] = {"dtype", "NAME", "f32, f16, bf16, e4m3 or e5m2"},
    [OPTION_MASK] = {"mask", "NAME", "none, causal (bottom-right) or causal-top-left"},
    [OPTION_SCALE] = {"scale", "X", "factor of Q K^T; default 1/sqrt(d)"},
    [OPTION_TILED_GEMM] = {"tiled-gemm", NULL, "standard: real tiles, not each operand once"},
    [OPTION_TMA] = {"tma", NULL, "tiles move by the copy engine, in whole boxes"},
    [OPTION_DRAM] = {"dram", NULL, "what reaches DRAM, by a model of L2"},
    [OPTION_MACHINE] = {"machine", "NAME",
                        "the GPU: one that `flashlab machines` lists, or a file"},
    [OPTION_ROWS] = {"rows", "N", "rows of the result (matmul, softmax)"},
    [OPTION_COLS] = {"cols", "N", "its columns; elements of a vector"},
    [OPTION_DEPTH] = {"depth", "N", "columns of A, rows of B (matmul)"},
    [OPTION_TILE] = {"tile", "N", "rows and columns of a tile of a matmul: 16, 32 or 64"},
    [OPTION_THREADS] = {"threads", "N", "threads of a block"},
    [OPTION_REGISTERS] = {"registers", "N", "registers of a thread"},
    [OPTION_SHARED] = {"shared", "N", "bytes of shared memory of a block"},
    [OPTION_GPU] = {"gpu", NULL, "run the CUDA kernels on this machine's GPU"},
    [OPTION_CPU] = {"cpu", NULL, "run the CUDA kernels' source on this CPU, observed"},
    [OPTION_IMAGE] = {"image", "FILE", "a picture: PNG, or PPM (P6, P3)"},
    [OPTION_PATCH] = {"patch", "R,C", "the patch that looks: row,column or a number, from 0"},
    [OPTION_RECORDING] = {"recording", "FILE",
                          "a GPU's run: compare reads it, record writes it"},
    [OPTION_NCU] = {"ncu", "FILE", "counters from `ncu --csv` instead of the run itself"},
    [OPTION_SEED] = {"seed", "N", "of the random inputs"},
    [OPTION_STEPS] = {"steps", NULL, "step by step: m, l, the norm of O and bytes moved"},
    [OPTION_LINES] = {"lines", NULL, "the kernel's source, with what each line moves"},
    [OPTION_OUT] = {"out", "DIR", "write o.npy and lse.npy there"},
    [OPTION_TRACE] = {"trace", "FILE", "write a record of every step, as JSON Lines"},
    [OPTION_JSON] = {"json", NULL, "print JSON instead of text"},
    [OPTION_CSV] = {"csv", "FILE", "write the figures' data"},
    [OPTION_PLOT] = {"plot", "FILE", "draw the figures: FILE ends in .png or .svg"},
    [OPTION_HELP] = {"help", NULL, "print this"},
};

void options_init(struct options *o)
{
    *o = (struct options){0};
    o->simulation.algorithm = ALGORITHM_FLASH2;
    o->simulation.machine = machine_default();
    o->seed = 1;
    o->simulation.attention = (struct attention){.batch = 1,
                                                 .heads_q = 1,
                                                 .heads_kv = 1,
                                                 .seqlen_q = 4096,
                                                 .seqlen_k = 4096,
                                                 .head_dim = 64,
                                                 .head_dim_v = 64,
                                                 .dtype = DTYPE_F32,
                                                 .block_q = 64,
                                                 .block_k = 64};
}

const char *option_name(enum option_id id)
{
    return table[id].name;
}

static bool has(uint64_t set, enum option_id id)
{
    return set & OPTION_BIT(id);
}

static void print_help(const struct usage *usage)
{
    printf("usage: %s%s%s [options]\n%s\n\noptions:\n", usage->program,
           usage->operand ? " " : "", usage->operand ? usage->operand : "", usage->summary);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (!has(usage->options, id) && id != OPTION_HELP)
            continue;
        char left[40];
        snprintf(left, sizeof left, "--%s %s", table[id].name,
                 table[id].value ? table[id].value : "");
        printf("  %-20s %s\n", left, table[id].help);
    }
    printf("\nexit status: 0 success, 1 a claim failed, 2 usage or input error\n");
}

static enum status bad_value(struct error *error, enum option_id id, const char *value,
                             const char *allowed)
{
    return error_set(error, STATUS_BAD_ARGUMENT, "--%s %.100s: must be %s", table[id].name,
                     value, allowed);
}

/* A whole number from 1 (of shared memory: 0) to the most that attention_check() or a block of
 * any GPU allows. */
static enum status parse_extent(int *extent, enum option_id id, const char *value,
                                struct error *error)
{
    const bool of_tile = id == OPTION_HEAD_DIM || id == OPTION_HEAD_DIM_V ||
                         id == OPTION_BLOCK_Q || id == OPTION_BLOCK_K;
    const int least = id == OPTION_SHARED ? 0 : 1;
    const int most = of_tile                  ? ATTENTION_MOST_IN_TILE
                     : id == OPTION_THREADS   ? MOST_THREADS_PER_BLOCK
                     : id == OPTION_REGISTERS ? MOST_REGISTERS_PER_THREAD
                                              : ATTENTION_MOST;
    char *end, allowed[64];
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    snprintf(allowed, sizeof allowed, "a whole number from %d to %d", least, most);
    if (end == value || *end != '\0' || errno != 0 || number < least || number > most)
        return bad_value(error, id, value, allowed);
    *extent = (int)number;
    return STATUS_OK;
}

static enum status parse_scale(float *scale, const char *value, struct error *error)
{
    char *end;
    const double number = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite((float)number))
        return bad_value(error, OPTION_SCALE, value, "a finite number");
    *scale = (float)number;
    return STATUS_OK;
}

static enum status parse_seed(uint64_t *seed, const char *value, struct error *error)
{
    enum { DIGITS = 13 }; /* below 2^46: see random_inputs.h */
    const size_t length = strlen(value);
    if (length < 1 || length > DIGITS || strspn(value, "0123456789") != length)
        return bad_value(error, OPTION_SEED, value, "a whole number of 1 to 13 digits");
    *seed = strtoull(value, NULL, 10);
    return STATUS_OK;
}

static bool parse_plot_name(const char **plot, const char *value)
{
    const char *dot = strrchr(value, '.');
    *plot = value;
    return dot && dot != value && (strcmp(dot, ".png") == 0 || strcmp(dot, ".svg") == 0);
}

/* Where an option that is an extent goes; NULL if id is none. */
static int *extent_of(struct options *o, enum option_id id)
{
    struct attention *a = &o->simulation.attention;
    switch (id) {
    case OPTION_BATCH:
        return &a->batch;
    case OPTION_HEADS_Q:
        return &a->heads_q;
    case OPTION_HEADS_KV:
        return &a->heads_kv;
    case OPTION_SEQLEN:
    case OPTION_SEQLEN_Q:
        return &a->seqlen_q;
    case OPTION_SEQLEN_K:
        return &a->seqlen_k;
    case OPTION_HEAD_DIM:
        return &a->head_dim;
    case OPTION_HEAD_DIM_V:
        return &a->head_dim_v;
    case OPTION_BLOCK_Q:
        return &a->block_q;
    case OPTION_BLOCK_K:
        return &a->block_k;
    case OPTION_ROWS:
        return &o->rows;
    case OPTION_COLS:
        return &o->cols;
    case OPTION_DEPTH:
        return &o->depth;
    case OPTION_TILE:
        return &o->tile;
    case OPTION_THREADS:
        return &o->threads;
    case OPTION_REGISTERS:
        return &o->registers;
    case OPTION_SHARED:
        return &o->shared_bytes;
    default:
        return NULL;
    }
}

/* Where an option that is a file or directory name goes; NULL if id is none. */
static const char **name_of(struct options *o, enum option_id id)
{
    switch (id) {
    case OPTION_Q:
        return &o->q;
    case OPTION_K:
        return &o->k;
    case OPTION_V:
        return &o->v;
    case OPTION_IMAGE:
        return &o->image;
    case OPTION_PATCH:
        return &o->patch;
    case OPTION_OUT:
        return &o->out;
    case OPTION_TRACE:
        return &o->trace;
    case OPTION_CSV:
        return &o->csv;
    case OPTION_RECORDING:
        return &o->recording;
    case OPTION_NCU:
        return &o->ncu;
    default:
        return NULL;
    }
}

/* Where an option without a value goes; NULL if id has one. */
static bool *switch_of(struct options *o, enum option_id id)
{
    switch (id) {
    case OPTION_TILED_GEMM:
        return &o->simulation.attention.tiled_gemm;
    case OPTION_TMA:
        return &o->simulation.tma;
    case OPTION_DRAM:
        return &o->dram;
    case OPTION_GPU:
        return &o->gpu;
    case OPTION_CPU:
        return &o->cpu;
    case OPTION_STEPS:
        return &o->steps;
    case OPTION_LINES:
        return &o->lines;
    case OPTION_JSON:
        return &o->json;
    default:
        return NULL;
    }
}

static enum status set_option(struct options *o, enum option_id id, const char *value,
                              struct error *error)
{
    struct simulation *s = &o->simulation;
    int *extent = extent_of(o, id);
    const char **name = name_of(o, id);
    bool *given = switch_of(o, id);
    o->given |= OPTION_BIT(id);
    if (extent)
        return parse_extent(extent, id, value, error);
    if (given) {
        *given = true;
        return STATUS_OK;
    }
    if (name) {
        *name = value;
        return *value ? STATUS_OK : bad_value(error, id, "''", "a name");
    }
    switch (id) {
    case OPTION_ALGORITHM:
        return algorithm_parse(&s->algorithm, value)
                   ? STATUS_OK
                   : bad_value(error, id, value, table[id].help);
    case OPTION_DTYPE:
        return dtype_parse(&s->attention.dtype, value)
                   ? STATUS_OK
                   : bad_value(error, id, value, table[id].help);
    case OPTION_MASK:
        return mask_parse(&s->attention.mask, value)
                   ? STATUS_OK
                   : bad_value(error, id, value, table[id].help);
    case OPTION_SEED:
        return parse_seed(&o->seed, value, error);
    case OPTION_SCALE:
        return parse_scale(&s->attention.scale, value, error);
    case OPTION_MACHINE:
        if (machine_open(&s->machine, &o->own_machine, value, error)) {
            error_prefix(error, "--machine ");
            return error->status;
        }
        return STATUS_OK;
    case OPTION_PLOT:
        return parse_plot_name(&o->plot, value)
                   ? STATUS_OK
                   : bad_value(error, id, value, "a name that ends in .png or .svg");
    default:
        CHECK(false, "option %d has no place", (int)id);
    }
}

/* Fills in what follows from other options. */
static void derive(struct options *o)
{
    struct attention *a = &o->simulation.attention;
    if (!has(o->given, OPTION_SEQLEN_K) &&
        (has(o->given, OPTION_SEQLEN) || has(o->given, OPTION_SEQLEN_Q)))
        a->seqlen_k = a->seqlen_q;
    if (!has(o->given, OPTION_HEADS_KV) && has(o->given, OPTION_HEADS_Q))
        a->heads_kv = a->heads_q;
    if (!has(o->given, OPTION_HEAD_DIM_V) && has(o->given, OPTION_HEAD_DIM))
        a->head_dim_v = a->head_dim;
    if (!has(o->given, OPTION_SCALE))
        a->scale = 1.0f / sqrtf((float)a->head_dim);
}

/* The rows of the table that the program has, for getopt_long. */
static void make_long_options(struct option *out, uint64_t options)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if (has(options, id) || id == OPTION_HELP)
            *out++ = (struct option){table[id].name,
                                     table[id].value ? required_argument : no_argument, NULL,
                                     id + 1};
    *out = (struct option){0};
}

int usage_error(const struct usage *usage, const struct error *error)
{
    fprintf(stderr, "%s: %s\n", usage->program, error->text);
    return EXIT_USAGE;
}

int options_exit_status(enum options_result result)
{
    return result == OPTIONS_DONE ? EXIT_OK : EXIT_USAGE;
}

int exit_status(const struct usage *usage, int code)
{
    struct error error = {0};
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    error_format(&error, STATUS_BAD_FILE, "stdout: cannot be written: %s", strerror(errno));
    return usage_error(usage, &error);
}

static enum options_result refuse(const struct usage *usage, struct error *error)
{
    usage_error(usage, error);
    fprintf(stderr, "try '%s --help'\n", usage->program);
    return OPTIONS_BAD;
}

enum options_result options_parse(struct options *o, const struct usage *usage, int argc,
                                  char **argv)
{
    struct option long_options[OPTION_COUNT + 1];
    struct error error = {0};
    make_long_options(long_options, usage->options | usage->refused);
    opterr = 0; /* the messages are ours */
    optind = 0; /* start anew, whoever parsed before */
    for (;;) {
        const int code = getopt_long(argc, argv, ":", long_options, NULL);
        if (code == -1)
            break;
        if (code == '?' || code == ':') {
            /* optopt is a long option's code if getopt_long knows its name */
            error_format(&error, STATUS_BAD_ARGUMENT, "%.100s: %s", argv[optind - 1],
                         code == ':'                            ? "needs a value"
                         : optopt > 0 && optopt <= OPTION_COUNT ? "takes no value"
                                                                : "unknown option");
            return refuse(usage, &error);
        }
        if (code == OPTION_HELP + 1) {
            print_help(usage);
            return OPTIONS_DONE;
        }
        const enum option_id id = (enum option_id)(code - 1);
        if (has(usage->refused, id)
                ? error_set(&error, STATUS_BAD_ARGUMENT, "--%s: %s", table[id].name, usage->why)
                : set_option(o, id, optarg, &error))
            return refuse(usage, &error);
    }
    if (usage->operand && optind < argc)
        o->operand = argv[optind++];
    if (optind < argc) {
        error_format(&error, STATUS_BAD_ARGUMENT, "%.100s: unexpected argument", argv[optind]);
        return refuse(usage, &error);
    }
    if (o->gpu && o->cpu) {
        error_format(&error, STATUS_BAD_ARGUMENT, "--gpu and --cpu: choose one");
        return refuse(usage, &error);
    }
    derive(o);
    return OPTIONS_RUN;
}
