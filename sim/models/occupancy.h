/* Occupancy: how many blocks of a kernel an SM holds at once, and what limits them.
 *
 * Interface:
 *   const struct sm_limits *sm = sm_limits_of_machine("H200");
 *   const struct block_needs needs = {.threads = 256, .registers = 128, .shared_bytes = 33280};
 *   const struct occupancy o = occupancy_of(sm, &needs);
 *   o.blocks, o.warps of sm_warps(sm), occupancy_limit_name(o.limit)
 *
 * An SM gives out its resources in units: registers to warps, 256 at a time, in four partitions
 * of which each has its quarter of the register file and takes whole warps; shared memory to
 * blocks. From compute capability 8.0 on each block also costs 1 KB that the system keeps
 * there. Rules: the occupancy calculator of the CUDA Toolkit (cuda_occupancy.h).
 */
#ifndef FLASHLAB_MODELS_OCCUPANCY_H
#define FLASHLAB_MODELS_OCCUPANCY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOST_THREADS_PER_BLOCK = 1024, MOST_REGISTERS_PER_THREAD = 255 };

/* What an SM of one compute capability has. */
struct sm_limits {
    int major, minor;
    int threads, blocks;      /* at once */
    int registers;            /* of 32 bits; no block may use more than all of them */
    int64_t shared_bytes;     /* for all blocks */
    int64_t shared_per_block; /* the most that one block may ask for */
    int shared_unit;          /* bytes that shared memory is given out in */
    int shared_reserved;      /* bytes that each block costs beside its own */
};

/* What one block of a kernel needs. */
struct block_needs {
    int threads;
    int registers;        /* a thread, as the compiler reports them */
    int64_t shared_bytes; /* static and dynamic */
};

enum occupancy_limit {
    OCCUPANCY_BLOCKS, /* the SM's own count of blocks */
    OCCUPANCY_WARPS,
    OCCUPANCY_REGISTERS,
    OCCUPANCY_SHARED,
    OCCUPANCY_LIMITS,
};

struct occupancy {
    int blocks;                  /* an SM; 0: the block does not fit at all */
    int warps;                   /* of these blocks */
    int by[OCCUPANCY_LIMITS];    /* blocks that each limit alone would allow */
    enum occupancy_limit limit;  /* the first that allows no more than blocks */
    int64_t registers_allocated; /* for one block, in whole units */
    int64_t shared_allocated;    /* for one block, in whole units, with what is reserved */
};

/* By compute capability, or NULL. */
const struct sm_limits *sm_limits_find(int major, int minor);

/* By a machine of core/machine.h (letter case does not matter), or NULL. */
const struct sm_limits *sm_limits_of_machine(const char *machine);

/* The most warps at once. */
int sm_warps(const struct sm_limits *sm);

/* needs: threads from 1 on, the rest from 0 on. */
struct occupancy occupancy_of(const struct sm_limits *sm, const struct block_needs *needs);

/* "blocks", "warps", "registers" or "shared memory". */
const char *occupancy_limit_name(enum occupancy_limit limit);

#ifdef __cplusplus
}
#endif

#endif
