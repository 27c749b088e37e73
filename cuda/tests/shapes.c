#include "shapes.h"

#include <math.h>
#include <stdlib.h>

#include "common/problem.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { RANDOM_SHAPES = 32 };

/* batch, heads of Q and of KV, lengths, head dimensions, mask, Br, Bc */
static const struct {
    int batch, heads_q, heads_kv, seqlen_q, seqlen_k, d, dv;
    enum mask mask;
    int block_q, block_k;
} attentions[] = {
    {1, 2, 2, 128, 128, 64, 64, MASK_NONE, 64, 64},
    {2, 2, 2, 192, 192, 64, 64, MASK_CAUSAL, 64, 64},
    {1, 6, 2, 96, 160, 64, 64, MASK_CAUSAL, 32, 64}, /* grouped heads, lengths differ */
    {1, 6, 2, 160, 96, 32, 32, MASK_CAUSAL, 64, 32}, /* dead rows, whole tiles of them */
    {1, 2, 1, 160, 96, 64, 64, MASK_CAUSAL_TOP_LEFT, 32, 32},
    {1, 1, 1, 37, 63, 63, 63, MASK_NONE, 16, 16}, /* rows that begin inside a sector */
    {2, 3, 3, 61, 45, 80, 80, MASK_CAUSAL, 32, 32},
    {1, 2, 2, 100, 100, 40, 96, MASK_NONE, 64, 64}, /* d != dv */
    {1, 2, 2, 70, 90, 128, 128, MASK_CAUSAL, 64, 64},
    {1, 1, 1, 65, 130, 192, 256, MASK_NONE, 32, 32},
    {1, 1, 1, 64, 64, 256, 256, MASK_CAUSAL, 32, 32}, /* the longest rows */
    {1, 1, 1, 1, 1, 1, 1, MASK_NONE, 64, 64},
    {1, 2, 2, 1, 333, 128, 128, MASK_CAUSAL, 64, 64}, /* decode */
    {1, 1, 1, 333, 1, 16, 16, MASK_CAUSAL, 16, 16},
    {1, 1, 1, 50, 50, 64, 64, MASK_NONE, 1, 1}, /* the smallest tiles */
    {1, 1, 1, 130, 131, 5, 7, MASK_CAUSAL_TOP_LEFT, 13, 9},
    {1, 1, 1, 1000, 1000, 128, 128, MASK_CAUSAL, 64, 64},
    {1, 2, 2, 512, 512, 64, 64, MASK_NONE, 64, 64},
};

/* rows, cols, depth, tile; vectors have cols only, softmaxes rows and cols */
static const struct {
    int rows, cols, depth, tile;
} matrices[] = {
    {64, 64, 64, 16},   {256, 256, 256, 32}, {37, 63, 20, 16},    {1, 1, 1, 16},
    {65, 129, 33, 64},  {128, 100, 64, 64},  {100, 1000, 7, 32},  {5, 4099, 130, 64},
    {333, 31, 127, 32}, {300, 257, 513, 64}, {17, 100003, 1, 32}, {2, 1 << 20, 3, 16},
};

static int chosen_shapes(enum kernel kernel)
{
    return (int)(kernel_is_attention(kernel) ? LENGTH(attentions) : LENGTH(matrices));
}

int shapes_count(enum kernel kernel)
{
    const int all = chosen_shapes(kernel) + RANDOM_SHAPES;
    const char *limit = getenv("FLASHLAB_SHAPES");
    const int most = limit ? atoi(limit) : all;
    return most > 0 && most < all ? most : all;
}

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

static struct attention chosen_attention(int n)
{
    return (struct attention){.batch = attentions[n].batch,
                              .heads_q = attentions[n].heads_q,
                              .heads_kv = attentions[n].heads_kv,
                              .seqlen_q = attentions[n].seqlen_q,
                              .seqlen_k = attentions[n].seqlen_k,
                              .head_dim = attentions[n].d,
                              .head_dim_v = attentions[n].dv,
                              .scale = 1.0f / sqrtf((float)attentions[n].d),
                              .mask = attentions[n].mask,
                              .block_q = attentions[n].block_q,
                              .block_k = attentions[n].block_k};
}

struct run shape_of(enum kernel kernel, int n)
{
    struct run run = {.kernel = kernel};
    uint64_t seed = 1000 + (uint64_t)n;
    const bool random = n >= chosen_shapes(kernel);
    if (kernel_is_attention(kernel)) {
        run.a = random ? random_attention(&seed, 150, 140) : chosen_attention(n);
        run.a.block_q = at_most(run.a.block_q, MAX_BLOCK);
        run.a.block_k = at_most(run.a.block_k, MAX_BLOCK);
    } else {
        run.rows = random ? random_between(&seed, 1, 200) : matrices[n].rows;
        run.cols = random ? random_between(&seed, 1, 300) : matrices[n].cols;
        run.depth = random ? random_between(&seed, 1, 150) : matrices[n].depth;
        run.tile = random ? 16 << random_between(&seed, 0, 2) : matrices[n].tile;
        run.tile = at_most(run.tile, kernel_most_tile(kernel));
    }
    return run;
}

/* Of products: extents and tile. Each kernel takes as many as it has tiles, and one; the naive
 * product, which has none, the first two. */
static const struct {
    int extent, tile;
} products[] = {{2048, 64}, {4096, 16}, {4096, 32}, {4096, 64}};

int large_shapes_count(enum kernel kernel)
{
    switch (kernel) {
    case KERNEL_MATMUL_NAIVE:
        return 2;
    case KERNEL_MATMUL_SHARED:
        return 3;
    case KERNEL_MATMUL_TILED:
        return 4;
    default:
        return 1;
    }
}

struct run large_shape(enum kernel kernel, int n)
{
    struct run run = {.kernel = kernel, .tile = 64};
    if (kernel_is_attention(kernel))
        run.a = (struct attention){.batch = 1,
                                   .heads_q = 4,
                                   .heads_kv = 4,
                                   .seqlen_q = 4096,
                                   .seqlen_k = 4096,
                                   .head_dim = 64,
                                   .head_dim_v = 64,
                                   .scale = 0.125f,
                                   .block_q = 64,
                                   .block_k = 64};
    else if (kernel == KERNEL_VECTOR_ADD)
        run.cols = 1 << 26;
    else if (kernel_is_matmul(kernel))
        run.rows = run.cols = run.depth = products[n].extent;
    else
        run.rows = run.cols = 8192;
    if (kernel_is_matmul(kernel))
        run.tile = at_most(products[n].tile, kernel_most_tile(kernel));
    return run;
}
