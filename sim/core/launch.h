/* The simulated GPU and the launch of a kernel over a grid of thread blocks.
 *
 * Interface:
 *   struct gpu gpu;
 *   gpu_init(&gpu, machine_default(), GPU_DATA);
 *   hbm_alloc(&q, &gpu, "Q", ...);                          see core/memory.h
 *   gpu_launch(&gpu, &(struct launch){.name = "flash2_forward", .grid = {tiles, planes, 1},
 *                                     .block = flash2_forward_block, .args = &args}, &error);
 *   gpu_account(&gpu);                                      what all launches moved so far
 *   gpu_free(&gpu);
 *
 * gpu_launch() runs the block function once for every thread block, on all cores, as
 * <<<grid, block>>> does. Each block has on-chip memory of its own, which no other block sees.
 * Results, counts and traces do not depend on the number of cores.
 *
 * In counts-only mode the same block functions run without data: tensors and tiles have shapes
 * but no elements, everything is counted, nothing is computed.
 */
#ifndef FLASHLAB_CORE_LAUNCH_H
#define FLASHLAB_CORE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/machine.h"
#include "core/status.h"
#include "core/traffic.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gpu_mode { GPU_DATA, GPU_COUNTS };
enum level {
    LEVEL_SRAM,
    LEVEL_REGISTERS,
    LEVEL_L1, /* from here on: buffers of an Ascend AI core, core/ai_core.h */
    LEVEL_L0A,
    LEVEL_L0B,
    LEVEL_L0C,
    LEVEL_UB,
    LEVEL_COUNT,
};
enum { MAX_LAUNCHES = 16, MAX_TILES = 24 };

struct tile;
struct trace;
struct move_list;
struct move_observer;
struct thread_block;

/* A grid of x * y * z thread blocks; each at least 1. */
struct grid {
    int x, y, z;
};

/* The code of one thread block. args is the launch's. */
typedef void block_function(struct thread_block *b, const void *args);

/* alike.x = 32 says that blocks whose x differ by 32 do the same work, but for the last x,
 * which may be ragged; alike.y and alike.z likewise. In counts-only mode such blocks are
 * counted once and multiplied. 32 is right for tiles in address order: 32 equal steps advance
 * an address by a multiple of a sector. */
struct launch {
    const char *name; /* static */
    struct grid grid;
    block_function *block;
    const void *args;
    struct grid alike;       /* counts only: see above; 0: every block runs */
    bool unlimited_on_chip;  /* lift the limits of SRAM and registers: for idealised kernels */
    const int64_t *capacity; /* [LEVEL_COUNT] bytes of a block; NULL: the machine's SRAM and
                                registers */
    bool reduces;            /* the blocks call tile_reduce_add() */
};

/* A tile that a thread block holds on chip. */
struct tile_entry {
    const char *name;
    enum level level;
    int64_t bytes;
};

/* What one launch moved and computed. */
struct launch_record {
    const char *name;
    struct grid grid;
    struct account account;
    int64_t peak_bytes[LEVEL_COUNT]; /* most on-chip bytes live in one block, by level */
    int64_t path_bytes[PATH_COUNT];  /* moved between buffers: core/ai_core.h */
    int tile_count;
    struct tile_entry tiles[MAX_TILES]; /* of the first block */
};

/* Called from time to time during long launches, from one thread at a time. */
typedef void progress_function(void *context, const char *launch, int64_t done, int64_t total);

struct gpu {
    const struct machine *machine;
    enum gpu_mode mode;
    bool tma;                             /* tiles move by the copy engine, in whole boxes */
    struct trace *trace;                  /* NULL: none. Not owned. */
    const struct move_observer *observer; /* NULL: none. Not owned: see core/moves.h */
    progress_function *progress;
    void *progress_context;
    int tensor_count;
    const char *tensor_name[MAX_TENSORS];
    int64_t next_address; /* of the next tensor */
    int launch_count;
    struct launch_record launches[MAX_LAUNCHES];
};

struct counters {
    struct traffic tensor[MAX_TENSORS]; /* by hbm_tensor.id */
    struct flops flops;
    int64_t path_bytes[PATH_COUNT];
};

/* Host bytes that a thread block is about to read: see core/read_ahead.h. */
struct read_ahead {
    const char *next;
    size_t bytes;
};

/* One running thread block. Kernels read gpu and x, y, z; the rest belongs to core. */
struct thread_block {
    struct gpu *gpu;
    const struct launch *launch;
    int x, y, z;
    struct counters counters;
    struct error error;
    int64_t capacity[LEVEL_COUNT];
    int64_t used[LEVEL_COUNT];
    int tile_count;
    struct tile_entry tiles[MAX_TILES];
    struct on_chip_storage *storage; /* host memory behind the tiles */
    struct read_ahead ahead[2];
    struct reduction *reductions; /* tile_reduce_add() calls not yet applied, oldest first */
    struct reduction *last_reduction;
    struct move_list *moves; /* NULL: nobody observes */
    struct step_list *steps; /* trace records not yet handed over, oldest first */
    struct step_list *last_step;
    int loop_first; /* state of loop_begin() and loop_next() */
    struct counters loop_start;
};

/* Starts an empty GPU: no tensors, no launches. machine must outlive it. */
void gpu_init(struct gpu *gpu, const struct machine *machine, enum gpu_mode mode);

/* Runs the launch and appends its record to gpu->launches. If tiles do not fit on chip, or the
 * host has no memory for them, no record is made and the message lists the tiles. */
enum status gpu_launch(struct gpu *gpu, const struct launch *launch, struct error *error);

/* All launches so far, added up. */
struct account gpu_account(const struct gpu *gpu);

/* True if the block cannot go on (its tiles did not fit); its function returns at once. */
bool block_failed(const struct thread_block *b);

/* Loops whose iterations all do the same work, over tiles or rows in address order:
 *     for (int j = loop_begin(b, 0); j < Tc; j = loop_next(b, j, Tc))
 * With data that is for (int j = 0; j < Tc; j++). In counts-only mode, where after 32
 * iterations the addresses are where they were, modulo a sector, whole groups of 32 are counted
 * once and multiplied; the last iteration, which may be ragged, always runs. Such loops do not
 * nest. */
int loop_begin(struct thread_block *b, int first);
int loop_next(struct thread_block *b, int j, int end);

/* Counts one move between HBM and on-chip memory. Core only. */
static inline void count_move(struct thread_block *b, int tensor, enum direction direction,
                              int64_t bytes, int64_t sectors)
{
    struct amount *amount = &b->counters.tensor[tensor].of[direction];
    amount->bytes += bytes;
    amount->sectors += sectors;
}

/* Counts FLOPs: for sim/ops, and for kernels that compute element by element. */
static inline void count_flops(struct thread_block *b, int64_t matrix, int64_t other,
                               int64_t exp)
{
#ifndef FLASHLAB_UNCOUNTED
    b->counters.flops.matrix += matrix;
    b->counters.flops.other += other;
    b->counters.flops.exp += exp;
#else
    (void)b, (void)matrix, (void)other, (void)exp;
#endif
}

#ifdef __cplusplus
}
#endif

#endif
