/* Vector addition in a block's view, as Triton has it: one tile of a and one of b, no threads.
 *
 * What is past the end of a vector is masked: such elements of a tile are neither loaded nor
 * stored. It moves what vector_add moves. It has no CUDA twin: in CUDA C++ one writes what a
 * thread does.
 */
#include "core/trace.h"
#include "kernels/basic_kernels.h"

enum { TILE = 1024 };

struct vector_add_args {
    struct hbm_tensor *c;
    const struct hbm_tensor *a, *b;
};

static void vector_add_tiles_block(struct thread_block *b, const void *arguments)
{
    const struct vector_add_args *args = arguments;
    const int left = args->c->cols - b->x * TILE, count = left < TILE ? left : TILE;
    struct tile x, y;
    tile_alloc(&x, b, LEVEL_REGISTERS, "x", DTYPE_F32, 1, TILE);
    tile_alloc(&y, b, LEVEL_REGISTERS, "y", DTYPE_F32, 1, TILE);
    if (block_failed(b))
        return;
    tile_load(&x, args->a, 0, 0, b->x * TILE);
    tile_load(&y, args->b, 0, 0, b->x * TILE);
    block_step(b, "load a, b", b->x, -1);
    for (int n = 0; x.data && n < count; n++)
        tile_writable(&x)[n] += y.data[n];
    count_flops(b, 0, count, 0);
    tile_store(args->c, 0, 0, b->x * TILE, &x);
    block_step(b, "store c = a + b", b->x, -1);
}

enum status vector_add_tiles(struct gpu *gpu, struct hbm_tensor *c, const struct hbm_tensor *a,
                             const struct hbm_tensor *b, struct error *error)
{
    CHECK(a->cols == c->cols && b->cols == c->cols && a->rows * b->rows * c->rows == 1,
          "vectors of %d, %d and %d elements", a->cols, b->cols, c->cols);
    const struct vector_add_args args = {c, a, b};
    return gpu_launch(gpu,
                      &(struct launch){.name = "vector_add_tiles",
                                       .grid = {(c->cols - 1) / TILE + 1, 1, 1},
                                       .block = vector_add_tiles_block,
                                       .args = &args},
                      error);
}
