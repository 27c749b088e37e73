/* Command-line options of the lessons and of the flashlab tool: one table for all of them.
 *
 * Interface:
 *   struct options o;
 *   options_init(&o);                       defaults; a program changes those it wants to
 *   switch (options_parse(&o, &usage, argc, argv)) ...
 *   OPTIONS_RUN: go on. OPTIONS_DONE: --help was printed, exit 0. OPTIONS_BAD: a message that
 *   names the option, its value and what is allowed was printed to stderr, exit 2.
 *
 * Where an option was not given, seqlen_k follows seqlen_q, heads_kv follows heads_q,
 * head_dim_v follows head_dim, and the scale is 1 / sqrt(head_dim).
 */
#ifndef FLASHLAB_LESSONS_OPTIONS_H
#define FLASHLAB_LESSONS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine.h"
#include "kernels/attention_forward.h"

/* Exit statuses of every program here. */
enum { EXIT_OK = 0, EXIT_CLAIM_FAILED = 1, EXIT_USAGE = 2 };

enum option_id {
    OPTION_ALGORITHM,
    OPTION_Q,
    OPTION_K,
    OPTION_V,
    OPTION_BATCH,
    OPTION_HEADS_Q,
    OPTION_HEADS_KV,
    OPTION_SEQLEN,
    OPTION_SEQLEN_Q,
    OPTION_SEQLEN_K,
    OPTION_HEAD_DIM,
    OPTION_HEAD_DIM_V,
    OPTION_BLOCK_Q,
    OPTION_BLOCK_K,
    OPTION_DTYPE,
    OPTION_MASK,
    OPTION_SCALE,
    OPTION_TILED_GEMM,
    OPTION_TMA,
    OPTION_DRAM,
    OPTION_MACHINE,
    OPTION_ROWS,
    OPTION_COLS,
    OPTION_DEPTH,
    OPTION_TILE,
    OPTION_THREADS,
    OPTION_REGISTERS,
    OPTION_SHARED,
    OPTION_GPU,
    OPTION_CPU,
    OPTION_IMAGE,
    OPTION_PATCH,
    OPTION_RECORDING,
    OPTION_NCU,
    OPTION_SEED,
    OPTION_STEPS,
    OPTION_LINES,
    OPTION_OUT,
    OPTION_TRACE,
    OPTION_JSON,
    OPTION_CSV,
    OPTION_PLOT,
    OPTION_HELP,
    OPTION_COUNT,
};

#define OPTION_BIT(id) (UINT64_C(1) << (id))

/* The options that say which run of which algorithm. */
#define RUN_OPTIONS                                                                            \
    (OPTION_BIT(OPTION_ALGORITHM) | OPTION_BIT(OPTION_BATCH) | OPTION_BIT(OPTION_HEADS_Q) |    \
     OPTION_BIT(OPTION_HEADS_KV) | OPTION_BIT(OPTION_SEQLEN) | OPTION_BIT(OPTION_SEQLEN_Q) |   \
     OPTION_BIT(OPTION_SEQLEN_K) | OPTION_BIT(OPTION_HEAD_DIM) |                               \
     OPTION_BIT(OPTION_HEAD_DIM_V) | OPTION_BIT(OPTION_BLOCK_Q) | OPTION_BIT(OPTION_BLOCK_K) | \
     OPTION_BIT(OPTION_MASK) | OPTION_BIT(OPTION_SCALE))

/* The options that every lesson has. */
#define LESSON_OPTIONS                                                                         \
    (OPTION_BIT(OPTION_SEQLEN) | OPTION_BIT(OPTION_HEAD_DIM) | OPTION_BIT(OPTION_BLOCK_Q) |    \
     OPTION_BIT(OPTION_BLOCK_K) | OPTION_BIT(OPTION_DTYPE) | OPTION_BIT(OPTION_MACHINE) |      \
     OPTION_BIT(OPTION_GPU) | OPTION_BIT(OPTION_CPU) | OPTION_BIT(OPTION_JSON) |               \
     OPTION_BIT(OPTION_CSV) | OPTION_BIT(OPTION_PLOT))

/* Those of the lessons about vectors and matrices of f32, which have no heads and no Q tiles.
 * The others of LESSON_OPTIONS are refused there, with the reason. */
#define BASIC_REFUSED_OPTIONS                                                                  \
    (OPTION_BIT(OPTION_HEAD_DIM) | OPTION_BIT(OPTION_BLOCK_Q) | OPTION_BIT(OPTION_BLOCK_K) |   \
     OPTION_BIT(OPTION_DTYPE))
#define BASIC_LESSON_OPTIONS (LESSON_OPTIONS & ~BASIC_REFUSED_OPTIONS)

/* What a program is called, what it does in one line, and which options it has (--help always).
 */
struct usage {
    const char *program;
    const char *summary;
    uint64_t options;
    const char *operand; /* what the one argument is that is no option; NULL: there is none */
    uint64_t refused;    /* other programs' options that one may try here ... */
    const char *why;     /* ... and why not */
};

/* The options' values. Strings point into argv. Not to be copied: simulation.machine may point
 * to own_machine. */
struct options {
    struct simulation simulation;
    struct machine own_machine;           /* the one of --machine FILE */
    const char *q, *k, *v;                /* .npy files */
    const char *image;                    /* .png or .ppm file */
    const char *patch;                    /* of the image: "row,column", or a number */
    const char *out;                      /* directory */
    const char *trace;                    /* JSON Lines file */
    const char *csv;                      /* file */
    const char *plot;                     /* .png or .svg file */
    const char *recording;                /* .json file */
    const char *ncu;                      /* .csv file */
    const char *operand;                  /* NULL: not given */
    int rows, cols, depth, tile;          /* of matrices; 0: not given */
    int threads, registers, shared_bytes; /* of a block; 0: not given */
    uint64_t seed;
    bool gpu;
    bool cpu;
    bool dram;
    bool steps;
    bool lines;
    bool json;
    uint64_t given; /* OPTION_BIT of every option that was on the command line */
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_BAD };

/* Defaults: flash2, one head, N 4096, d 64, blocks 64 x 64, f32, no mask, default machine,
 * seed 1. */
void options_init(struct options *o);

enum options_result options_parse(struct options *o, const struct usage *usage, int argc,
                                  char **argv);

/* The option's name on the command line, without the dashes. */
const char *option_name(enum option_id id);

/* The exit status after OPTIONS_DONE or OPTIONS_BAD. */
int options_exit_status(enum options_result result);

/* The exit status of a program that has printed all it had to: code, or that of an error if
 * stdout could not be written (a full disk, a closed pipe). */
int exit_status(const struct usage *usage, int code);

/* Prints "program: message" to stderr and gives the exit status of a usage or input error. */
int usage_error(const struct usage *usage, const struct error *error);

#endif
