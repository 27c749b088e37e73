#include "occupancy_kernels.h"

/* LIVE numbers at once in registers, THREADS a block at most, FLOATS of static shared memory.
 */
template <int LIVE, int THREADS, int FLOATS>
static __global__ __launch_bounds__(THREADS) void sized(float *x, int rounds)
{
    float live[LIVE];
    const int thread = (int)threadIdx.x, threads = (int)blockDim.x;
#pragma unroll
    for (int k = 0; k < LIVE; k++)
        live[k] = x[k * threads + thread];
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        const float factor = x[round];
#pragma unroll
        for (int k = 0; k < LIVE; k++) /* each needs the next one's old value */
            live[k] = live[k] * factor + live[(k + 1) % LIVE];
    }
    if constexpr (FLOATS > 0) {
        __shared__ float shared[FLOATS];
        for (int i = thread; i < FLOATS; i += threads)
            shared[i] = live[0] + (float)i;
        __syncthreads();
        live[0] += shared[rounds % FLOATS];
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < LIVE; k++)
        sum += live[k];
    x[thread] = sum;
}

#define SIZED(live, threads, floats)                                                           \
    {                                                                                          \
        "sized_" #live "_" #threads "_" #floats, (const void *)sized<live, threads, floats>,   \
            threads                                                                            \
    }

const struct occupancy_kernel *occupancy_kernels(int *count)
{
    static const struct occupancy_kernel kernels[] = {
        SIZED(4, 1024, 0),     SIZED(12, 1024, 0),    SIZED(20, 1024, 0), SIZED(28, 1024, 0),
        SIZED(36, 1024, 0),    SIZED(44, 1024, 0),    SIZED(52, 1024, 0), SIZED(70, 512, 0),
        SIZED(84, 512, 0),     SIZED(100, 512, 0),    SIZED(116, 512, 0), SIZED(130, 256, 0),
        SIZED(150, 256, 0),    SIZED(170, 256, 0),    SIZED(190, 256, 0), SIZED(210, 256, 0),
        SIZED(235, 256, 0),    SIZED(4, 1024, 1),     SIZED(4, 1024, 33), SIZED(4, 1024, 1000),
        SIZED(36, 1024, 5001), SIZED(130, 256, 12000)};
    *count = (int)(sizeof kernels / sizeof kernels[0]);
    return kernels;
}
