/* Stands in for CUDA's header where kernels are compiled for the CPU: what cuda/ uses of it, no
 * more. nvcc includes its own before anything else; so does cpu.mk this one. */
#ifndef FLASHLAB_CUDA_CPU_RUNTIME_H
#define FLASHLAB_CUDA_CPU_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    cudaSuccess,
    cudaErrorMemoryAllocation,
    cudaErrorNoDevice,
    cudaErrorInsufficientDriver,
    cudaErrorNoKernelImageForDevice,
    cudaErrorUnsupportedPtxVersion,
    cudaErrorDevicesUnavailable,
    cudaErrorLaunchTimeout,
    cudaErrorInvalidConfiguration,
} cudaError_t;

#ifdef __cplusplus
extern "C" {
#endif
/* The launches that the CPU refuses are the only calls that fail. */
const char *cudaGetErrorName(cudaError_t code);
const char *cudaGetErrorString(cudaError_t code);
#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
#include "cuda/cpu/observed_memory.h"
#include "cuda/cpu/warp.h"

#define __CUDACC__ 1
#define __host__
#define __device__
#define __global__ CPU_PART
#define __constant__ static const
#define __forceinline__ inline CPU_PART
#define __launch_bounds__(...)
/* What would not be seen, or cannot run, does not compile. */
#define __shared__                                                                             \
    static_assert(false, "__shared__ on the CPU: one array a statement, in the .cu file");
#define asm static_assert(false, "inline PTX does not run on the CPU");

#define threadIdx (cpu_now.running->index)
#define blockIdx (cpu_now.block)
#define blockDim (cpu_now.block_dim)
#define gridDim (cpu_now.grid_dim)
static const int warpSize = CPU_WARP;

typedef void *cudaStream_t;

struct dim3 {
    unsigned x, y, z;

    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin };
struct cudaFuncAttributes {
    size_t sharedSizeBytes;
};

/* Static shared memory is known when the kernel runs: it counts then. */
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
    attributes->sharedSizeBytes = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute,
                                               int bytes)
{
    cpu_raise_shared(function, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = (int)cpu_shared_limit();
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError()
{
    return cpu_launch_refused() ? cudaErrorInvalidConfiguration : cudaSuccess;
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}
static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
/* The C library's, without a call: the number, if one of the two is none. */
static inline float cpu_fmaxf(float x, float y)
{
    return x > y || y != y ? x : y;
}
#define fmaxf(x, y) cpu_fmaxf(x, y)
#define __expf(x) expf(x) /* glibc has a function of that name */
static inline float __fdividef(float x, float y)
{
    return x / y;
}

/* kernel<<<grid, block, bytes, stream>>>(arguments), which translate.sed writes as
 * cpu_launch("kernel", kernel, call, grid, block, bytes, stream)(arguments); call(x...) is
 * kernel(x...). */
template <class Call, class... P> struct cpu_launcher {
    Call call;
    struct cpu_grid grid;

    void operator()(P... arguments)
    {
        /* A fiber runs one thread after the other, as long as they are this launch's. */
        const auto threads = [&]() {
            const int64_t launch = cpu_now.launch;
            do {
                call(arguments...);
                cpu_end_thread();
            } while (cpu_now.launch == launch);
        };
        using body = decltype(threads);
        grid.threads = [](const void *context) { (*static_cast<body *>(context))(); };
        grid.context = &threads;
        cpu_run_grid(&grid);
    }
};
template <class Call, class... P>
static inline cpu_launcher<Call, P...>
cpu_launch(const char *name, void (*kernel)(P...), Call call, dim3 grid, dim3 block,
           size_t bytes = 0, cudaStream_t = nullptr, const char *file = __builtin_FILE())
{
    return {call,
            {name,
             file,
             (const void *)kernel,
             {grid.x, grid.y, grid.z},
             {block.x, block.y, block.z},
             bytes,
             nullptr,
             nullptr}};
}

#endif
#endif
