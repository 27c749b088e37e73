/* refused: __shared__ on the CPU: one array a statement, in the .cu file */
#include "tests/cpu/refused/shared_in_header.h"

__global__ void sums(Global<float> to)
{
    to[threadIdx.x] = sum_of_block(1.0f);
}
