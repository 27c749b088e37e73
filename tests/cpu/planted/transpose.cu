/* A tile of 32 x 32 transposed through shared memory, its rows 32 or 33 elements apart: with 32
 * the elements of a column share one bank. */
#include "tests/cpu/kernels/own.h"

#include "cuda/memory.h"

template <int PITCH>
static __global__ void transpose(Global<float> to, Global<const float> from)
{
    __shared__ float tile[32][PITCH];
    const int row = (int)threadIdx.y, col = (int)threadIdx.x;
    tile[row][col] = from[32 * row + col]; /* by rows */
    __syncthreads();
    to[32 * row + col] = tile[col][row]; /* by columns */
}

void launch_transpose(float *to, const float *from, int pitch)
{
    if (pitch == 32)
        transpose<32><<<1, dim3(32, 32)>>>(to, from);
    else
        transpose<33><<<1, dim3(32, 32)>>>(to, from);
}
