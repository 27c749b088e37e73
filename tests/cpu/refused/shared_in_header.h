/* Shared memory that translate.sed does not see. */
#ifndef FLASHLAB_TESTS_CPU_REFUSED_SHARED_IN_HEADER_H
#define FLASHLAB_TESTS_CPU_REFUSED_SHARED_IN_HEADER_H

__device__ inline float sum_of_block(float x)
{
    __shared__ float part[32];
    part[threadIdx.x] = x;
    __syncthreads();
    return part[0] + part[1];
}

#endif
