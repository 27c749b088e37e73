/* Threads of a block as fibers: what fibers.c, which runs them, and waits.c, which lets them go
 * on, both know. */
#ifndef FLASHLAB_CUDA_CPU_FIBERS_H
#define FLASHLAB_CUDA_CPU_FIBERS_H

#include "cuda/cpu/stack.h"
#include "cuda/cpu/worker.h"

enum { CPU_MAX_WARPS = CPU_MAX_THREADS / CPU_WARP };

/* PAUSED: the lane lets the others come up with it. */
enum wait { PAUSED, AT_BARRIER, AT_WARP_BARRIER, AT_EXCHANGE, AT_BUTTERFLY, DONE };

/* What a lane waits for, and where. */
struct waiting {
    enum wait wait;
    int line;
    const char *file;
    const struct cpu_butterfly *butterfly; /* NULL: none */
    unsigned mask;                         /* of the lanes, 0 where it waits for none of them */
};

struct fiber {
    struct stack stack;
    struct cpu_index index;
    int64_t operations;     /* accesses and waits so far */
    struct waiting waiting; /* where that of its warp does not say it, see struct threads */
};

/* Most warps wait for the same in all lanes. Then nobody looks at each: waiting says it for so
 * many lanes in a row, up to the last one that ran, as are alike. */
struct threads {
    struct fiber fiber[CPU_MAX_THREADS];
    struct stack scheduler;
    struct fiber *running; /* NULL: the scheduler */
    struct fiber *warp;    /* that runs, and its lanes */
    int lanes;
    unsigned ready;    /* bit k: lane k goes on */
    struct fiber *end; /* of the lanes that run one after the other; warp: some are left out */
    struct waiting waiting;
    int alike;
    struct waiting of_warp[CPU_MAX_WARPS]; /* PAUSED: that of each fiber says it */
    uint64_t passing[CPU_WARP];            /* what each lane has for those it exchanges with */
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

#endif
