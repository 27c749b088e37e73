/* Threads of a block as fibers: what fibers.c, which runs them, and waits.c, which lets them go
 * on, both know. */
#ifndef FLASHLAB_CUDA_CPU_FIBERS_H
#define FLASHLAB_CUDA_CPU_FIBERS_H

#include "cuda/cpu/wait.h"
#include "cuda/cpu/worker.h"

enum { CPU_MAX_WARPS = CPU_MAX_THREADS / CPU_WARP };

struct threads {
    struct cpu_fiber fiber[CPU_MAX_THREADS];
    struct cpu_stack scheduler;
    struct cpu_fiber *warp; /* that runs, and its lanes */
    int lanes;
    unsigned ready; /* bit k: lane k goes on */
    /* CPU_PAUSED: that of each fiber says it */
    struct cpu_waiting of_warp[CPU_MAX_WARPS];
    int64_t operations[CPU_MAX_THREADS]; /* accesses and waits so far */
    const struct cpu_grid *grid;
    /* Why the running fiber stops the program; file NULL: it does not. */
    const char *stop_file;
    int stop_line;
    char stop_text[512];
};

/* waits.c. All lanes of the running warp wait: true if some go on, which are then ready; false
 * if all have reached the block's barrier or their end. */
bool cpu_release_warp(struct threads *threads);
/* So have all warps of a block of count threads: true if it goes on, for all have reached the
 * same barrier. */
bool cpu_pass_barrier(struct threads *threads, int count);
/* What a lane of the running warp waits for, before it is released. */
const struct cpu_waiting *cpu_waiting_of(const struct threads *threads, int lane);

#endif
