/* The claim that the simulated Ascend computes attention: on one head of a real transformer,
 * against the formula in float64. */
#ifndef FLASHLAB_LESSONS_ASCEND_RESULT_H
#define FLASHLAB_LESSONS_ASCEND_RESULT_H

#include "common/lesson.h"

/* One claim a design: S through GM in F32, in the lesson's dtype, and directly. Input:
 * lessons/data. An error may be twice that of standard attention in the same dtype, and one
 * rounding of the largest output. */
enum status ascend_claim_result(struct lesson *l, struct error *error);

#endif
