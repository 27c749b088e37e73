/* Naive softmax (Milakov & Gimelshein 2018, Algorithm 1): two passes over each row.
 *
 * The sum of exp(x), then the result: every element is loaded twice and stored once, and a row
 * with x above 88.73 comes out as NaN. One thread block a row; a warp's request covers 32
 * consecutive elements. Loops make the same number of rounds in every thread, so that no
 * request is split.
 *
 * Twin of sim/kernels/softmax_naive.c.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/row_softmax.h"
#include "cuda/steps.h"

static __global__
__launch_bounds__(ROW_SOFTMAX_THREADS) void softmax_naive(Global<float> Y,
                                                          Global<const float> X, int cols)
{
    __shared__ float sums[ROW_SOFTMAX_WARPS];
    const int row = (int)blockIdx.x, thread = (int)threadIdx.x;
    X += (int64_t)row * cols;
    Y += (int64_t)row * cols;
    STEPS_BEGIN(row, 0, 0);

    float sum = 0.0f;
    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS)
        if (first + thread < cols)
            sum += expf(X[first + thread]);
    const float l = block_sum(sum, sums);
    STEP("l = sum of exp(x)", row, -1);

    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS)
        if (first + thread < cols)
            Y[first + thread] = expf(X[first + thread]) / l;
    STEP("y = exp(x) / l", row, -1);
}

enum status launch_softmax_naive(float *Y, const float *X, int rows, int cols, void *stream,
                                 struct error *error)
{
    const struct launch_shape shape = {"softmax_naive", {rows, 1, 1}, ROW_SOFTMAX_THREADS, 0};
    if (launch_prepare((const void *)softmax_naive, &shape, error))
        return error->status;
    softmax_naive<<<launch_grid(&shape), ROW_SOFTMAX_THREADS, 0, (cudaStream_t)stream>>>(Y, X,
                                                                                         cols);
    return launch_check(&shape, error);
}
