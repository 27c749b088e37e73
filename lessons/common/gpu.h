/* The GPU column, where there is a GPU: cuda/observe.h through the shared library that `make
 * cuda` builds, loaded when it is first asked for. Programs need no CUDA to be built or run. */
#ifndef FLASHLAB_LESSONS_GPU_H
#define FLASHLAB_LESSONS_GPU_H

#include "cuda/observe.h"

/* How to run a kernel. */
struct gpu_plan {
    uint64_t seed;   /* of the inputs: see random_inputs.h */
    bool steps;      /* trace */
    const char *ncu; /* NULL: counters are read in the run; or what `ncu --csv` wrote of it */
};

/* Runs the algorithm on this machine's GPU. Without the library the message says how to build
 * it.
 */
enum status gpu_run(struct observation *seen, enum algorithm algorithm,
                    const struct attention *a, const struct gpu_plan *plan,
                    struct error *error);

#endif
