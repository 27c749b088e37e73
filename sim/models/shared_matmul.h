/* What warps of the tiled matrix products ask of shared memory, in closed form: the CUDA
 * kernels matmul_shared and matmul_tiled, of tiles that are whole (extents are multiples of the
 * tile).
 *
 * Four steps k of a warp's 32 lanes, each lane with R x C elements of C in registers:
 *
 *   loads         R of four elements of Aik, C times 4 of one element of Bkj
 *   wavefronts    2 R + 4 C: a load of 16 bytes a lane is served by halves of the warp
 *   of            4 R C multiply-adds
 *
 * matmul_shared has R = C = 1; matmul_tiled R = T / 8, C = T / 16. To these matmul_tiled adds a
 * load and a store for each 32 elements of C, which leaves through shared memory. Stores are
 * the tiles' elements, 32 a request. There are no bank conflicts. Equal to the counters of an
 * H200: tests/test_shared_matmul.c.
 */
#ifndef FLASHLAB_MODELS_SHARED_MATMUL_H
#define FLASHLAB_MODELS_SHARED_MATMUL_H

#include "models/io_basic.h"

/* Of warps; a store takes one wavefront. */
struct shared_requests {
    int64_t loads, load_wavefronts, stores;
};

/* tile: 16 or 32. */
struct shared_requests shared_of_matmul_shared(const struct io_matmul *shape, int tile);

/* tile: 16, 32 or 64. */
struct shared_requests shared_of_matmul_tiled(const struct io_matmul *shape, int tile);

#endif
