/* Failed CUDA calls as messages. For files that include the CUDA runtime. */
#ifndef FLASHLAB_CUDA_ERROR_H
#define FLASHLAB_CUDA_ERROR_H

#include <cuda_runtime.h>

#include "cuda/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *error with what failed, where, CUDA's name and words for it and what to do; returns
 * its status. */
enum status cuda_failed(struct error *error, cudaError_t code, const char *call,
                        const char *file, int line);

/* Returns from the calling function, with the status, if the call fails. */
#define CUDA_TRY(call, error)                                                                  \
    do {                                                                                       \
        const cudaError_t cuda_code = (call);                                                  \
        if (cuda_code != cudaSuccess)                                                          \
            return cuda_failed(error, cuda_code, #call, __FILE__, __LINE__);                   \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
