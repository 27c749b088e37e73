/* What the kernels call, unseen: between the source, which believes that this is CUDA, and the
 * threads and counters behind it. */
#ifndef FLASHLAB_CUDA_CPU_ENGINE_H
#define FLASHLAB_CUDA_CPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/cpu/cpu.h"
#include "cuda/cpu/stack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Part of what calls it: the processor does not foresee where a function returns to that has
 * waited, for those of other threads have been called since. */
#define CPU_PART __attribute__((always_inline))
#define CPU_INLINE static inline CPU_PART

/* For what a compiler would not guess, so that most accesses and waits jump nowhere. */
#define CPU_LIKELY(x) __builtin_expect(!!(x), 1)

enum {
    CPU_WARP = 32,
    CPU_MAX_THREADS = 1024,
    CPU_SLOT_BITS = 10, /* of struct cpu_now's slots */
    CPU_STATICS = 16,
    CPU_MAX_PLACES = 256, /* of accesses in a kernel: struct cpu_word has 8 bits for one */
};

struct cpu_index {
    unsigned x, y, z;
};

/* CPU_PAUSED: the lane lets the others come up with it. */
enum cpu_wait {
    CPU_PAUSED,
    CPU_AT_BARRIER,
    CPU_AT_WARP_BARRIER,
    CPU_AT_EXCHANGE,
    CPU_AT_BUTTERFLY,
    CPU_DONE
};

/* What a lane waits for, and where. */
struct cpu_waiting {
    uint32_t what; /* line, the butterfly's number (0: none), enum cpu_wait: see cpu_what() */
    unsigned mask; /* of the lanes, 0 where it waits for none of them */
    const char *file;
    const struct cpu_butterfly *butterfly; /* NULL: none */
};

static inline uint32_t cpu_what(enum cpu_wait wait, unsigned number, int line)
{
    return (uint32_t)line << 8 | number << 3 | (uint32_t)wait;
}
static inline enum cpu_wait cpu_wait_of(const struct cpu_waiting *waiting)
{
    return (enum cpu_wait)(waiting->what & 7);
}
static inline int cpu_line_of(const struct cpu_waiting *waiting)
{
    return (int)(waiting->what >> 8);
}

/* A thread of a block, in as few cache lines as can be. */
struct __attribute__((aligned(64))) cpu_fiber {
    struct cpu_stack stack;
    struct cpu_index index;
    struct cpu_waiting waiting; /* where that of its warp does not say it, see struct cpu_now */
};

/* The thread that is running. One of each OpenMP thread. */
struct cpu_now {
    struct cpu_fiber *running;
    /* Most warps wait for the same in all lanes. Then nobody looks at each: waiting says it for
     * those from the lane alike up to the last one that ran. What nobody waits for, while some
     * lanes are left out. */
    struct cpu_waiting waiting;
    int alike;
    int lane, warp; /* of the thread in its warp, and of that in the block */
    struct cpu_index block, block_dim, grid_dim;
    const char *kernel, *file; /* as struct cpu_grid has them */
    int64_t launch;            /* its number */
    bool observed, traced;     /* traced: steps are recorded */

    /* Where the last access was, and where one of that site was last, see cpu_slot(). */
    struct cpu_place *last, *slot[1 << CPU_SLOT_BITS];
    /* The block's static arrays, by key % CPU_STATICS the last one asked for; key 0: none. */
    struct {
        int key;
        void *base;
    } statics[CPU_STATICS];
    /* Of shared memory: see struct cpu_word. Stamps now, when the block began, and when its
     * last barrier was passed. */
    uint32_t stamp, block_stamp, epoch_stamp;

    uint64_t passing[CPU_WARP]; /* what each lane has for those it exchanges with */
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

/* The block's shared memory: dynamic; or static, an array of the kernel that key names. Both
 * are multiples of 256 bytes. */
void *cpu_shared_dynamic(void);
void *cpu_shared_static(const char *name, int64_t bytes, int key);

/* Several shuffles of a warp at one wait, of which it is known what each lane does with what it
 * gets. */
struct cpu_butterfly {
    void (*combine)(float x[CPU_WARP]);
    unsigned shuffles, number; /* number: another one for each, 1 to 31 */
};

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
