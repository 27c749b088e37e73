/* A tile of 32 x 32 floats in shared memory, read by columns: how often a warp passes over the
 * banks, by the model, on an H200 and as the CUDA source does it on the CPU. For lesson 02.
 */
#ifndef FLASHLAB_LESSONS_TRANSPOSE_BANKS_H
#define FLASHLAB_LESSONS_TRANSPOSE_BANKS_H

#include <stdbool.h>

#include "core/status.h"
#include "cuda/lessons/transpose.h"

/* Wavefronts of 32 requests, each a column, the other numbers scaled to as many. */
struct transpose_banks {
    int predicted, measured, on_cpu;
    int probes;      /* columns of that layout that the H200's probes have */
    bool transposed; /* the CPU's result is */
};

/* Reads cuda/results/h200_probes.csv: STATUS_BAD_FILE if it cannot. */
enum status transpose_banks_count(struct transpose_banks *banks, enum transpose_layout layout,
                                  struct error *error);

#endif
