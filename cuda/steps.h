/* Step marks of the kernels: the ends of the steps of an algorithm.
 *
 * STEP("load Qi", i, -1) stands where the simulated twin calls block_step(b, "load Qi", i, -1):
 * same name, same order, same Q tile i and K/V tile j. It generates no code. A test holds the
 * lists of both twins against each other.
 */
#ifndef FLASHLAB_CUDA_STEPS_H
#define FLASHLAB_CUDA_STEPS_H

#define STEP(name, i, j) ((void)(i), (void)(j))

#endif
