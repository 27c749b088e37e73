#include "models/shared_matmul.h"

#include "core/status.h"

/* Of a kernel whose threads have R x C elements each. */
static struct shared_requests requests(const struct io_matmul *shape, int tile, int64_t R,
                                       int64_t C)
{
    CHECK(shape->rows % tile == 0 && shape->cols % tile == 0 && shape->depth % tile == 0,
          "%d x %d x %d in tiles of %d: not whole", shape->rows, shape->cols, shape->depth,
          tile);
    const int64_t elements = (int64_t)shape->rows * shape->cols;
    const int64_t warps = elements / (R * C) / WARP_LANES; /* each of as many steps as deep */
    const int64_t fours = warps * shape->depth / 4;
    const int64_t loaded = elements * (shape->depth / tile); /* of A, and as many of B */
    return (struct shared_requests){.loads = fours * (R + 4 * C),
                                    .load_wavefronts = fours * (2 * R + 4 * C),
                                    .stores = 2 * loaded / WARP_LANES};
}

struct shared_requests shared_of_matmul_shared(const struct io_matmul *shape, int tile)
{
    return requests(shape, tile, 1, 1);
}

struct shared_requests shared_of_matmul_tiled(const struct io_matmul *shape, int tile)
{
    const int64_t result = (int64_t)shape->rows * shape->cols / WARP_LANES;
    struct shared_requests r = requests(shape, tile, tile / 8, tile / 16);
    r.loads += result;
    r.load_wavefronts += result;
    r.stores += result;
    return r;
}
