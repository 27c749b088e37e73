/* PTX where the compiler would drop or merge what is measured. What is computed is stored if it
 * is a number that it cannot be. */
#include "rate_kernels.h"

#include "cuda/error.h"

enum { CHAINS = 8, UNROLL = 16 };

static const float NOT_THERE = 12345.0f;

template <int RATE>
static __global__ __launch_bounds__(RATE_THREADS) void sm_rate(float *out, int rounds, float by)
{
    float x[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        x[c] = by * (float)(c + threadIdx.x);
#pragma unroll 1
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int n = 0; n < UNROLL; n++)
#pragma unroll
            for (int c = 0; c < CHAINS; c++)
                if constexpr (RATE == RATE_FP32)
                    x[c] = fmaf(x[c], by, by);
                else
                    asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[c]));
    float sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    if (sum == NOT_THERE)
        *out = sum;
}

/* Every block reads all of memory, each from another place on. */
static __global__ __launch_bounds__(RATE_THREADS) void global_rate(const float4 *memory,
                                                                   int count, float *out,
                                                                   int rounds)
{
    const int stride = (int)gridDim.x * RATE_THREADS;
    float sum = 0;
    for (int round = 0; round < rounds; round++) {
        const int first = ((int)blockIdx.x + round) % (int)gridDim.x * RATE_THREADS;
#pragma unroll 8
        for (int i = first + (int)threadIdx.x; i < count; i += stride) {
            const float4 x = __ldcg(memory + i);
            sum += x.x + x.y + x.z + x.w;
        }
    }
    if (sum == NOT_THERE)
        *out = sum;
}

static __global__ void make_ring(unsigned *memory, unsigned count)
{
    const unsigned step = CHASE_STEP_BYTES / sizeof(unsigned);
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count / step;
         i += gridDim.x * blockDim.x)
        memory[i * step] = (i + 1) * step < count ? (i + 1) * step : 0;
}

template <bool SHARED>
static __global__ void chase(const unsigned *memory, unsigned *out, int64_t *clocks, int steps)
{
    __shared__ unsigned ring[1024];
    unsigned at = 0;
    for (int i = 0; i < 1024; i++)
        ring[i] = (unsigned)(i + 33) % 1024;
    const int64_t begin = clock64();
    for (int i = 0; i < steps; i++)
        at = SHARED ? ring[at] : __ldcg(memory + at);
    if (at == 0xffffffff)
        *out = at;
    *clocks = clock64() - begin;
}

static int blocks_of(const struct rate_launch *l)
{
    return l->sms * RATE_BLOCKS_PER_SM;
}

template <int RATE> static void launch_sm_rate(const struct rate_launch *l)
{
    sm_rate<RATE><<<blocks_of(l), RATE_THREADS>>>((float *)l->memory, l->rounds, 0.5f);
}

enum status rate_prepare(const struct rate_launch *l, struct error *error)
{
    make_ring<<<256, 256>>>((unsigned *)l->memory, (unsigned)(l->bytes / 4));
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}

enum status launch_rate(const struct rate_launch *l, struct error *error)
{
    switch (l->rate) {
    case RATE_FP32:
        launch_sm_rate<RATE_FP32>(l);
        break;
    case RATE_EXP2:
        launch_sm_rate<RATE_EXP2>(l);
        break;
    case RATE_GLOBAL:
        global_rate<<<blocks_of(l), RATE_THREADS>>>(
            (const float4 *)l->memory, (int)(l->bytes / 16), (float *)l->memory, l->rounds);
        break;
    case RATE_GLOBAL_LATENCY:
        chase<false><<<1, 1>>>((const unsigned *)l->memory, (unsigned *)l->memory, l->clocks,
                               l->rounds);
        break;
    default:
        chase<true><<<1, 1>>>((const unsigned *)l->memory, (unsigned *)l->memory, l->clocks,
                              l->rounds);
    }
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}

double rate_amount(const struct rate_launch *l)
{
    const double threads = (double)blocks_of(l) * RATE_THREADS;
    const double operations = threads * l->rounds * UNROLL * CHAINS;
    switch (l->rate) {
    case RATE_FP32:
    case RATE_EXP2:
        return operations;
    case RATE_GLOBAL:
        return (double)l->bytes * l->rounds;
    default:
        return l->rounds;
    }
}
