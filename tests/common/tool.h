/* Running build/flashlab as a user does: arguments in, exit status, output and files out.
 *
 * Interface:
 *   cmocka_unit_test_setup_teardown(test, workplace_make, workplace_remove) gives the test an
 *   empty folder of its own (*state is its struct workplace) and removes it with all it holds.
 *   struct tool_run run;
 *   tool_run(&run, place, "traffic --seqlen %d --json", 128);
 *   run.status, run.out, run.err ...
 *   tool_run_free(&run);
 * The tool runs in the test's folder. Failures of the helpers themselves end the test.
 */
#ifndef FLASHLAB_TESTS_TOOL_H
#define FLASHLAB_TESTS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workplace {
    char folder[256];
};

int workplace_make(void **state);
int workplace_remove(void **state);

/* folder/name, in a static buffer that the next call overwrites. */
const char *workplace_path(const struct workplace *place, const char *name);

/* The names of all that is in the folder, at any depth, sorted, a line each; free() it. */
char *workplace_listing(const struct workplace *place);

struct tool_run {
    int status;      /* exit status, or 128 + the signal that ended it */
    char *out, *err; /* all of stdout and stderr, NUL-terminated; owned */
};

/* Runs FLASHLAB_TOOL with the arguments, which single spaces separate. */
void tool_run(struct tool_run *run, const struct workplace *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tool_run_free(struct tool_run *run);

/* The index-th of a fixed sequence of multiples of 1/8 from -2 to 2, exact in every float
 * type of .npy files. */
double sample(uint64_t index);

/* Writes an array of samples from index first on as a .npy file, version 1.0. descr is "<f2",
 * "<f4" or "<f8". Element (i, j, ...) is the same whatever the order of the file. */
struct array_file {
    const char *name, *descr;
    bool fortran;
    int ndim;
    int shape[4];
    uint64_t first;
};
void write_array(const struct workplace *place, const struct array_file *file);

#endif
