/* Right and wrong uses of memory, each a kernel of a few lines. A comment names the line where
 * it stops, and that of the other thread. */
#include "cuda/memory.h"
#include "tests/cpu/kernels/own.h"

#define T ((int)threadIdx.x)

static __global__ void warp_barrier_orders(Global<float> x)
{
    __shared__ float s[64];
    s[T] = (float)T;
    __syncwarp();
    const float other = s[T ^ 1];
    __syncwarp();
    s[T] = other;
    __syncthreads();
    x[T] = s[63 - T];
}
static __global__ void atomics_together(Global<float> x)
{
    __shared__ float s[2];
    if (T < 2)
        s[T] = 0.0f;
    __syncthreads();
    atomicAdd(&s[T % 2], (float)T);
    __syncthreads();
    x[T] = s[T % 2];
}
static __global__ void two_indices(Global<float> x)
{
    extern __shared__ float shared[];
    __shared__ float rows[8][9];
    rows[T / 8][T % 8] = (float)T;
    shared[63 - T] = 0.5f;
    __syncthreads();
    x[T] = rows[T % 8][T / 8] + shared[T];
}

static __global__ void writes_of_two_warps(Global<float> x)
{
    __shared__ float s[32];
    s[T % 32] = x[T]; /* two warps */
}
static __global__ void writes_of_one_warp(Global<float> x)
{
    __shared__ float s[64];
    s[T & ~1] = x[T]; /* one warp */
}
static __global__ void write_then_read(Global<float> x)
{
    __shared__ float s[64];
    s[T] = 0.0f;
    __syncthreads();
    s[T] = 1.0f;      /* written by another warp */
    x[T] = s[T % 32]; /* read by the other warp */
}
static __global__ void write_then_read_in_warp(Global<float> x)
{
    __shared__ float s[64];
    s[T] = 1.0f;      /* written by a lane */
    x[T] = s[T & ~1]; /* read by another lane */
}
static __global__ void read_then_write(Global<float> x)
{
    __shared__ float s[64];
    s[T] = 0.0f;
    __syncthreads();
    if (T < 32)
        x[T] = s[T + 32]; /* read by a warp */
    else
        s[T] = 1.0f; /* written by the other warp */
}
static __global__ void read_then_write_in_warp(Global<float> x)
{
    __shared__ float s[64];
    s[T] = 0.0f;
    __syncthreads();
    x[T] = s[T]; /* read before, in order */
    __syncwarp();
    if (T % 2 == 0)
        x[T] = s[T + 1]; /* read by a lane */
    else
        s[T] = 1.0f; /* written by another lane */
}
static __global__ void shuffle_between(Global<float> x)
{
    __shared__ float s[64];
    s[T] = x[T]; /* written before the shuffle */
    x[T] = __shfl_sync(0xffffffff, x[T], 0);
    x[T] = s[T ^ 1]; /* read after the shuffle */
}
static __global__ void store_then_atomic(Global<float> x)
{
    __shared__ float s[1];
    if (T == 0)
        s[0] = x[0];        /* plain store */
    atomicAdd(&s[0], 1.0f); /* atomic after it */
}
static __global__ void atomic_then_store(Global<float> x)
{
    __shared__ float s[1];
    if (T == 0)
        s[0] = x[0];
    __syncthreads();
    if (T == 40)
        s[0] = 1.0f; /* store after it */
    else
        atomicAdd(&s[0], 1.0f); /* atomic before */
}
static __global__ void atomic_then_load(Global<float> x)
{
    __shared__ float s[1];
    if (T == 0)
        s[0] = x[0];
    __syncthreads();
    atomicAdd(&s[0], 1.0f); /* atomics of all */
    if (T == 63)
        x[0] = s[0]; /* load after them */
}
static __global__ void store_before_atomics(Global<float> x)
{
    __shared__ float s[1];
    if (T == 1)
        s[0] = x[0];
    __syncwarp();
    if (T == 1)
        atomicAdd(&s[0], 1.0f); /* after its own store */
    if (T == 40)
        atomicAdd(&s[0], 1.0f); /* atomic of another warp */
}

static __global__ void unwritten_static(Global<float> x)
{
    __shared__ float s[64];
    s[T] = 0.0f;
    __shared__ float never[64];
    x[T] = never[T]; /* static, unwritten */
}
static __global__ void unwritten_dynamic(Global<float> x)
{
    extern __shared__ float shared[];
    if (T != 5)
        shared[T] = 0.0f;
    __syncthreads();
    x[T] = shared[T]; /* dynamic, unwritten */
}
static __global__ void unwritten_hbm(Global<float> x)
{
    if (T != 5)
        x[T] = 0.0f;
    x[T] += 1.0f; /* HBM, unwritten */
}
static __global__ void unwritten_atomic(Global<float> x)
{
    atomicAdd(&x[T], 1.0f); /* atomic, unwritten */
}
static __global__ void left_by_a_block(Global<float> x)
{
    __shared__ float s[64];
    if (blockIdx.x == 0)
        s[T] = 1.0f;
    x[T] = s[T]; /* of the block before */
}

static __global__ void store_behind(Global<float> x)
{
    x[T + 1] = 0.0f; /* behind */
}
static __global__ void load_before(Global<float> x)
{
    Global<float> row = x - 1;
    x[T] = row[T]; /* before */
}
static __global__ void behind_static(Global<float> x)
{
    __shared__ float s[64];
    s[T + 1] = x[T]; /* behind s */
}
static __global__ void behind_rows(Global<float> x)
{
    __shared__ float rows[8][8];
    rows[T / 8 + 1][T % 8] = x[T]; /* behind rows */
}
static __global__ void behind_dynamic(Global<float> x)
{
    extern __shared__ float shared[];
    shared[T + 1] = x[T]; /* behind shared */
}
static __global__ void misaligned_hbm(Global<float> x)
{
    x[T] = 0.0f; /* between elements */
}
static __global__ void misaligned_shared(Global<float> x)
{
    extern __shared__ float shared[];
    float four[4];
    shared[T] = x[T];
    __syncthreads();
    load4(four, shared + T); /* between fours */
}

static __global__ void too_much_static(Global<float> x)
{
    __shared__ float s[12289]; /* 49156 bytes */
    s[T] = x[T];
}
static __global__ void static_beside_dynamic(Global<float> x)
{
    __shared__ float s[2048]; /* 8192 bytes */
    s[T] = x[T];
}

/* By enum memory_use. */
static void (*const kernels[MEMORY_USES])(Global<float>) = {warp_barrier_orders,
                                                            atomics_together,
                                                            two_indices,
                                                            writes_of_two_warps,
                                                            writes_of_one_warp,
                                                            write_then_read,
                                                            write_then_read_in_warp,
                                                            read_then_write,
                                                            read_then_write_in_warp,
                                                            shuffle_between,
                                                            store_then_atomic,
                                                            atomic_then_store,
                                                            atomic_then_load,
                                                            store_before_atomics,
                                                            unwritten_static,
                                                            unwritten_dynamic,
                                                            unwritten_hbm,
                                                            unwritten_atomic,
                                                            left_by_a_block,
                                                            store_behind,
                                                            load_before,
                                                            behind_static,
                                                            behind_rows,
                                                            behind_dynamic,
                                                            misaligned_hbm,
                                                            misaligned_shared,
                                                            too_much_static,
                                                            static_beside_dynamic};

void launch_memory(enum memory_use use, float *x)
{
    void (*const kernel)(Global<float>) = kernels[use];
    kernel<<<use == LEFT_BY_A_BLOCK ? 2 : 1, 64, 64 * sizeof(float)>>>(x);
}
