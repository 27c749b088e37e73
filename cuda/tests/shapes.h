/* The shapes that every kernel is tested on.
 *
 * Interface:
 *   for (int n = 0; n < shapes_count(kernel); n++)
 *       struct run run = shape_of(kernel, n);
 * A table of chosen shapes, then seeded random ones. The environment variable FLASHLAB_SHAPES
 * limits how many of each kernel, for slow tools such as compute-sanitizer.
 */
#ifndef FLASHLAB_CUDA_TESTS_SHAPES_H
#define FLASHLAB_CUDA_TESTS_SHAPES_H

#include "run.h"

int shapes_count(enum kernel kernel);
struct run shape_of(enum kernel kernel, int n);

/* Those that are larger than L2, or long: for counters, not for references on the CPU. */
int large_shapes_count(enum kernel kernel);
struct run large_shape(enum kernel kernel, int n);

#endif
