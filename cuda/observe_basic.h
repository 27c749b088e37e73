/* One run of a kernel of cuda/basic.h on this machine's GPU, with everything that can be seen
 * of it: what cuda/observe.h is for attention.
 */
#ifndef FLASHLAB_CUDA_OBSERVE_BASIC_H
#define FLASHLAB_CUDA_OBSERVE_BASIC_H

#include <stddef.h>

#include "core/status.h"
#include "cuda/observation.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIC_INPUTS = 2 };

struct basic_request {
    const char *kernel;          /* its file's name: "vector_add", ..., "softmax_online" */
    int rows, cols, depth, tile; /* of the result, a vector has cols; depth, tile: of matmuls */
    struct {
        const char *name;
        const float *values; /* [count]; NULL: the kernel has no second input */
        size_t count;
    } input[BASIC_INPUTS]; /* a, b; A, B; or X */
    float *output;         /* c, C or Y: [outputs], filled */
    size_t outputs;
};

/* Runs the kernel for its result, then for its time (the median of 9 runs after 2), then for
 * the hardware counters. A refusal to count is no failure: seen->uncounted says why. The result
 * goes to request->output, seen->o is NULL. After a failure *seen is empty. */
enum status gpu_observe_basic(struct observation *seen, const struct basic_request *request,
                              struct error *error);

#ifdef __cplusplus
}
#endif

#endif
