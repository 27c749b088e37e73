/* Pointers of the kernels, by the level of memory that they point to.
 *
 * Interface:
 *   Global<const float> Q   HBM: what the hardware counts as global loads and stores
 *   Shared<float> Qi        the SRAM of one SM
 *   load4(x, Qi + 4 * n)    four floats of shared memory at once
 *
 * Both are plain pointers and cost nothing. The names mark every access that crosses to HBM, or
 * into shared memory; through them the tracing build (see steps.h) counts what crosses, and the
 * build for the CPU (see cpu/cpu.h) watches every access of the same source.
 */
#ifndef FLASHLAB_CUDA_MEMORY_H
#define FLASHLAB_CUDA_MEMORY_H

#ifdef FLASHLAB_CPU
#include "cuda/cpu/observed_memory.h"
#else

#ifdef FLASHLAB_TRACE
#include "cuda/counted_memory.h"
#else
template <class T> using Global = T *;
#endif
template <class T> using Shared = T *;

/* value <- four floats in one access of 16 bytes; at is a multiple of that. */
__device__ inline void load4(float (&value)[4], Shared<const float> at)
{
    const float4 four = *reinterpret_cast<const float4 *>(at);
    value[0] = four.x;
    value[1] = four.y;
    value[2] = four.z;
    value[3] = four.w;
}

#endif

#endif
