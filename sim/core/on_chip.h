/* The host memory behind a thread block's tiles. For core only; kernels see memory.h. */
#ifndef FLASHLAB_CORE_ON_CHIP_H
#define FLASHLAB_CORE_ON_CHIP_H

#include <stddef.h>

#include "core/launch.h"

/* One buffer for each tile a block can have, kept by a thread from block to block. */
struct on_chip_storage {
    struct {
        float *data;
        size_t bytes;
    } slot[MAX_TILES];
};

/* Frees the buffers. */
void on_chip_free(struct on_chip_storage *storage);

/* Adds the block's pending tile_reduce_add() tiles to HBM and forgets them. */
void reductions_apply(struct thread_block *b);

#endif
