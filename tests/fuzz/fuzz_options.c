/* Fuzzer of the command line: any arguments are either refused with a message, or give options
 * that every program can rely on. The input is split at NUL bytes into arguments. Seeds are in
 * tests/fuzz/corpus/options; `make fuzz` builds and runs it.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MAX_BYTES = 4096, MAX_ARGUMENTS = 64 };

/* libFuzzer reports on stderr too, so the parser's messages are silenced only while it runs. */
struct silence {
    int out, err;
};

static struct silence silence_begin(void)
{
    static FILE *null; /* opened once: thousands of inputs a second */
    if (!null)
        null = fopen("/dev/null", "w");
    CHECK(null, "no /dev/null");
    struct silence saved = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    fflush(stdout);
    dup2(fileno(null), STDOUT_FILENO);
    dup2(fileno(null), STDERR_FILENO);
    return saved;
}

static void silence_end(struct silence saved)
{
    fflush(stdout);
    dup2(saved.out, STDOUT_FILENO);
    dup2(saved.err, STDERR_FILENO);
    close(saved.out);
    close(saved.err);
}

/* Splits text[size], whose last byte is NUL, after the program's name; returns argc. */
static int split(char *argv[MAX_ARGUMENTS + 2], char *text, size_t size)
{
    static char program[] = "fuzz";
    int argc = 0;
    argv[argc++] = program;
    for (size_t at = 0; at < size && argc <= MAX_ARGUMENTS; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    argv[argc] = NULL;
    return argc;
}

static void check_accepted(const struct options *o)
{
    const struct attention *a = &o->simulation.attention;
    const int extents[] = {a->batch,    a->heads_q,    a->heads_kv, a->seqlen_q, a->seqlen_k,
                           a->head_dim, a->head_dim_v, a->block_q,  a->block_k};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
        CHECK(extents[i] >= 1 && extents[i] <= 1 << 30, "extent %zu is %d", i, extents[i]);
    CHECK(o->simulation.machine, "no machine");
    CHECK(isfinite(a->scale), "scale %g", (double)a->scale);
    CHECK((unsigned)a->mask < MASK_COUNT, "mask %d", (int)a->mask);
    CHECK((unsigned)a->dtype < DTYPE_COUNT, "dtype %d", (int)a->dtype);
    CHECK((unsigned)o->simulation.algorithm < ALGORITHM_COUNT, "algorithm %d",
          (int)o->simulation.algorithm);
    const struct {
        enum option_id id;
        const char *value;
    } names[] = {{OPTION_Q, o->q},      {OPTION_K, o->k},         {OPTION_V, o->v},
                 {OPTION_OUT, o->out},  {OPTION_TRACE, o->trace}, {OPTION_CSV, o->csv},
                 {OPTION_PLOT, o->plot}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const bool given = o->given & OPTION_BIT(names[i].id);
        CHECK(given == (names[i].value != NULL), "name %zu is given: %d", i, given);
        CHECK(!given || *names[i].value, "name %zu is empty", i);
    }
    const struct {
        enum option_id id;
        int value;
    } sides[] = {{OPTION_ROWS, o->rows},
                 {OPTION_COLS, o->cols},
                 {OPTION_DEPTH, o->depth},
                 {OPTION_TILE, o->tile}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        CHECK((sides[i].value >= 1) == ((o->given & OPTION_BIT(sides[i].id)) != 0),
              "side %zu is %d", i, sides[i].value);
    CHECK(!(o->gpu && o->cpu), "both --gpu and --cpu");
    struct error error = {0};
    const enum status status = simulation_check(&o->simulation, &error);
    CHECK(status == error.status, "status %d, %d in the error", (int)status, (int)error.status);
    CHECK(status == STATUS_OK || status == STATUS_BAD_ARGUMENT, "status %d", (int)status);
    CHECK((status == STATUS_OK) == (*error.text == '\0'), "status %d: \"%s\"", (int)status,
          error.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct usage all = {.program = "fuzz",
                                     .summary = "all options",
                                     .options = (OPTION_BIT(OPTION_COUNT) - 1),
                                     .operand = "NAME"};
    static const struct usage lesson = {
        .program = "fuzz", .summary = "a lesson", .options = LESSON_OPTIONS};
    char text[MAX_BYTES + 1];
    char *argv[MAX_ARGUMENTS + 2];
    if (size == 0 || size > MAX_BYTES)
        return 0;
    const struct usage *usage = bytes[0] & 1 ? &all : &lesson; /* the first byte chooses */
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    const int argc = split(argv, text, size);
    struct options o;
    options_init(&o);
    const struct silence saved = silence_begin();
    const enum options_result result = options_parse(&o, usage, argc, argv);
    silence_end(saved);
    CHECK(result == OPTIONS_RUN || result == OPTIONS_DONE || result == OPTIONS_BAD, "result %d",
          (int)result);
    if (result == OPTIONS_RUN)
        check_accepted(&o);
    return 0;
}
