/* What a launch moves between L2 and DRAM: its blocks' moves replayed through a model of L2.
 *
 * Interface:
 *   struct l2_traffic l2;
 *   l2_traffic_init(&l2, &(struct l2_options){.machine = machine_find("H200")}, &error);
 *   gpu.observer = &l2.observer;
 *   flash2_forward(&gpu, ...);                       any launches, with or without data
 *   l2_traffic_finish(&l2);
 *   l2.launches[k].dram_read_bytes                   of launch k, for k < l2.launch_count
 *   l2_traffic_free(&l2);
 * or, for moves that come from elsewhere, l2_traffic_begin() and l2_traffic_block().
 *
 * The model:
 *   Blocks start in order of number on the first SM with room for one; all that are resident
 *   advance in turns of TURN_BYTES each. Now and then one loses a turn, drawn from a fixed
 * seed: SMs do not stay in step. On an SM warps that have been there longer issue first, so a
 * block moves less in a turn for each older one beside it. L2 has one or two partitions, each
 * with half of the capacity and near to half of the SMs. Each address has a home in one of
 * them. An SM asks its own partition; what that one lacks it gets from the home, or the home
 * from DRAM, and keeps a copy: data that all SMs read is there twice. A write goes to the home,
 * where it stays dirty until the line grows old or its set has too many dirty ones, and leaves
 * a copy in the writer's own partition; another partition's copy is dropped. What is dirty when
 * the kernel ends is not written by it. There is no L1: it changes what L2 is asked for, and
 * DRAM little.
 */
#ifndef FLASHLAB_MODELS_L2_TRAFFIC_H
#define FLASHLAB_MODELS_L2_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/machine.h"
#include "core/moves.h"
#include "models/l2_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { L2_MAX_PARTITIONS = 2, L2_LINE_BYTES = 128, TURN_BYTES = 16384 };

struct l2_options {
    const struct machine *machine;
    int blocks_per_sm; /* resident; 0: as many as SRAM and registers hold, at most 32 */
    int sample;        /* 1: every line; 2^k up to 32: one line in 2^k and as much less of L2,
                          the counts multiplied. 0: 8, or less for an L2 that is small */
    bool cold;         /* L2 is empty when a launch starts, as profilers make it */
    bool in_step;      /* the blocks of an SM advance alike: those of kernels on tensor cores,
                          which wait for data and not for each other's instructions */
};

/* In 32-byte sectors as the SMs ask for them, and in bytes between L2 and DRAM. */
struct l2_launch {
    const char *name;
    int64_t read_sectors;  /* asked for */
    int64_t write_sectors; /* asked for, reductions among them */
    int64_t miss_sectors;  /* of reads and reductions: came from DRAM */
    int64_t dram_read_bytes, dram_written_bytes;
    int64_t dirty_bytes; /* left in L2 at the end */
};

struct l2_traffic {
    struct l2_options options;
    int partitions; /* 1 or 2 */
    struct l2_cache partition[L2_MAX_PARTITIONS];
    struct move_observer observer; /* of this model, for struct gpu */
    int launch_count;
    struct l2_launch launches[MAX_LAUNCHES];
    int residents;         /* blocks that run at a time in this launch */
    int slot_room;         /* allocated */
    struct l2_slot *slots; /* [slot_room], owned: the resident blocks */
    int live, turn;        /* of slots: in use, and whose turn it is */
    int64_t started;       /* blocks, so far */
    int observed;          /* the launch that the observer is in: gpu.launch_count; -1: none */
    uint64_t random;
};

/* sample and the machine's L2 (lines of 128 bytes, sectors of 32, 1 or 2 partitions) are
 * checked; the message names what is wrong. *l2 stays where it is until l2_traffic_free(): its
 * observer points to it. */
enum status l2_traffic_init(struct l2_traffic *l2, const struct l2_options *options,
                            struct error *error);
void l2_traffic_free(struct l2_traffic *l2);

/* Starts a launch of which residents blocks run at a time, at most as many as it has; name is
 * static. Ends the one before. */
void l2_traffic_begin(struct l2_traffic *l2, const char *name, int residents);

/* The next block of the launch, in order of number. Its moves are taken: moves holds other,
 * worthless ones afterwards. Addresses are from 0 to 2^39 - 1. */
void l2_traffic_block(struct l2_traffic *l2, struct move_list *moves);

/* Ends the launch, if there is one: all blocks run to their ends. */
void l2_traffic_finish(struct l2_traffic *l2);

/* The sample with which a run in which the SMs ask for that many sectors takes seconds. The
 * more sectors, the smaller a part of them is enough. */
int l2_sample_of(int64_t sectors);

/* Blocks of the launch of b that run at a time, with so many on an SM. */
int l2_residents(const struct thread_block *b, int blocks_per_sm);

/* Blocks of the on-chip bytes given, by level, that are resident on one SM. */
int l2_blocks_per_sm(const struct machine *machine, const int64_t used[LEVEL_COUNT]);

#ifdef __cplusplus
}
#endif

#endif
