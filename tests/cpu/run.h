/* Runs of the CUDA kernels on the CPU (cuda/cpu/run.h) that end the test where they fail. */
#ifndef FLASHLAB_TESTS_CPU_RUN_H
#define FLASHLAB_TESTS_CPU_RUN_H

#include "common/csv.h"
#include "cuda/cpu/run.h"

/* The kernel and shape of a row of a table of cuda/results; scale 1 / sqrt(head_dim). */
struct cpu_run run_of_row(const struct csv *table, int row);

/* Arrays: inputs random, outputs NaN. */
void run_open(struct cpu_run *run);

/* Launches the kernel; what it did in HBM and shared memory, its launches added up. */
struct cpu_launch_counts run_observe(const struct cpu_run *run);

#endif
