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
} cudaError_t;

/* No call fails here, so no error has a name. */
static inline const char *cudaGetErrorName(cudaError_t code)
{
    return code == cudaSuccess ? "cudaSuccess" : "an error of CUDA";
}
static inline const char *cudaGetErrorString(cudaError_t code)
{
    return cudaGetErrorName(code);
}

#ifdef __cplusplus
#include "cuda/cpu/engine.h"

#define __CUDACC__ 1
#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
/* static shared memory: blocks on different OpenMP threads have each their own */
#define __shared__ static __thread

#define threadIdx (cpu_now.thread)
#define blockIdx (cpu_now.block)
#define blockDim (cpu_now.block_dim)
#define gridDim (cpu_now.grid_dim)

typedef void *cudaStream_t;

struct dim3 {
    unsigned x, y, z;

    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin };
struct cudaFuncAttributes {
    size_t sharedSizeBytes;
};

static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
    attributes->sharedSizeBytes = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
/* 227 KB, as Hopper has: what a GPU refuses is refused here. */
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = 227 * 1024;
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

static inline int min(int a, int b)
{
    return a < b ? a : b;
}
static inline int max(int a, int b)
{
    return a > b ? a : b;
}

static inline void __syncthreads()
{
    cpu_sync_block();
}
static inline void __syncwarp(unsigned mask = 0xffffffff)
{
    cpu_sync_warp(mask);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int other)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "at most 8 bytes pass in a shuffle");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = cpu_shuffle_xor(mask, bits, other);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* kernel<<<grid, block, bytes, stream>>>(arguments), which translate.sed writes as
 * cpu_launch("kernel", kernel, grid, block, bytes, stream)(arguments). */
template <class... P> struct cpu_launcher {
    void (*kernel)(P...);
    struct cpu_grid grid;

    void operator()(P... arguments)
    {
        const auto thread = [&]() { kernel(arguments...); };
        using body = decltype(thread);
        grid.thread = [](const void *context) { (*static_cast<body *>(context))(); };
        grid.context = &thread;
        cpu_run_grid(&grid);
    }
};
template <class... P>
static inline cpu_launcher<P...> cpu_launch(const char *name, void (*kernel)(P...), dim3 grid,
                                            dim3 block, size_t bytes, cudaStream_t)
{
    return {
        kernel,
        {name, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, bytes, nullptr, nullptr}};
}

#endif
#endif
