/* The step records of a run on the GPU, by the tracing build of the attention kernels. */
#ifndef FLASHLAB_CUDA_TRACE_H
#define FLASHLAB_CUDA_TRACE_H

#include "core/step_log.h"
#include "cuda/attention.h"

/* Runs the algorithm on what lies in t, and appends its records in the simulator's order: by
 * launch, by block (x fastest, then y), by step. */
enum status attention_trace(struct step_log *log, enum algorithm algorithm,
                            const struct attention *a, const struct device_tensors *t,
                            struct error *error);

#endif
