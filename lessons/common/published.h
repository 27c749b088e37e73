/* Claims against numbers from outside: what a paper prints, what hardware counted. */
#ifndef FLASHLAB_LESSONS_PUBLISHED_H
#define FLASHLAB_LESSONS_PUBLISHED_H

#include "common/lesson.h"
#include "common/recording.h"

/* Figure 2 (middle) of the FlashAttention paper, to the digits that it prints, with tiles that
 * fit on the A100 that it was measured on. One claim a block size. */
enum status lesson_claim_figure2(struct lesson *l, struct error *error);

/* Predicted, simulated and measured requests to memory of every recorded forward kernel
 * (lessons/recordings). One claim a kernel. */
enum status lesson_claim_h200(struct lesson *l, struct error *error);

/* The problem of a recorded kernel, with the tiles that it uses. */
struct attention recorded_problem(const struct recorded_kernel *k);

#endif
