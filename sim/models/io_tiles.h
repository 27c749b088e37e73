/* Bytes and sectors of one tile's move, in closed form. For sim/models only.
 *
 * A tensor of planes x rows x cols elements lies at an address that is a multiple of 256. A
 * plane's offset is its first byte's address modulo 32.
 */
#ifndef FLASHLAB_MODELS_IO_TILES_H
#define FLASHLAB_MODELS_IO_TILES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/traffic.h"

struct io_tensor {
    const char *name;
    int element_bytes;
    int planes;
    int users; /* query planes that use each plane: more than 1 for grouped K and V heads */
    int rows, cols;
};

/* How many of the tensor's planes start at that offset (0 .. 31). */
int64_t io_planes_at_offset(const struct io_tensor *tensor, int offset);

/* One move of tile number t of block whole rows, in a plane at that offset. box: by the copy
 * engine, which reads boxes whole. */
struct amount io_tile_move(const struct io_tensor *tensor, int offset, int block, int t,
                           bool box, enum direction direction);

/* Every tile of block_rows x block_cols of the tensor moved once, all planes. */
struct amount io_subtile_pass(const struct io_tensor *tensor, int block_rows, int block_cols,
                              bool box, enum direction direction);

#endif
