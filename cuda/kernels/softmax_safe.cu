/* Safe softmax (Milakov & Gimelshein 2018, Algorithm 2): three passes over each row.
 *
 * The maximum, then the sum of exp(x - maximum), then the result: every element is loaded three
 * times and stored once. One thread block a row; a warp's request covers 32 consecutive
 * elements. Loops make the same number of rounds in every thread, so that no request is split.
 *
 * Twin of sim/kernels/softmax_safe.c.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/row_softmax.h"
#include "cuda/steps.h"

static __global__
__launch_bounds__(ROW_SOFTMAX_THREADS) void softmax_safe(Global<float> Y, Global<const float> X,
                                                         int cols)
{
    __shared__ float maxima[ROW_SOFTMAX_WARPS];
    __shared__ float sums[ROW_SOFTMAX_WARPS];
    const int row = (int)blockIdx.x, thread = (int)threadIdx.x;
    X += (int64_t)row * cols;
    Y += (int64_t)row * cols;
    STEPS_BEGIN(row, 0, 0);

    float m = -INFINITY;
    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS)
        if (first + thread < cols)
            m = fmaxf(m, X[first + thread]);
    m = block_max(m, maxima);
    STEP("m = max of x", row, -1);

    float sum = 0.0f;
    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS)
        if (first + thread < cols)
            sum += exp_relative(X[first + thread], m);
    const float l = block_sum(sum, sums);
    STEP("l = sum of exp(x - m)", row, -1);

    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS)
        if (first + thread < cols)
            Y[first + thread] = l == 0.0f ? 0.0f : exp_relative(X[first + thread], m) / l;
    STEP("y = exp(x - m) / l", row, -1);
}

enum status launch_softmax_safe(float *Y, const float *X, int rows, int cols, void *stream,
                                struct error *error)
{
    const struct launch_shape shape = {"softmax_safe", {rows, 1, 1}, ROW_SOFTMAX_THREADS, 0};
    if (launch_prepare((const void *)softmax_safe, &shape, error))
        return error->status;
    softmax_safe<<<launch_grid(&shape), ROW_SOFTMAX_THREADS, 0, (cudaStream_t)stream>>>(Y, X,
                                                                                        cols);
    return launch_check(&shape, error);
}
