/* One run of an attention kernel on this machine's GPU, with everything that can be seen of it.
 * With gpu_observe_basic() (cuda/observe_basic.h) all that programs outside cuda/ call, and
 * look up in the shared library build/libflashlab_cuda.so: see lessons/common/gpu.h.
 */
#ifndef FLASHLAB_CUDA_OBSERVE_H
#define FLASHLAB_CUDA_OBSERVE_H

#include "core/attention.h"
#include "core/machine.h"
#include "cuda/observation.h"

#ifdef __cplusplus
extern "C" {
#endif

struct observe_request {
    enum algorithm algorithm;
    struct attention attention;    /* dtype f32; standard attention with tiled_gemm */
    const float *q, *k, *v;        /* as attention_simulate() takes them */
    bool counters;                 /* read the hardware counters of each launch */
    bool steps;                    /* and run the tracing build for its step records */
    const struct machine *machine; /* whose limits hold on the CPU; NULL: Hopper's */
};

/* Runs the plain kernel (results and counters), then, if steps are asked for, the tracing
 * build. A refusal to count is no failure: seen->uncounted says why. After a failure *seen is
 * empty. */
enum status gpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
