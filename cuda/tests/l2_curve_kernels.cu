/* Loads bypass L1, which would hide from L2 what is read again. */
#include "l2_curve_kernels.h"

#include "cuda/error.h"

enum { POINT_THREADS = 1024 };

/* What a block goes through: POINT_THREADS elements at a time from each step on. */
struct stretch {
    int64_t from, to, step;
};

static __device__ struct stretch own(int64_t count)
{
    return {count * blockIdx.x / gridDim.x, count * (blockIdx.x + 1) / gridDim.x,
            POINT_THREADS};
}

static __device__ struct stretch in_order(int64_t count)
{
    return {(int64_t)blockIdx.x * POINT_THREADS, count, (int64_t)gridDim.x * POINT_THREADS};
}

static __device__ float read(const float4 *memory, struct stretch s)
{
    float sum = 0;
#pragma unroll 4
    for (int64_t i = s.from + threadIdx.x; i < s.to; i += s.step) {
        const float4 x = __ldcg(memory + i);
        sum += x.x + x.y + x.z + x.w;
    }
    return sum;
}

static __device__ void write(float4 *memory, struct stretch s)
{
    for (int64_t i = s.from + threadIdx.x; i < s.to; i += s.step)
        memory[i] = make_float4(1, 1, 1, 1);
}

/* memory <- source, which may be memory itself */
static __device__ void copy(float4 *memory, const float4 *source, struct stretch s)
{
#pragma unroll 4
    for (int64_t i = s.from + threadIdx.x; i < s.to; i += s.step) {
        float4 x = __ldcg(source + i);
        x.x += 1;
        memory[i] = x;
    }
}

/* memory <- a + b; one may be memory itself */
static __device__ void add(float4 *memory, const float4 *a, const float4 *b, struct stretch s)
{
#pragma unroll 4
    for (int64_t i = s.from + threadIdx.x; i < s.to; i += s.step) {
        const float4 x = __ldcg(a + i), y = __ldcg(b + i);
        memory[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}

static __device__ void wait(int64_t nanoseconds)
{
    int64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}

static __global__ __launch_bounds__(POINT_THREADS) void l2_curve_point(
    const __grid_constant__ struct l2_curve_point p, float4 *memory, float4 *other)
{
    const int64_t count = p.bytes / (int64_t)sizeof(float4);
    const int64_t other_count = p.other_bytes / (int64_t)sizeof(float4);
    const struct stretch all = {0, count, POINT_THREADS}, mine = own(count);
    float sum = 1;
    for (int pass = 0; pass < p.passes; pass++) {
        switch (p.pattern) {
        case L2_READ_OWN:
            sum += read(memory, mine);
            break;
        case L2_READ_ALL:
            sum += read(memory, all);
            break;
        case L2_WRITE:
            write(memory, mine);
            break;
        case L2_UPDATE:
            copy(memory, memory, mine);
            break;
        case L2_ACCUMULATE:
            add(other, other, memory, mine);
            break;
        case L2_WRITE_READ_OWN:
            write(memory, mine);
            sum += read(other, own(other_count));
            break;
        case L2_WRITE_READ_ALL:
            write(memory, mine);
            sum += read(other, {0, other_count, POINT_THREADS});
            break;
        case L2_COPY:
            copy(memory, other, mine);
            break;
        case L2_COPY_IN_ORDER:
            copy(memory, other, in_order(count));
            break;
        case L2_ADD:
            add(memory, other, other + count, mine);
            break;
        case L2_ADD_IN_ORDER:
            add(memory, other, other + count, in_order(count));
            break;
        case L2_WAIT:
            wait(p.bytes);
            break;
        }
    }
    if (sum == 0) /* memory is NaN or positive: never, but the compiler cannot know */
        memory[0].x = sum;
}

enum status launch_l2_curve_point(const struct l2_curve_point *point, void *memory, void *other,
                                  struct error *error)
{
    l2_curve_point<<<point->blocks, POINT_THREADS>>>(*point, (float4 *)memory, (float4 *)other);
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}
