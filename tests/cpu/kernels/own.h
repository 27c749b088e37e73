/* Kernels of the tests' own. In the .cu files a comment, or the text itself, names the line
 * that a message must name. */
#ifndef FLASHLAB_TESTS_CPU_KERNELS_OWN_H
#define FLASHLAB_TESTS_CPU_KERNELS_OWN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* planted/transpose.cu: 32 x 32, pitch 32 or 33. */
void launch_transpose(float *to, const float *from, int pitch);

/* exchanges.cu: 11 and 10 columns of 32. */
void launch_shuffles(int *to, const int *from);
void launch_votes(int *to, const int *from);
/* Maxima and sums over 2, 4, ... 32 lanes; plain: by shuffles that the kernel makes itself. */
void launch_reductions(float *to, const float *from, bool plain);

/* counting.cu; n: rounds of a loop, or whether the silent kernel stores before it is silent. */
enum counting {
    TWO_CALLS,
    TWO_INNER_CALLS,
    LONG_LOOP,
    ENDLESS_READS,
    ENDLESS_WAITS,
    ENDLESS_SILENCE,
};
void launch_counting(enum counting kernel, float *to, const float *from, int n);
void launch_count_up(int *count, float *sum, int blocks); /* of 100 threads */
void launch_three_dims(int *to);                          /* 12 blocks of 30 threads */
/* NULL, or why cudaGetLastError() says that the launch was refused. */
const char *launch_shared(float *to, unsigned threads, unsigned grid_y, size_t bytes,
                          bool raised);

/* memory.cu: one block of 64 threads, or two; x has 64 elements. */
enum memory_use {
    /* right */
    WARP_BARRIER_ORDERS,
    ATOMICS_TOGETHER,
    TWO_INDICES,
    /* races */
    WRITES_OF_TWO_WARPS,
    WRITES_OF_ONE_WARP,
    WRITE_THEN_READ,
    WRITE_THEN_READ_IN_WARP,
    READ_THEN_WRITE,
    READ_THEN_WRITE_IN_WARP,
    SHUFFLE_BETWEEN,
    STORE_THEN_ATOMIC,
    ATOMIC_THEN_STORE,
    ATOMIC_THEN_LOAD,
    STORE_BEFORE_ATOMICS,
    /* nobody has written */
    UNWRITTEN_STATIC,
    UNWRITTEN_DYNAMIC,
    UNWRITTEN_HBM,
    UNWRITTEN_ATOMIC,
    LEFT_BY_A_BLOCK,
    /* outside, or between elements */
    STORE_BEHIND,
    LOAD_BEFORE,
    BEHIND_STATIC,
    BEHIND_ROWS,
    BEHIND_DYNAMIC,
    MISALIGNED_HBM,
    MISALIGNED_SHARED,
    /* more than there is; the block has 256 bytes of dynamic shared memory too */
    TOO_MUCH_STATIC,
    STATIC_BESIDE_DYNAMIC,
    MEMORY_USES
};
void launch_memory(enum memory_use use, float *x);

/* waits.cu: one block of 64 threads. */
enum wait {
    ENDED_LANE,
    NOT_IN_MASK,
    NOT_ITSELF_IN_MASK,
    EMPTY_MASK,
    NO_SUCH_LANE,
    TWO_MASKS,
    TWO_KINDS_OF_WAIT,
    TWO_REDUCTIONS,
    ENDED_IN_REDUCTION,
    WARP_AND_BLOCK,
    ENDED_THREAD,
    TWO_BARRIERS,
    WAITS
};
void launch_wait(enum wait wait, float *x);

/* races.cu: one block of 64 threads that follow a script, step by step. All words have been
 * written before; x has 64 elements. */
enum { SCRIPT_STEPS = 8, SCRIPT_WORDS = 8 };
enum script_step { STEP_ACCESSES, STEP_WARP_BARRIER, STEP_BLOCK_BARRIER };
enum script_way { SCRIPT_NONE, SCRIPT_LOAD, SCRIPT_LOAD4, SCRIPT_STORE, SCRIPT_ATOMIC };
struct script_access {
    enum script_way way;
    int word; /* SCRIPT_LOAD4: the four around it that lie together */
};
struct script {
    enum script_step step[SCRIPT_STEPS];
    struct script_access access[SCRIPT_STEPS][64];
};
void launch_script(const struct script *script, float *x);

/* groups.cu: blocks of up to 96 threads, which do the same. By step and thread: the lanes
 * of its group, itself too (0: the step is not its); whose value it gets; which line it takes.
 */
enum { GROUP_STEPS = 10, GROUP_BLOCKS = 3, GROUP_THREADS = 96 };
enum group_step {
    GROUP_BLOCK_BARRIER, /* of all threads */
    GROUP_WARP_BARRIER,
    GROUP_SHUFFLE,
    GROUP_TWO_SHUFFLES,
    GROUP_BALLOT,
    GROUP_SUM, /* of 32 lanes */
};
struct group_script {
    enum group_step step[GROUP_STEPS];
    int ends[GROUP_THREADS]; /* before that step */
    unsigned mask[GROUP_STEPS][GROUP_THREADS];
    int from[GROUP_STEPS][GROUP_THREADS]; /* a lane */
    bool second[GROUP_STEPS][GROUP_THREADS];
};
/* x: GROUP_THREADS for each block. */
void launch_groups(const struct group_script *script, unsigned *x, int threads);

#ifdef __cplusplus
}
#endif

#endif
