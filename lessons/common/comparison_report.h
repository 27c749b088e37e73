/* How a comparison of simulator and CUDA kernel is shown: for people and as JSON. */
#ifndef FLASHLAB_LESSONS_COMPARISON_REPORT_H
#define FLASHLAB_LESSONS_COMPARISON_REPORT_H

#include "common/comparison.h"

/* Where the kernel's side comes from. */
struct comparison_source {
    const char *recording; /* file; NULL: live */
    const char *date;      /* of the recording */
    uint64_t seed;
};

/* Prints all of it to stdout; with steps, also both sides of every step. */
void comparison_print(const struct comparison *c, const struct simulation *s,
                      const struct comparison_source *source, bool steps);

/* The same as one JSON object. */
void comparison_print_json(const struct comparison *c, const struct simulation *s,
                           const struct comparison_source *source, bool steps);

/* Prints the first step that differs beyond tolerance: block, (i, j), row, both values. */
void comparison_print_step_difference(const struct comparison *c);

#endif
