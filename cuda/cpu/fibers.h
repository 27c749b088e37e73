/* Threads of a block as fibers: what fibers.c, which runs them, and waits.c, which lets them go
 * on, both know. */
#ifndef FLASHLAB_CUDA_CPU_FIBERS_H
#define FLASHLAB_CUDA_CPU_FIBERS_H

#include "cuda/cpu/stack.h"
#include "cuda/cpu/worker.h"

/* PAUSED: the lane lets the others come up with it. */
enum wait { PAUSED, AT_BARRIER, AT_WARP_BARRIER, AT_EXCHANGE, DONE };

struct fiber {
    struct stack stack;
    struct cpu_index index;
    /* What it waits for, and where. */
    enum wait wait;
    unsigned mask;
    int line;
    const char *file;
    const struct cpu_reduction *reduction; /* of the exchange; NULL: none */
    int64_t operations;                    /* accesses and waits so far */
} __attribute__((aligned(64)));

struct threads {
    struct fiber fiber[CPU_MAX_THREADS];
    struct stack scheduler;
    struct fiber *running;      /* NULL: the scheduler */
    struct fiber *warp;         /* that runs, and its lanes */
    int first, lanes;           /* number of its first thread */
    unsigned ready;             /* bit k: lane k runs, or will before the warp has converged */
    uint64_t passing[CPU_WARP]; /* what each lane has for those that it exchanges with */
    const struct cpu_grid *grid;
    /* Why the running fiber stops the program; file NULL: it does not. */
    const char *stop_file;
    int stop_line;
    char stop_text[512];
};

/* waits.c. All lanes of the running warp wait: true if some go on, which are then ready; false
 * if all have reached the block's barrier or their end. */
bool cpu_release_warp(struct threads *threads);
/* So have all warps: true if the block goes on, for all of its threads have reached the same
 * barrier. */
bool cpu_pass_barrier(const struct fiber *fibers, int threads);

#endif
