/* The claim that algorithms compute attention: on one head of a real transformer, against the
 * formula in float64. */
#ifndef FLASHLAB_LESSONS_SAME_RESULT_H
#define FLASHLAB_LESSONS_SAME_RESULT_H

#include "common/lesson.h"

/* One claim an algorithm, for all four, with the lesson's dtype, blocks and machine. Input:
 * lessons/data. An error may be twice that of standard attention in the same dtype, and one
 * rounding of the largest output. */
enum status lesson_same_result(struct lesson *l, struct error *error);

#endif
