/* Vector addition: c = a + b, the kernel that only moves bytes.
 *
 * A thread adds 4 elements, a block's width apart, so that the loads of all four are on their
 * way before the first is used, and every request of a warp still covers 32 consecutive
 * elements.
 *
 * Twin of sim/kernels/vector_add.c.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/steps.h"

enum { ADD_THREADS = 256, ADD_PER_THREAD = 4, ADD_PER_BLOCK = ADD_THREADS * ADD_PER_THREAD };

static __global__ __launch_bounds__(ADD_THREADS) void vector_add(Global<float> c,
                                                                 Global<const float> a,
                                                                 Global<const float> b,
                                                                 int64_t count)
{
    const int64_t first = (int64_t)blockIdx.x * ADD_PER_BLOCK + threadIdx.x;
    float x[ADD_PER_THREAD], y[ADD_PER_THREAD];
    STEPS_BEGIN((int)blockIdx.x, 0, 0);
#pragma unroll
    for (int n = 0; n < ADD_PER_THREAD; n++) {
        if (first + n * ADD_THREADS < count) {
            x[n] = a[first + n * ADD_THREADS];
            y[n] = b[first + n * ADD_THREADS];
        }
    }
    STEP("load a, b", (int)blockIdx.x, -1);
#pragma unroll
    for (int n = 0; n < ADD_PER_THREAD; n++)
        if (first + n * ADD_THREADS < count)
            c[first + n * ADD_THREADS] = x[n] + y[n];
    STEP("store c = a + b", (int)blockIdx.x, -1);
}

enum status launch_vector_add(float *c, const float *a, const float *b, int64_t count,
                              void *stream, struct error *error)
{
    const struct launch_shape shape = {
        "vector_add", {launch_blocks(count, ADD_PER_BLOCK), 1, 1}, ADD_THREADS, 0};
    if (launch_prepare((const void *)vector_add, &shape, error))
        return error->status;
    vector_add<<<launch_grid(&shape), ADD_THREADS, 0, (cudaStream_t)stream>>>(c, a, b, count);
    return launch_check(&shape, error);
}
