/* tests/common/transpositions.h says what each lane accesses. A warp's loop ends where its
 * requests would have no lane inside the matrix: such an instruction would still be counted. */
#include "transposition_kernels.h"

#include "cuda/error.h"

enum { TILE = TRANSPOSITION_TILE, WARPS = TRANSPOSITION_WARPS };

template <int KIND> static __device__ int tile_word(int row, int col)
{
    return KIND == TRANSPOSE_PADDED     ? row * (TILE + 1) + col
           : KIND == TRANSPOSE_SWIZZLED ? row * TILE + (col ^ row)
                                        : row * TILE + col;
}

template <int KIND>
static __global__ void strided_kernel(float *B, const float *A, int rows, int cols)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int row = (int)blockIdx.y * TILE, col = (int)blockIdx.x * TILE;
    const int inside_rows = min(TILE, rows - row), inside_cols = min(TILE, cols - col);
    constexpr bool by_rows = KIND == TRANSPOSE_STRIDED_STORE;
    const int outer = by_rows ? inside_rows : inside_cols;
    const int inner = by_rows ? inside_cols : inside_rows;
#pragma unroll 1
    for (int i = warp; i < outer; i += WARPS) {
        const int r = row + (by_rows ? i : lane), c = col + (by_rows ? lane : i);
        if (lane < inner)
            B[c * rows + r] = A[r * cols + c];
    }
}

/* The tile is volatile so that each access stays an instruction of its own. */
template <int KIND, int VECTOR>
static __global__ void tiled_kernel(float *B, const float *A, int rows, int cols)
{
    struct alignas(4 * VECTOR) vector {
        float x[VECTOR];
    };
    __shared__ volatile float tile[TILE * (TILE + 1)];
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int row = (int)blockIdx.y * TILE, col = (int)blockIdx.x * TILE;
    const int inside_rows = min(TILE, rows - row), inside_cols = min(TILE, cols - col);
    constexpr int lanes = TILE / VECTOR; /* that share a row */
    const int j = lane % lanes * VECTOR;
#pragma unroll 1
    for (int first = warp * VECTOR; first < inside_rows; first += WARPS * VECTOR) {
        const int i = first + lane / lanes;
        if (i < inside_rows && j < inside_cols) {
            const vector v = *(const vector *)&A[(row + i) * cols + col + j];
            for (int k = 0; k < VECTOR; k++)
                tile[tile_word<KIND>(i, j + k)] = v.x[k];
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int first = warp * VECTOR; first < inside_cols; first += WARPS * VECTOR) {
        const int i = first + lane / lanes;
        if (i < inside_cols && j < inside_rows) {
            vector v;
            for (int k = 0; k < VECTOR; k++)
                v.x[k] = tile[tile_word<KIND>(j + k, i)];
            *(vector *)&B[(col + i) * rows + row + j] = v;
        }
    }
}

typedef void kernel(float *B, const float *A, int rows, int cols);

static kernel *kernel_of(const struct transposition *t)
{
    static kernel *const kernels[TRANSPOSITION_KINDS][2] = {
        {strided_kernel<TRANSPOSE_STRIDED_STORE>, NULL},
        {strided_kernel<TRANSPOSE_STRIDED_LOAD>, NULL},
        {tiled_kernel<TRANSPOSE_UNPADDED, 1>, tiled_kernel<TRANSPOSE_UNPADDED, 4>},
        {tiled_kernel<TRANSPOSE_PADDED, 1>, tiled_kernel<TRANSPOSE_PADDED, 4>},
        {tiled_kernel<TRANSPOSE_SWIZZLED, 1>, tiled_kernel<TRANSPOSE_SWIZZLED, 4>},
    };
    return kernels[t->kind][t->bytes == 16];
}

enum status launch_transposition(const struct transposition *t, float *B, const float *A,
                                 struct error *error)
{
    const dim3 grid((t->cols + TILE - 1) / TILE, (t->rows + TILE - 1) / TILE);
    kernel_of(t)<<<grid, 32 * WARPS>>>(B, A, t->rows, t->cols);
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}
