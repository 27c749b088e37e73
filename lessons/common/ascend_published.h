/* The Ascend's counts beside what was measured: a GPU's counters, and times of a 910B2 that
 * others published.
 *
 * Times: README.md of kernels/manual/common/flash_atten in Huawei's cann/pto-isa, table "910B2
 * Multi-Core Comparison": one head, d = 128, f16, no mask, Q tiles of 128 rows; a kernel of the
 * same order as ours.
 * Rates: 16^3 multiplications and additions a clock and 1.8 GHz from Ascend910B2.ini of CANN,
 * 110 bytes a clock that an AI core reads from L2 and 86 that it writes from Ascend910B1.ini,
 * as users quote them. What is not published: how the cube core and its two vector cores share
 * them, the rate of exp, and the times that the cores wait for each other.
 */
#ifndef FLASHLAB_LESSONS_ASCEND_PUBLISHED_H
#define FLASHLAB_LESSONS_ASCEND_PUBLISHED_H

#include "common/ascend_counting.h"
#include "common/lesson.h"

/* The table of floors and times, and the claim that no time is below the floors that hold
 * whatever is not published. */
enum status ascend_claim_times(struct lesson *l, struct error *error);

/* Loads that an H200 counted of PyTorch's FlashAttention-2 (lessons/recordings), one claim a
 * kernel, and beside it what a 910B would move for the same problem. */
enum status ascend_claim_recorded(struct lesson *l, struct error *error);

/* What the profiler of a 910B, `msprof op`, should say of the run. Source of the fields:
 * "Memory (Memory Read/Write Bandwidth Rate)" in the documentation of CANN 8.5. */
void ascend_say_what_to_measure(struct lesson *l, const struct ascend_counted *c);

#endif
