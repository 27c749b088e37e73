#include "cuda/error.h"

/* What a user can do about an error; others are bugs of a kernel or of its launch. */
static const struct {
    cudaError_t code;
    const char *advice;
} advices[] = {
    {cudaErrorNoDevice, "no CUDA GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {cudaErrorInsufficientDriver,
     "the driver is missing or older than this CUDA runtime: update it, or build with an older "
     "toolkit"},
    {cudaErrorMemoryAllocation, "use a smaller problem or free the GPU's memory"},
    {cudaErrorNoKernelImageForDevice,
     "the binary has no code for this GPU: rebuild with make cuda CUDA_ARCH=sm_NN"},
    {cudaErrorUnsupportedPtxVersion,
     "the driver is older than the toolkit: rebuild with make cuda CUDA_ARCH=sm_NN"},
    {cudaErrorDevicesUnavailable, "another process holds the GPU exclusively"},
    {cudaErrorLaunchTimeout, "the GPU also drives a display: use a smaller problem"},
};

static const char *advice_for(cudaError_t code)
{
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++)
        if (advices[i].code == code)
            return advices[i].advice;
    return "a bug: run the program under compute-sanitizer to find it";
}

enum status cuda_failed(struct error *error, cudaError_t code, const char *call,
                        const char *file, int line)
{
    const enum status status =
        code == cudaErrorMemoryAllocation ? STATUS_OUT_OF_MEMORY : STATUS_BAD_ARGUMENT;
    return error_set(error, status, "%s:%d: %s: %s (%s)\n%s", file, line, call,
                     cudaGetErrorString(code), cudaGetErrorName(code), advice_for(code));
}
