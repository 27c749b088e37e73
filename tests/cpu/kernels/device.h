/* A function that reads what it is given, and one that calls it from two lines. */
#ifndef FLASHLAB_TESTS_CPU_KERNELS_DEVICE_H
#define FLASHLAB_TESTS_CPU_KERNELS_DEVICE_H

#include "cuda/memory.h"

__device__ inline float first_of(Global<const float> x)
{
    return x[0]; /* of whoever calls */
}
__device__ inline float first_of_either(Global<const float> x, bool second)
{
    if (second)
        return first_of(x);
    return first_of(x);
}

#endif
