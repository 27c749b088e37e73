/* One run of an attention kernel on the CPU: what gpu_observe() does on a GPU (cuda/observe.h),
 * with those counters that an observer of accesses can know. */
#ifndef FLASHLAB_CUDA_CPU_OBSERVE_H
#define FLASHLAB_CUDA_CPU_OBSERVE_H

#include "cuda/observe.h"

/* Counted are the sectors of loads, stores and reductions, and shared memory's instructions,
 * wavefronts and bank conflicts; other counters are -1. After a failure *seen is empty. */
enum status cpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error);

#endif
