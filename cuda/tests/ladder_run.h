/* Runs of the ladder's steps on guarded device memory: for tests.
 *
 * Interface:
 *   struct ladder_run run = {.p = {.a = {...}}, .layout = LAYOUT_HEADS_FIRST};
 *   problem_fill(&run.p, &seed);               the test's own inputs: run.p.q, .k, .v
 *   ladder_run_open(&run, &error);             uploads them, O and LSE NaN
 *   run.step = LADDER_MMA;
 *   ladder_run_launch(&run, &error);           a device_work: may be timed and measured
 *   ladder_run_download(&run, &answer, &error);
 *   ladder_run_damage(&run, text, &error)      true if what is not an output has changed
 *   ladder_run_close(&run);                    also after a failure
 *   problem_free(&run.p);
 *
 * Every byte of device memory that holds no element is 0xff, before, between and after the
 * rows.
 */
#ifndef FLASHLAB_CUDA_TESTS_LADDER_RUN_H
#define FLASHLAB_CUDA_TESTS_LADDER_RUN_H

#include "common/problem.h"
#include "cuda/ladder/ladder.h"

enum layout {
    LAYOUT_HEADS_FIRST, /* (batch, heads, seqlen, head_dim) */
    LAYOUT_ROWS_FIRST,  /* (batch, seqlen, heads, head_dim) */
    LAYOUT_GAPS,        /* heads first, with unused elements after rows, heads and batches */
    LAYOUT_COUNT,
};

/* Bytes before and after each array: arrays stay aligned as they are. */
enum { GUARD_BYTES = 256 };

/* One array on the device and what it held last, as bytes with the guards. */
struct guarded {
    size_t bytes; /* without the guards */
    unsigned char *host, *device;
};

enum { RUN_Q, RUN_K, RUN_V, RUN_TAKEN, RUN_O, RUN_LSE, RUN_ARRAYS };

struct ladder_run {
    struct problem p; /* owned by the test */
    enum layout layout;
    enum ladder_step step;
    struct ladder_tensors t;
    struct guarded array[RUN_ARRAYS];
};

/* "03_cp_async, rows first, batch 1, ..." in a static buffer. */
const char *ladder_run_text(const struct ladder_run *run);

enum status ladder_run_open(struct ladder_run *run, struct error *error);
void ladder_run_close(struct ladder_run *run);

/* False if this GPU cannot run the step, which is then said once. */
bool ladder_run_is_possible(enum ladder_step step);

/* O and LSE <- NaN. */
enum status ladder_run_poison(struct ladder_run *run, struct error *error);
enum status ladder_run_launch(void *run, struct error *error);

/* O and LSE as floats; answer_free() frees them. Its account is empty. */
enum status ladder_run_download(struct ladder_run *run, struct answer *answer,
                                struct error *error);

/* After a download. text (128 bytes) says what has changed. */
bool ladder_run_damage(const struct ladder_run *run, char *text, struct error *error);

#endif
