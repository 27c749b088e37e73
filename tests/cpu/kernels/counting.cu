/* Kernels whose requests are known, and kernels that do not end. */
#include "cuda/memory.h"
#include "tests/cpu/kernels/device.h"
#include "tests/cpu/kernels/own.h"

/* Two halves of a warp reach one line of a header by two lines of the kernel: two requests. */
static __global__ void two_calls(Global<float> to, Global<const float> from)
{
    float x;
    if (threadIdx.x < 16)
        x = first_of(from); /* first half */
    else
        x = first_of(from); /* second half */
    to[threadIdx.x] = x;
}

/* By two lines of a header, and one of the kernel. */
static __global__ void two_inner_calls(Global<float> to, Global<const float> from)
{
    to[threadIdx.x] = first_of_either(from, threadIdx.x >= 16);
}

/* rounds + lane rounds of a lane. */
static __global__ void long_loop(Global<float> to, Global<const float> from, int rounds)
{
    const int lane = (int)threadIdx.x % 32;
    float sum = 0.0f;
    for (int n = 0; n < rounds + lane; n++)
        sum += from[n % 32]; /* first */
    for (int n = 0; n < rounds; n++) {
        sum += from[n % 8];      /* second */
        sum += from[n % 8 + 32]; /* third */
    }
    to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static __global__ void count_up(Global<int> count, Global<float> sum)
{
    __shared__ int block[1];
    if (threadIdx.x == 0)
        block[0] = 0;
    __syncthreads();
    atomicAdd(&block[0], 1);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(count + 0, block[0]);
    atomicAdd(&sum[0], 0.5f);
}

static __global__ void endless_reads(Global<float> to, Global<const float> from)
{
    float sum = 0.0f;
    if (blockIdx.x == 1 && threadIdx.x == 3)
        while (sum >= 0.0f)
            sum += from[0]; /* forever */
    to[threadIdx.x] = sum;
}
static __global__ void endless_waits()
{
    for (;;)
        __syncwarp(); /* again and again */
}
static __global__ void endless_silence(Global<float> to, int touches)
{
    volatile int go_on = 1;
    if (touches && threadIdx.x == 1)
        to[0] = 0.0f; /* the last access */
    while (threadIdx.x == 1 && go_on)
        ;
}

static __global__ void three_dims(Global<int> to)
{
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    to[block * blockDim.x * blockDim.y * blockDim.z + thread] = (int)(1000 * block + thread);
}

static __global__ void use_shared(Global<float> to)
{
    extern __shared__ float shared[];
    shared[threadIdx.x] = 1.0f;
    to[threadIdx.x] = shared[threadIdx.x];
}

void launch_counting(enum counting kernel, float *to, const float *from, int n)
{
    switch (kernel) {
    case TWO_CALLS:
        two_calls<<<1, 32>>>(to, from);
        break;
    case TWO_INNER_CALLS:
        two_inner_calls<<<1, 32>>>(to, from);
        break;
    case LONG_LOOP:
        long_loop<<<3, 64>>>(to, from, n);
        break;
    case ENDLESS_READS:
        endless_reads<<<2, 32>>>(to, from);
        break;
    case ENDLESS_WAITS:
        endless_waits<<<1, 32>>>();
        break;
    case ENDLESS_SILENCE:
        endless_silence<<<1, 32>>>(to, n);
        break;
    }
}
void launch_count_up(int *count, float *sum, int blocks)
{
    count_up<<<blocks, 100>>>(count, sum);
}
void launch_three_dims(int *to)
{
    three_dims<<<dim3(2, 3, 2), dim3(5, 2, 3)>>>(to);
}

const char *launch_shared(float *to, unsigned threads, unsigned grid_y, size_t bytes,
                          bool raised)
{
    if (raised)
        cudaFuncSetAttribute((const void *)use_shared,
                             cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    use_shared<<<dim3(1, grid_y), threads, bytes>>>(to);
    const cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess)
        return NULL;
    return code == cudaErrorInvalidConfiguration ? cudaGetErrorString(code) : "another error";
}
