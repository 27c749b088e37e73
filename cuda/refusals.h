/* Messages for what the test machines do not refuse: functions of the fact alone, without a
 * CUDA header, so that tests see them wherever they run.
 */
#ifndef FLASHLAB_CUDA_REFUSALS_H
#define FLASHLAB_CUDA_REFUSALS_H

#include "cuda/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fails if a GPU of compute capability major.minor is older than any that the kernels can be
 * compiled for. */
enum status refuse_old_gpu(const char *name, int major, int minor, struct error *error);

/* Why hardware counters could not be read, as far as the user can do something about it. */
enum counters_failure { COUNTERS_FAILED, COUNTERS_PRIVILEGED, COUNTERS_TAKEN };

/* What that is: lines to follow the message; "" for COUNTERS_FAILED. */
const char *counters_advice(enum counters_failure failure);

#ifdef __cplusplus
}
#endif

#endif
