/* What the kernels other than attention should give: in float64, and as a plain loop in float32
 * gives it. */
#ifndef FLASHLAB_CUDA_TESTS_REFERENCE_BASIC_H
#define FLASHLAB_CUDA_TESTS_REFERENCE_BASIC_H

#include "run.h"

/* One element each of the run's output: owned. */
struct basic_reference {
    double *truth;
    float *plain;
};

/* From the inputs in the run's host arrays. */
void reference_basic(struct basic_reference *reference, const struct run *run);
void basic_reference_free(struct basic_reference *reference);

#endif
