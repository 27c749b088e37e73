/* What the kernels call, unseen: between the source, which believes that this is CUDA, and the
 * threads and counters behind it. */
#ifndef FLASHLAB_CUDA_CPU_ENGINE_H
#define FLASHLAB_CUDA_CPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/cpu/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_WARP = 32, CPU_MAX_THREADS = 1024 };

struct cpu_index {
    unsigned x, y, z;
};

/* The thread that is running. One of each OpenMP thread. */
struct cpu_now {
    struct cpu_index thread, block, block_dim, grid_dim;
    const char *kernel, *file; /* as struct cpu_grid has them */
    int lane, warp;            /* of the thread in its warp, and of that in the block */
    int64_t launch;            /* its number */
    bool observed, traced;     /* traced: steps are recorded */
    /* What the lanes of its warp have passed at the last exchange of each; and, by lane, of
     * which lanes it may see that. */
    uint64_t passed[CPU_WARP];
    unsigned passed_mask[CPU_WARP];
    float met[CPU_WARP]; /* at the last butterfly, see cpu_meet() */
};
extern __thread struct cpu_now cpu_now;

/* Of the running thread in its block. */
static inline unsigned cpu_thread_number(void)
{
    return (unsigned)(cpu_now.warp * CPU_WARP + cpu_now.lane);
}

struct cpu_grid {
    const char *kernel, *file; /* of its launch: the kernel's own */
    const void *function;      /* the kernel's address, as the attributes were set for it */
    struct cpu_index grid, block;
    size_t shared_bytes; /* dynamic */
    /* Threads of the kernel, one after the other: each ends in cpu_end_thread(). Returns when
     * cpu_now.launch is another. */
    void (*threads)(const void *context);
    const void *context;
};

/* Runs all blocks, unless a GPU would refuse the launch. */
void cpu_run_grid(const struct cpu_grid *grid);
/* Did it refuse the last one? Tells it once; cudaGetErrorString() says why. */
bool cpu_launch_refused(void);
/* What a block of the kernel may have of dynamic shared memory from now on. */
void cpu_raise_shared(const void *function, int64_t bytes);
int64_t cpu_shared_limit(void);

/* Where a kernel accesses memory, and how the pointer came there: the line of the kernel's own
 * file on which it was last moved or handed on (0: none) times 2^16, plus the last such line of
 * a header since then. */
struct cpu_place {
    const char *file;
    int line, origin;
};

/* What an access is and where, in one number: origin, line, bytes, shared or not, way. */
enum { CPU_SITE_SHARED = 4 };
static inline uint64_t cpu_site(enum cpu_way way, bool shared, int bytes, int line, int origin)
{
    return (uint64_t)(uint32_t)origin << 32 | (uint64_t)line << 8 | (uint64_t)bytes << 3 |
           (shared ? CPU_SITE_SHARED : 0) | (uint64_t)way;
}

/* Before each access. Three arguments, which stay in registers. */
void cpu_access(const void *at, uint64_t site, const char *file);

/* The block's shared memory: dynamic; or static, an array of the kernel that key names. Both
 * are multiples of 256 bytes. */
void *cpu_shared_dynamic(void);
void *cpu_shared_static(const char *name, int64_t bytes, int key);

void cpu_end_thread(void);

/* __syncthreads() and __syncwarp(). */
void cpu_sync_block(const char *file, int line);
void cpu_sync_warp(unsigned mask, const char *file, int line);
/* Shuffles, votes and reductions: every lane of the mask passes its bits; then each may see
 * what the others passed, until it passes something again. */
void cpu_exchange(unsigned mask, uint64_t bits, const char *file, int line);
/* Several shuffles of a warp at one wait, of which it is known what each lane does with what it
 * gets. Each leaves its value in cpu_now.met[] and finds there what it has after the last; all
 * come with the same butterfly. */
struct cpu_butterfly {
    void (*combine)(float x[CPU_WARP]);
    int shuffles;
};
void cpu_meet(const struct cpu_butterfly *butterfly, const char *file, int line);

/* Step marks, see cuda/steps.h. A team is the threads that do the work of one block of the
 * simulator, at x, y, z of its grid. */
struct cpu_team {
    int x, y, z;
    int number; /* of the calling thread's next step */
};
struct cpu_step_rows; /* what a step says of the rows of a tile */
/* While steps are recorded; NULL: the step has no rows. */
struct cpu_step_rows *cpu_step(struct cpu_team *team, const char *name, int i, int j, int rows);
/* By the threads that have them. NaN stands for what a step does not know. */
void cpu_step_row(struct cpu_step_rows *rows, int row, float m, float l);
void cpu_step_square(struct cpu_step_rows *rows, int row, double square);

/* Stops the program, naming the running thread. */
void cpu_stop(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif
