/* Pointers of the kernels, by the level of memory that they point to.
 *
 * Interface:
 *   Global<const float> Q   HBM: what the hardware counts as global loads and stores
 *   Shared<float> Qi        the SRAM of one SM
 *
 * Under nvcc both are plain pointers and cost nothing. The names mark every access that crosses
 * to HBM, and let another compiler give the same source pointers that observe accesses.
 */
#ifndef FLASHLAB_CUDA_MEMORY_H
#define FLASHLAB_CUDA_MEMORY_H

template <class T> using Global = T *;
template <class T> using Shared = T *;

#endif
