/* Closed form of what forward attention moves on an Ascend 910B (kernels/ascend_forward.h),
 * derived from its loops on paper: equal to the simulator's counts in every byte and FLOP.
 *
 * In elements, for one head without a mask, N queries and keys, Tr = ceil(N / Br),
 * Tc = ceil(N / Bc):
 *
 *   GM -> L1     Q: N d    K: Tr N d    V: Tr N dv    P: N^2
 *   GM -> UB     S: N^2    Oij: Tc N dv
 *   L1 -> L0A    Q: Tc N d    P: N^2
 *   L1 -> L0B    K: Tr N d    V: Tr N dv
 *   L0C -> GM    S: N^2    Oij: Tc N dv
 *   UB -> GM     P: N^2    O: N dv    LSE: N
 *
 * With direct ways S and Oij go L0C -> UB, P goes UB -> L1, and none of the three to GM.
 */
#ifndef FLASHLAB_MODELS_IO_ASCEND_H
#define FLASHLAB_MODELS_IO_ASCEND_H

#include <stdbool.h>

#include "core/attention.h"
#include "core/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the account, bytes and FLOPs; sectors, which are a GPU's, are 0. */
struct io_ascend {
    struct account account;
    int64_t path_bytes[PATH_COUNT];
};

/* a has passed attention_check(). scores: the dtype of S in GM. */
struct io_ascend io_ascend_predict(const struct attention *a, enum dtype scores, bool direct);

/* The same of a launch that has run. */
struct io_ascend io_ascend_of_launch(const struct launch_record *launch);

bool io_ascend_equal(const struct io_ascend *a, const struct io_ascend *b);

#ifdef __cplusplus
}
#endif

#endif
