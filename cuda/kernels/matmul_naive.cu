/* Matrix product, one thread an element of C, every operand from HBM.
 *
 * A warp computes 32 neighbours of one row of C: for each k its lanes read the same element of
 * A (one sector) and 32 consecutive elements of B. Nothing is reused on chip.
 *
 * Twin of sim/kernels/matmul_naive.c.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/steps.h"

enum { BLOCK_COLS = 32, BLOCK_ROWS = 4 };

static __global__ __launch_bounds__(BLOCK_COLS *BLOCK_ROWS) void matmul_naive(
    Global<float> C, Global<const float> A, Global<const float> B, struct matmul_shape shape)
{
    const int col = (int)(blockIdx.x * BLOCK_COLS + threadIdx.x);
    const int row = (int)(blockIdx.y * BLOCK_ROWS + threadIdx.y);
    if (row >= shape.rows || col >= shape.cols)
        return;
    float sum = 0.0f;
    STEPS_BEGIN((int)blockIdx.x, row, 0);
    for (int k = 0; k < shape.depth; k++)
        sum = fmaf(A[(int64_t)row * shape.depth + k], B[(int64_t)k * shape.cols + col], sum);
    STEP("sum of Aik Bkj", row, (int)blockIdx.x);
    C[(int64_t)row * shape.cols + col] = sum;
    STEP("store Cij", row, (int)blockIdx.x);
}

enum status launch_matmul_naive(float *C, const float *A, const float *B,
                                const struct matmul_shape *shape, void *stream,
                                struct error *error)
{
    const struct launch_shape launch = {
        "matmul_naive",
        {launch_blocks(shape->cols, BLOCK_COLS), launch_blocks(shape->rows, BLOCK_ROWS), 1},
        BLOCK_COLS * BLOCK_ROWS,
        0};
    if (launch_prepare((const void *)matmul_naive, &launch, error))
        return error->status;
    matmul_naive<<<launch_grid(&launch), dim3(BLOCK_COLS, BLOCK_ROWS), 0,
                   (cudaStream_t)stream>>>(C, A, B, *shape);
    return launch_check(&launch, error);
}
