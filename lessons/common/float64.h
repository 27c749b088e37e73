/* Attention by the formula in double precision: what the lessons compare kernels with. */
#ifndef FLASHLAB_LESSONS_FLOAT64_H
#define FLASHLAB_LESSONS_FLOAT64_H

#include "core/attention.h"

/* o (batch, heads_q, seqlen_q, head_dim_v) <- attention of q, k, v in the shapes of
 * core/attention.h. Rows without keys become 0. */
void float64_attention(double *o, const struct attention *a, const float *q, const float *k,
                       const float *v);

/* Largest |o - reference| over all elements; NaN if any difference is NaN. */
double float64_largest_error(const struct attention *a, const float *o,
                             const double *reference);

#endif
