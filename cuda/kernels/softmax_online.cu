/* Online softmax (Milakov & Gimelshein 2018, Algorithm 3): two passes over each row.
 *
 * Maximum and sum are kept together: when the maximum grows, the sum so far is rescaled. Every
 * element is loaded twice and stored once. One thread block a row; each thread keeps the
 * running sum of its elements, and those are merged at the end of the pass. Loops make the same
 * number of rounds in every thread, so that no request is split.
 *
 * Twin of sim/kernels/softmax_online.c.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/row_softmax.h"
#include "cuda/steps.h"

static __global__
__launch_bounds__(ROW_SOFTMAX_THREADS) void softmax_online(Global<float> Y,
                                                           Global<const float> X, int cols)
{
    __shared__ float maxima[ROW_SOFTMAX_WARPS];
    __shared__ float sums[ROW_SOFTMAX_WARPS];
    const int row = (int)blockIdx.x, thread = (int)threadIdx.x;
    X += (int64_t)row * cols;
    Y += (int64_t)row * cols;
    STEPS_BEGIN(row, 0, 0);

    float m = -INFINITY, l = 0.0f;
#pragma unroll 4
    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS) {
        const float x = first + thread < cols ? X[first + thread] : -INFINITY;
        /* one of the factors exp(m - m_new) and exp(x - m_new) is 1, and x = -inf adds nothing:
         * (-inf) - (-inf) does not get into l */
        const float factor = expf(-fabsf(x - m));
        const float sum = x > m ? l * factor + 1.0f : l + factor;
        l = x == -INFINITY ? l : sum;
        m = fmaxf(m, x);
    }
    const float own_m = m;
    m = block_max(m, maxima);
    l = block_sum(l * exp_relative(own_m, m), sums);
    STEP("m, l of x", row, -1);

    for (int first = 0; first < cols; first += ROW_SOFTMAX_THREADS)
        if (first + thread < cols)
            Y[first + thread] = l == 0.0f ? 0.0f : exp_relative(X[first + thread], m) / l;
    STEP("y = exp(x - m) / l", row, -1);
}

enum status launch_softmax_online(float *Y, const float *X, int rows, int cols, void *stream,
                                  struct error *error)
{
    const struct launch_shape shape = {"softmax_online", {rows, 1, 1}, ROW_SOFTMAX_THREADS, 0};
    if (launch_prepare((const void *)softmax_online, &shape, error))
        return error->status;
    softmax_online<<<launch_grid(&shape), ROW_SOFTMAX_THREADS, 0, (cudaStream_t)stream>>>(Y, X,
                                                                                          cols);
    return launch_check(&shape, error);
}
