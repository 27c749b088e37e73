/* Vector addition: c = a + b, the kernel that only moves bytes.
 *
 * A thread block adds 1024 elements, a warp 32 of them at a time.
 */
#include "core/trace.h"
#include "kernels/basic_kernels.h"

enum { ADD_PER_BLOCK = 1024, ADD_REQUESTS = ADD_PER_BLOCK / WARP_LANES };

struct vector_add_args {
    struct hbm_tensor *c;
    const struct hbm_tensor *a, *b;
};

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* The elements of the block's request number n; returns how many, 0 past the end. */
static int request_of(int64_t element[WARP_LANES], const struct thread_block *b, int n,
                      int count)
{
    const int64_t first = (int64_t)b->x * ADD_PER_BLOCK + (int64_t)n * WARP_LANES;
    const int lanes = first < count ? min(WARP_LANES, (int)(count - first)) : 0;
    for (int lane = 0; lane < lanes; lane++)
        element[lane] = first + lane;
    return lanes;
}

static void vector_add_block(struct thread_block *b, const void *arguments)
{
    const struct vector_add_args *args = arguments;
    float x[ADD_REQUESTS][WARP_LANES] = {{0}}, y[ADD_REQUESTS][WARP_LANES] = {{0}};
    int64_t element[WARP_LANES];
    const int count = args->c->cols;
    for (int n = 0; n < ADD_REQUESTS; n++) {
        const int lanes = request_of(element, b, n, count);
        if (lanes == 0)
            break;
        warp_load(b, x[n], args->a, 0, element, lanes);
        warp_load(b, y[n], args->b, 0, element, lanes);
    }
    block_step(b, "load a, b", b->x, -1);
    for (int n = 0; n < ADD_REQUESTS; n++) {
        const int lanes = request_of(element, b, n, count);
        if (lanes == 0)
            break;
        for (int lane = 0; lane < lanes; lane++)
            x[n][lane] += y[n][lane];
        count_flops(b, 0, lanes, 0);
        warp_store(b, args->c, 0, element, x[n], lanes);
    }
    block_step(b, "store c = a + b", b->x, -1);
}

enum status vector_add(struct gpu *gpu, struct hbm_tensor *c, const struct hbm_tensor *a,
                       const struct hbm_tensor *b, struct error *error)
{
    CHECK(a->cols == c->cols && b->cols == c->cols && a->rows * b->rows * c->rows == 1,
          "vectors of %d, %d and %d elements", a->cols, b->cols, c->cols);
    const struct vector_add_args args = {c, a, b};
    const int blocks = (int)(((int64_t)c->cols + ADD_PER_BLOCK - 1) / ADD_PER_BLOCK);
    return gpu_launch(gpu,
                      &(struct launch){.name = "vector_add",
                                       .grid = {blocks, 1, 1},
                                       .block = vector_add_block,
                                       .args = &args},
                      error);
}
