/* Forward attention on a simulated GPU, from host arrays to host arrays.
 *
 * Interface:
 *   struct simulation s = {.algorithm = ALGORITHM_FLASH2, .attention = {...},
 *                          .machine = machine_default()};
 *   attention_simulate(&s, q, k, v, o, lse, &error);   with data
 *   attention_count(&s, &error);                       counts only
 *   s.gpu.launches, gpu_account(&s.gpu)                what was moved, afterwards
 */
#ifndef FLASHLAB_KERNELS_ATTENTION_FORWARD_H
#define FLASHLAB_KERNELS_ATTENTION_FORWARD_H

#include <stdbool.h>

#include "core/attention.h"
#include "core/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One run: what to simulate, and the GPU with its counts afterwards. */
struct simulation {
    enum algorithm algorithm;
    struct attention attention;
    const struct machine *machine;
    bool tma;                             /* move tiles by the copy engine, in whole boxes */
    struct trace *trace;                  /* NULL: none */
    const struct move_observer *observer; /* NULL: none; see core/moves.h */
    progress_function *progress;          /* NULL: none */
    void *progress_context;
    struct gpu gpu; /* set by the run */
};

/* Checks the options of a run against each other; the message names them as the command line
 * does. The runs below call it themselves. */
enum status simulation_check(const struct simulation *s, struct error *error);

/* Runs with data. q (batch, heads_q, seqlen_q, head_dim), k, v and o in the shapes of
 * core/attention.h, lse (batch, heads_q, seqlen_q): host floats, C order, owned by the caller.
 * Inputs are rounded to the dtype as they are uploaded. */
enum status attention_simulate(struct simulation *s, const float *q, const float *k,
                               const float *v, float *o, float *lse, struct error *error);

/* Runs in counts-only mode. */
enum status attention_count(struct simulation *s, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
