/* An AI core of an Ascend 910B: its buffers, and the ways that data take between them.
 *
 *               MTE2          MTE1             cube            FixPipe
 *   cube core   GM -> L1      L1 -> L0A, L0B   L0A L0B -> L0C  L0C -> GM
 *               MTE2          vector           MTE3
 *   vector      GM -> UB      UB -> UB         UB -> GM
 *
 * One cube core and two vector cores make an AI core. They share nothing on chip: what one has
 * made and the other needs goes through global memory (GM), behind the L2 cache. The functions
 * are called after the engines that move, and count the bytes of each way (enum path) beside
 * those of each tensor.
 *
 * Interface: the thread block of a launch with .capacity = chip->capacity plays an AI core.
 *   tile_alloc(&Kj, b, LEVEL_L1, ...)            a place in a buffer, for tiles up to that size
 *   mte2_load(&Kj, rows, cols, &K, plane, row)   GM -> L1 or UB
 *   mte1_move(&right, &Kj)                       L1 -> L0A or L0B
 *   fixpipe_store(&S, plane, &scores)            L0C -> GM
 *   mte3_store(&P, plane, row, &Pij)             UB -> GM
 * The two vector cores take half of a tile's rows each and do the same: they are simulated as
 * one, with both UBs.
 *
 * Counted are elements inside the tensor. The hardware pads tiles to fractals of 16 rows and
 * 32 bytes.
 *
 * Sources: Ascend C operator development guide (CANN 8.5), "Basic architecture", for buffers
 * and engines; platform_config/Ascend910B2.ini and Ascend950PR_9579.ini of CANN, as users
 * quote them, for the sizes; the guide to migrating operators in cann/ops-math,
 * cross_platform_migration_guide.md, for what the 950 has that the 910B has not.
 */
#ifndef FLASHLAB_CORE_AI_CORE_H
#define FLASHLAB_CORE_AI_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { VECTOR_CORES_PER_CUBE_CORE = 2 };

struct ascend {
    int ai_cores;
    int64_t capacity[LEVEL_COUNT]; /* bytes of an AI core; LEVEL_UB: of both vector cores */
    bool direct;                   /* L0C -> UB and UB -> L1: on an Ascend 950, not on a 910B */
};

/* A 910B2, and its successor, a 950PR. Copy one to change it. */
extern const struct ascend ascend_910b2, ascend_950;

/* Static: "GM -> L1". */
const char *path_name(enum path path);

/* The tile takes the shape rows x cols; the tensor has all of it from (plane, row, 0) on. */
void mte2_load(struct tile *dst, int rows, int cols, const struct hbm_tensor *src, int plane,
               int row);

/* dst takes the shape of src. */
void mte1_move(struct tile *dst, const struct tile *src);

/* To row 0 of the plane. */
void fixpipe_store(struct hbm_tensor *dst, int plane, const struct tile *src);
void mte3_store(struct hbm_tensor *dst, int plane, int row, const struct tile *src);

/* For chips with .direct: L0C -> UB, UB -> L1. dst takes the shape of src. */
void fixpipe_move(struct tile *dst, const struct tile *src);
void mte3_move(struct tile *dst, const struct tile *src);

#ifdef __cplusplus
}
#endif

#endif
