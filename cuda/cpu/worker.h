/* What an OpenMP thread has to run blocks: for the files of cuda/cpu only. */
#ifndef FLASHLAB_CUDA_CPU_WORKER_H
#define FLASHLAB_CUDA_CPU_WORKER_H

#include "cuda/cpu/access.h"

enum {
    CPU_MAX_STATIC = 15,
    /* Dynamic shared memory, then static: more than any GPU has of each. */
    CPU_SHARED_HALF = 256 * 1024,
    CPU_MAX_STEP_ROWS = 256,
};

/* A piece of memory with a name: an array of HBM, or of the block's shared memory. */
struct cpu_array {
    const char *name;
    const char *base;
    int64_t bytes;
    unsigned char *written; /* by word; HBM only; owned */
    int key;                /* static shared memory only */
};

struct worker {
    bool in_lane; /* a thread of a kernel is running */

    /* access.c, requests.c */
    int places;
    struct cpu_place place[CPU_MAX_PLACES];
    int touches; /* places with accesses that are not requests yet */
    struct cpu_place *touched[CPU_MAX_PLACES];
    int64_t rounds; /* how often the lanes of a warp began to run */
    int64_t read_bytes[CPU_MAX_THREADS], written_bytes[CPU_MAX_THREADS]; /* HBM, of the block */
    struct cpu_launch_counts counts;

    /* shared.c */
    char *shared;
    struct cpu_word *words;
    int regions; /* the dynamic one, then static ones */
    struct cpu_array region[1 + CPU_MAX_STATIC];

    /* steps.c */
    struct step_list *steps;
};

extern __thread struct worker *cpu_worker;
extern struct cpu_options cpu_options; /* no zeros */

/* fibers.c: runs all blocks of a grid that is right; the running lane lets the others come up
 * with it. */
void cpu_run_threads(const struct cpu_grid *grid);
void cpu_pause(const char *file, int line);

/* arrays.c. NULL: none. */
const struct cpu_array *cpu_array_at(const void *at, int bytes);
const struct cpu_array *cpu_array_before(const void *at);
struct cpu_launch_counts *cpu_launch_begin(const char *kernel, const char *file);
/* Adds a worker's counts to those of the launch. */
void cpu_counts_join(struct cpu_launch_counts *launch, const struct worker *worker);

/* access.c: the worker begins a launch. */
void cpu_access_begin(struct worker *worker);

/* requests.c: the warp has converged, so that what is pending becomes requests. Returns how
 * many accesses a lane has made at most. */
uint32_t cpu_requests_merge(struct worker *worker);
/* The place has nothing pending. */
void cpu_requests_clear(struct cpu_place *place);

/* shared.c */
void cpu_shared_make(struct worker *worker);
void cpu_shared_block(struct worker *worker, size_t dynamic_bytes); /* a block begins */
/* Is the access right: written before, no race? offset: in the place's array. */
void cpu_shared_check(struct worker *worker, uint32_t offset, const struct cpu_place *place);
/* A warp goes on after a wait that orders memory; all warps have reached a barrier. */
static inline void cpu_shared_stretch(void)
{
    cpu_now.stamp++;
}
static inline void cpu_shared_barrier(void)
{
    cpu_now.epoch_stamp = ++cpu_now.stamp;
}

/* steps.c: a block begins; a worker has run its blocks of a launch; so have all, and the steps
 * go to the log in order. */
void cpu_steps_block(struct worker *worker);
void cpu_steps_join(struct worker *worker);
void cpu_steps_end(const char *kernel);

/* watchdog.c: stops the program if a worker does nothing for too long. */
void cpu_watch_begin(void);
void cpu_watch_worker(const struct worker *worker, const struct cpu_now *now);
void cpu_watch_end(void);

/* grid.c: " (called at FILE:LINE)", the kernel's own line through which a place in a header was
 * reached; empty where that is not known. */
struct called_text {
    char text[128];
};
struct called_text cpu_called_at(const struct cpu_where *where);
/* A path of a source as the repository has it. */
const char *cpu_path(const char *file);
/* check_failed() with such paths. */
void cpu_fail(const struct cpu_now *now, const char *file, int line, const char *text)
    __attribute__((noreturn));

#endif
