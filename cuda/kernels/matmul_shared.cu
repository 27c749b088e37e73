/* Matrix product by tiles of A and B in shared memory, one thread an element of C.
 *
 * Each element that the block loads is used TILE times, so HBM traffic falls by TILE against
 * matmul_naive. But every multiply-add now reads both of its operands from shared memory, which
 * takes its place as what limits the speed: matmul_tiled gives each thread several elements.
 *
 * Rows of Aik are read four elements at a time, which nvcc would make of single reads too: so
 * written, the source says what the hardware counts. A warp covers rows of 16 or 32 threads
 * whole: no two lanes want different words of a bank.
 *
 * Twin of sim/kernels/matmul_shared.c. TILE is compiled for 16 and 32: TILE x TILE threads.
 */
#include "cuda/basic.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/steps.h"

template <int TILE>
static __global__ __launch_bounds__(TILE *TILE) void matmul_shared(Global<float> C,
                                                                   Global<const float> A,
                                                                   Global<const float> B,
                                                                   struct matmul_shape shape)
{
    __shared__ __align__(16) float tiles[2 * TILE * TILE];
    Shared<float> Aik = tiles, Bkj = tiles + TILE * TILE;
    const int i = (int)blockIdx.y, j = (int)blockIdx.x;
    const int ty = (int)threadIdx.y, tx = (int)threadIdx.x;
    const int row = i * TILE + ty, col = j * TILE + tx;
    const int Tk = (shape.depth + TILE - 1) / TILE;
    float Cij = 0.0f;
    STEPS_BEGIN(j, i, 0);

    for (int k = 0; k < Tk; k++) {
        const int a_col = k * TILE + tx, b_row = k * TILE + ty;
        __syncthreads(); /* all have read the previous Aik and Bkj */
        Aik[ty * TILE + tx] = row < shape.rows && a_col < shape.depth
                                  ? A[(int64_t)row * shape.depth + a_col]
                                  : 0.0f;
        Bkj[ty * TILE + tx] = b_row < shape.depth && col < shape.cols
                                  ? B[(int64_t)b_row * shape.cols + col]
                                  : 0.0f;
        __syncthreads();
        STEP("load Aik, Bkj", i, k);
#pragma unroll
        for (int n = 0; n < TILE; n += 4) {
            float a[4];
            load4(a, Aik + ty * TILE + n);
            for (int m = 0; m < 4; m++)
                Cij = fmaf(a[m], Bkj[(n + m) * TILE + tx], Cij);
        }
        STEP("Cij = Cij + Aik Bkj", i, k);
    }
    if (row < shape.rows && col < shape.cols)
        C[(int64_t)row * shape.cols + col] = Cij;
    STEP("store Cij", i, -1);
}

template <int TILE>
static enum status launch(float *C, const float *A, const float *B,
                          const struct matmul_shape *shape, void *stream, struct error *error)
{
    const struct launch_shape launch = {
        "matmul_shared",
        {launch_blocks(shape->cols, TILE), launch_blocks(shape->rows, TILE), 1},
        TILE * TILE,
        0};
    if (launch_prepare((const void *)matmul_shared<TILE>, &launch, error))
        return error->status;
    matmul_shared<TILE>
        <<<launch_grid(&launch), dim3(TILE, TILE), 0, (cudaStream_t)stream>>>(C, A, B, *shape);
    return launch_check(&launch, error);
}

enum status launch_matmul_shared(float *C, const float *A, const float *B,
                                 const struct matmul_shape *shape, int tile, void *stream,
                                 struct error *error)
{
    switch (tile) {
    case 16:
        return launch<16>(C, A, B, shape, stream, error);
    case 32:
        return launch<32>(C, A, B, shape, stream, error);
    default:
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "tile %d: matmul_shared is compiled for 16 and 32", tile);
    }
}
