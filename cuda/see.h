/* What the functions that observe a run on the GPU share (cuda/observe.c, observe_basic.c). */
#ifndef FLASHLAB_CUDA_SEE_H
#define FLASHLAB_CUDA_SEE_H

#include "cuda/device.h"
#include "cuda/observation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which GPU it is. */
enum status see_device(struct observation *seen, struct error *error);

/* The counters of each launch of work(), which are called kernels[0], kernels[1], ..., up to
 * MAX_OBSERVED_LAUNCHES. A refusal is no failure: seen->uncounted says why. */
void see_counters(struct observation *seen, const char *const *kernels, device_work *work,
                  void *context);

#ifdef __cplusplus
}
#endif

#endif
