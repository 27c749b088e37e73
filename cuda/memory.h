/* Pointers of the kernels, by the level of memory that they point to.
 *
 * Interface:
 *   Global<const float> Q   HBM: what the hardware counts as global loads and stores
 *   Shared<float> Qi        the SRAM of one SM
 *
 * Both are plain pointers and cost nothing. The names mark every access that crosses to HBM,
 * and let the tracing build (see steps.h) and the build for the CPU (see cpu/cpu.h) count
 * those of the same source.
 */
#ifndef FLASHLAB_CUDA_MEMORY_H
#define FLASHLAB_CUDA_MEMORY_H

#ifdef FLASHLAB_TRACE
#include "cuda/counted_memory.h"
#elif defined FLASHLAB_CPU
#include "cuda/cpu/observed_memory.h"
#else
template <class T> using Global = T *;
#endif
template <class T> using Shared = T *;

#endif
