/* How the counts of an Ascend are shown: by level, and by tensor beside a GPU's. */
#ifndef FLASHLAB_LESSONS_ASCEND_REPORT_H
#define FLASHLAB_LESSONS_ASCEND_REPORT_H

#include "common/ascend_counting.h"
#include "common/lesson.h"

/* For each buffer of an AI core of a 910B: its size, what the tiles take of it, and the bytes
 * that all cores moved into it and out of it. What a cube or vector unit itself reads and
 * writes is not counted. */
void ascend_print_levels(struct lesson *l, const struct ascend_counted *c);

/* Bytes of each tensor between memory and the cores, on both machines. */
void ascend_print_tensors(struct lesson *l, struct ascend_beside_gpu *both);

#endif
