/* Which partition of an L2 in two parts lines and blocks belong to, as on an H200
 * (cuda/results/h200_l2_sides.csv).
 *
 * Interface:
 *   l2_home(2, address / 128)     where the line is at home, 0 or 1
 *   l2_side(2, 5, 16)             what the SM of block 5 of 16 is near to
 */
#ifndef FLASHLAB_MODELS_L2_SIDES_H
#define FLASHLAB_MODELS_L2_SIDES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { L2_HOME_LINES = 32 }; /* in a row, of 128 bytes, that have the same home */

/* 0 with one partition. With two half of the lines have each home. */
int l2_home(int partitions, int64_t line);

/* Of a grid of blocks, at most one for each SM: 0 <= block < blocks. */
int l2_side(int partitions, int block, int blocks);

#ifdef __cplusplus
}
#endif

#endif
