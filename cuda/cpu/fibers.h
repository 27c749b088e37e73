/* Threads of a block as fibers: what fibers.c, which runs them, and waits.c, which lets them go
 * on, both know. */
#ifndef FLASHLAB_CUDA_CPU_FIBERS_H
#define FLASHLAB_CUDA_CPU_FIBERS_H

#include "cuda/cpu/wait.h"
#include "cuda/cpu/worker.h"

enum { CPU_MAX_WARPS = CPU_MAX_THREADS / CPU_WARP };

/* Its lanes, which lie at the end if they are fewer than 32; and behind the last one what runs
 * when all of them wait. */
struct cpu_warp_fibers {
    struct cpu_fiber lane[CPU_WARP], scheduler;
};

struct threads {
    struct cpu_warp_fibers fibers[CPU_MAX_WARPS + 1]; /* one more, to prefetch the next of */
    int count;                                        /* of the threads of a block */
    struct cpu_fiber *warp;                           /* that runs: its first lane */
    int lanes;
    unsigned ready; /* bit k: lane k goes on */
    /* CPU_PAUSED: that of each fiber says it */
    struct cpu_waiting of_warp[CPU_MAX_WARPS];
    int64_t operations[CPU_MAX_WARPS]; /* accesses and waits of a lane so far, at most */
    const struct cpu_grid *grid;
    /* Why the running fiber stops the program; file NULL: it does not. */
    const char *stop_file;
    int stop_line;
    char stop_text[512];
};

static inline int cpu_lanes_of(const struct threads *threads, int warp)
{
    const int left = threads->count - warp * CPU_WARP;
    return left < CPU_WARP ? left : CPU_WARP;
}
static inline struct cpu_fiber *cpu_first_lane(struct threads *threads, int warp)
{
    return &threads->fibers[warp].lane[CPU_WARP - cpu_lanes_of(threads, warp)];
}
static inline struct cpu_fiber *cpu_fiber_of(struct threads *threads, int n)
{
    return &cpu_first_lane(threads, n / CPU_WARP)[n % CPU_WARP];
}

/* waits.c. All lanes of the running warp wait: true if some go on, which are then ready; false
 * if all have reached the block's barrier or their end. */
bool cpu_release_warp(struct threads *threads);
/* So have all warps of the block: true if it goes on, for all have reached the same barrier. */
bool cpu_pass_barrier(struct threads *threads);
/* What a lane of the running warp waits for, before it is released. */
const struct cpu_waiting *cpu_waiting_of(const struct threads *threads, int lane);

#endif
