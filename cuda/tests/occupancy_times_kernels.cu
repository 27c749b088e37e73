#include "occupancy_times_kernels.h"

#include "cuda/error.h"

enum { SUM_THREADS = 256, FMA_THREADS = 128, FMAS_A_ROUND = 256, CHASE_STEPS = 16 };

/* Used from the last one back, so that all are in flight before the first is used. The loop is
 * not unrolled: the next ones wait until the last of these has come. An SM has registers for 5
 * blocks of 8 loads; asked for no number of blocks, the compiler keeps fewer loads in flight,
 * so that 8 blocks have room. */
template <int LOADS>
static __global__ __launch_bounds__(SUM_THREADS,
                                    LOADS < 8 ? 8 : 5) void sum_vector(float *result,
                                                                       const float *input,
                                                                       int64_t rounds)
{
    const float4 *x = (const float4 *)input + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int64_t round = blockIdx.x; round < rounds; round += gridDim.x) {
        float4 loaded[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            loaded[k] = x[(round * LOADS + k) * SUM_THREADS];
#pragma unroll
        for (int k = LOADS - 1; k >= 0; k--) {
            sum.x += loaded[k].x;
            sum.y += loaded[k].y;
            sum.z += loaded[k].z;
            sum.w += loaded[k].w;
        }
    }
    result[blockIdx.x * SUM_THREADS + threadIdx.x] = (sum.x + sum.y) + (sum.z + sum.w);
}

/* The factor is a constant of the instruction: with a third register to read, 1 chain reaches
 * half the rate, however many warps there are, and no latency is measured. */
template <int CHAINS>
static __global__ __launch_bounds__(FMA_THREADS) void fma_chains(float *result,
                                                                 const float *input,
                                                                 int64_t rounds)
{
    const float term = input[0];
    float x[CHAINS];
    for (int k = 0; k < CHAINS; k++)
        x[k] = (float)(threadIdx.x + k);
#pragma unroll 1
    for (int64_t round = 0; round < rounds; round++) {
#pragma unroll
        for (int step = 0; step < FMAS_A_ROUND / CHAINS; step++)
#pragma unroll
            for (int k = 0; k < CHAINS; k++)
                x[k] = x[k] * 0.5f + term;
    }
    float sum = 0;
    for (int k = 0; k < CHAINS; k++)
        sum += x[k];
    result[blockIdx.x * FMA_THREADS + threadIdx.x] = sum;
}

static __global__ void pointer_chase(float *result, const float *input, int64_t rounds)
{
    unsigned line = __float_as_uint(result[0]);
#pragma unroll 1
    for (int64_t round = 0; round < rounds; round++)
#pragma unroll
        for (int step = 0; step < CHASE_STEPS; step++)
            line = __float_as_uint(input[(size_t)line * LINE_FLOATS]);
    result[0] = __uint_as_float(line);
}

typedef void timed(float *result, const float *input, int64_t rounds);

#define SUM(loads)                                                                             \
    {                                                                                          \
        "sum_vector", TIMED_BYTES, loads, SUM_THREADS, loads * 16,                             \
            (const void *)sum_vector<loads>                                                    \
    }
#define FMA(chains)                                                                            \
    {                                                                                          \
        "fma_chains", TIMED_FMAS, chains, FMA_THREADS, FMAS_A_ROUND,                           \
            (const void *)fma_chains<chains>                                                   \
    }

const struct timed_kernel *timed_kernels(int *count)
{
    static const struct timed_kernel kernels[] = {
        SUM(1), SUM(2),
        SUM(4), SUM(8),
        FMA(1), FMA(2),
        FMA(4), {"pointer_chase", TIMED_LOADS, 1, 1, CHASE_STEPS, (const void *)pointer_chase}};
    *count = (int)(sizeof kernels / sizeof kernels[0]);
    return kernels;
}

enum status launch_timed(void *context, struct error *error)
{
    const struct timed_launch *launch = (const struct timed_launch *)context;
    timed *kernel = (timed *)launch->kernel->kernel;
    kernel<<<launch->grid, launch->kernel->threads, (size_t)launch->shared_bytes>>>(
        launch->result, launch->input, launch->rounds);
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}

static __global__ void fill(float4 *x, int64_t count)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const float first = (float)(i % 4 * 4);
        x[i] = make_float4(first, first + 1, first + 2, first + 3);
    }
}

enum status fill_vector(float *x, int64_t count, struct error *error)
{
    fill<<<1024, 256>>>((float4 *)x, count / 4);
    CUDA_TRY(cudaGetLastError(), error);
    return stream_wait(NULL, error);
}
