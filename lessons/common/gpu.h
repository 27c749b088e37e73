/* The third column: our CUDA kernels, on this machine's GPU or, from the same source, on its
 * CPU.
 *
 * The GPU is reached through the shared library that `make cuda` builds, loaded when it is
 * first asked for: programs need no CUDA to be built or run. The CPU's kernels (cuda/cpu) are
 * linked.
 */
#ifndef FLASHLAB_LESSONS_GPU_H
#define FLASHLAB_LESSONS_GPU_H

#include "cuda/cpu/run.h"
#include "cuda/observe.h"

/* How to run a kernel. */
struct gpu_plan {
    uint64_t seed;   /* of the inputs: see random_inputs.h */
    bool steps;      /* trace */
    const char *ncu; /* NULL: counters are read in the run; or what `ncu --csv` wrote of it */
    bool cpu;        /* execute the source on the CPU */
    const struct machine *machine; /* whose limits hold on the CPU; NULL: Hopper's */
};

/* Runs the algorithm as planned. Without the library for the GPU the message says how to build
 * it. */
enum status gpu_run(struct observation *seen, enum algorithm algorithm,
                    const struct attention *a, const struct gpu_plan *plan,
                    struct error *error);

/* Runs one of the other kernels on the GPU, on the inputs that are in the run's arrays; the
 * result goes into the last of them. */
enum status gpu_run_basic(struct observation *seen, const struct cpu_run *run,
                          struct error *error);

#endif
