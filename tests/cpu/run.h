/* A run of any CUDA kernel on the CPU, with host arrays: for test_cpu_kernels.c.
 *
 * Interface:
 *   struct run run = {.kernel = ADD, .cols = 100};
 *   run_open(&run);                   arrays: inputs random, outputs NaN
 *   counts = run_observe(&run);       its launches added up; cpu_counts() has each
 *   data_of(&run, "c")                what came out
 *   run_close(&run);
 */
#ifndef FLASHLAB_TESTS_CPU_RUN_H
#define FLASHLAB_TESTS_CPU_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/attention.h"
#include "cuda/cpu/cpu.h"

enum { MAX_ARRAYS = 8 };
enum kernel { ADD, MATMUL, TILED, SAFE, ONLINE, NAIVE, STANDARD, FLASH1, FLASH2, KERNELS };

struct array {
    const char *name;
    float *memory; /* owned; [pad + count] */
    int64_t count;
    bool filled;
};

/* A row of the file, and its arrays. */
struct run {
    enum kernel kernel;
    struct attention a; /* of attention kernels */
    int rows, cols, depth, tile;
    int64_t sectors[CPU_WAYS]; /* measured */
    int arrays;
    struct array array[MAX_ARRAYS];
    /* For what must be noticed: arrays that begin so many elements after a multiple of 256
     * bytes; an array that is declared too short; one that is declared unwritten. */
    int pad;
    const char *shortened, *unwritten;
};

void run_open(struct run *run);
/* Fails the test if the launcher refuses. */
struct cpu_launch_counts run_observe(const struct run *run);
void run_close(struct run *run);

/* The first element of the array of that name; NULL if the kernel has none. */
float *data_of(const struct run *run, const char *name);

#endif
