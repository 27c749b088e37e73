/* The shared library in a build without nvcc: it says so. */
#include "cuda/observe.h"

enum status gpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error)
{
    (void)request;
    *seen = (struct observation){0};
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "built without CUDA: nvcc was not found (make cuda says where it looks)");
}
