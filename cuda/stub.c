/* The shared library in a build without nvcc: it says so. */
#include "cuda/observe.h"
#include "cuda/observe_basic.h"

static enum status refuse(struct observation *seen, struct error *error)
{
    *seen = (struct observation){0};
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "built without CUDA: nvcc was not found (make cuda says where it looks)");
}

enum status gpu_observe(struct observation *seen, const struct observe_request *request,
                        struct error *error)
{
    (void)request;
    return refuse(seen, error);
}

enum status gpu_observe_basic(struct observation *seen, const struct basic_request *request,
                              struct error *error)
{
    (void)request;
    return refuse(seen, error);
}
