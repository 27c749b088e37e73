/* Forward attention on a simulated Ascend 910B, from host arrays to host arrays.
 *
 * Interface:
 *   struct ascend_run run = {.attention = {...}, .chip = &ascend_910b2,
 *                            .scores_dtype = DTYPE_F32};
 *   ascend_simulate(&run, q, k, v, o, lse, &error);    with data
 *   ascend_count(&run, &error);                        counts only
 *   run.gpu.launches[0]                                what was moved, afterwards: tensors in
 *                                                      .account, ways in .path_bytes
 *
 * The order is that of FlashAttention-2, the tiles are attention.block_q and block_k. Between
 * the cores stand three tensors in GM, for each AI core two tiles of each, so that one core may
 * fill a tile while the other empties the one before: S (scores_dtype), P (attention.dtype) and
 * Oij (Pij Vj, F32). The same few tiles serve all of the problem.
 */
#ifndef FLASHLAB_KERNELS_ASCEND_FORWARD_H
#define FLASHLAB_KERNELS_ASCEND_FORWARD_H

#include "core/ai_core.h"
#include "core/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tiles of S, of P and of Oij that an AI core has in GM. */
enum { ASCEND_SLOTS = 2 };

struct ascend_run {
    struct attention attention;
    const struct ascend *chip;
    enum dtype scores_dtype;              /* of S in GM: F32, or attention.dtype */
    const struct move_observer *observer; /* NULL: none. Not owned: see core/moves.h */
    struct gpu gpu;                       /* set by the run; its machine is Ascend-910B */
};

/* Runs with data. Arrays as attention_simulate() has them. */
enum status ascend_simulate(struct ascend_run *run, const float *q, const float *k,
                            const float *v, float *o, float *lse, struct error *error);

/* Runs in counts-only mode. */
enum status ascend_count(struct ascend_run *run, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
