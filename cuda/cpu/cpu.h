/* The CUDA kernels on the CPU, every access to memory observed.
 *
 * Interface:
 *   cpu_begin(&(struct cpu_options){0});                forgets arrays and counts
 *   cpu_array("Q", q, bytes, CPU_FILLED); ...           all of HBM that a kernel may touch
 *   cpu_array("O", o, bytes, CPU_UNWRITTEN);
 *   launch_flash2_forward(&a, &tensors, &error);        cuda/attention.h, cuda/basic.h
 *   const struct cpu_counts *counts = cpu_counts();     one entry a launch
 *   cpu_end();                                          frees what the calls above took
 * cuda/cpu/run.h does all that for any of our kernels.
 *
 * The launchers are those of the GPU, compiled from the same files, with host addresses for
 * device addresses; they return when the kernel is done. Blocks run on all OpenMP threads. What
 * a kernel may not do stops the program, with the source line, kernel, block and thread, and
 * the other thread and its line where two are needed: see docs/cpu.md.
 *
 * Requests are counted as the hardware counts them: the n-th accesses that the lanes of a warp
 * make at one place since the warp last converged (a barrier or a shuffle) are one request. A
 * place is a source line, the array, and the kernel's line through which the pointer came
 * there: what sets two calls of tile_load() apart. Two accesses to one array on one line are
 * one place. Sectors are those of arrays that begin at a multiple of 256 bytes, wherever they
 * lie here.
 */
#ifndef FLASHLAB_CUDA_CPU_H
#define FLASHLAB_CUDA_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "core/step_log.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_MAX_LAUNCHES = 8, CPU_MAX_ARRAYS = 16, CPU_MAX_LINES = 128 };
enum cpu_content { CPU_UNWRITTEN, CPU_FILLED };
enum cpu_way { CPU_LOAD, CPU_STORE, CPU_REDUCE, CPU_WAYS };

/* 0 stands for the default everywhere. */
struct cpu_options {
    bool unobserved;      /* results only: nothing is counted or checked */
    int64_t shared_bytes; /* that a block may have; default: 227 KB, as Hopper allows */
    int64_t step_limit;   /* accesses and waits that a lane of a warp may make; default: 2^32 */
    int silent_seconds;   /* without either; default: 20 */
    struct step_log *step_log; /* gets the step records, in the simulator's order; NULL: none */
};

struct cpu_traffic {
    int64_t accesses; /* of single threads */
    int64_t requests; /* of warps */
    int64_t bytes;
    int64_t sectors;                      /* of HBM: 32 bytes each, distinct in a request */
    int64_t wavefronts, least_wavefronts; /* of shared memory: passes over its banks, and those
                                             needed if no two words shared a bank */
};

/* What happened through one line of the kernel's own file: an access that stands there, or
 * those of the function that it calls. */
struct cpu_line {
    const char *file;
    int line;
    const char *array; /* the kernel argument, as cpu_array() named it; or shared memory's */
    bool shared;
    enum cpu_way way;
    /* Lanes of a warp came here more than once more than others: in rounds of a loop that some
     * of them left out, perhaps. Requests may then be others than the hardware's. */
    bool uneven;
    struct cpu_traffic traffic;
};

struct cpu_launch_counts {
    char kernel[48];
    const char *file; /* that the kernel stands in: "cuda/kernels/flash2_forward.cu" */
    struct cpu_traffic hbm[CPU_WAYS], shared[CPU_WAYS];
    int64_t barriers, warp_barriers; /* __syncthreads(), __syncwarp(): warps that passed one */
    int64_t exchanges;               /* shuffles, votes, reductions of a warp */
    int lines;
    struct cpu_line line[CPU_MAX_LINES];
};

struct cpu_counts {
    int launches;
    struct cpu_launch_counts launch[CPU_MAX_LAUNCHES];
};

void cpu_begin(const struct cpu_options *options);
/* name is kept, not copied. At most 4 GB. */
void cpu_array(const char *name, const void *base, int64_t bytes, enum cpu_content content);
const struct cpu_counts *cpu_counts(void);
void cpu_end(void);

void cpu_traffic_add(struct cpu_traffic *sum, const struct cpu_traffic *x);
/* A launch's HBM traffic of one array, all its lines together. */
struct cpu_traffic cpu_array_traffic(const struct cpu_launch_counts *launch, const char *array,
                                     enum cpu_way way);

#ifdef __cplusplus
}
#endif

#endif
