#include "core/attention.h"

#include <math.h>
#include <string.h>

static const char *const mask_names[MASK_COUNT] = {
    [MASK_NONE] = "none",
    [MASK_CAUSAL] = "causal",
    [MASK_CAUSAL_TOP_LEFT] = "causal-top-left",
};

static const char *const algorithm_names[ALGORITHM_COUNT] = {
    [ALGORITHM_NAIVE] = "naive",
    [ALGORITHM_STANDARD] = "standard",
    [ALGORITHM_FLASH1] = "flash1",
    [ALGORITHM_FLASH2] = "flash2",
};

/* Index of name among names, -1 if it is not there. */
static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *algorithm_name(enum algorithm algorithm)
{
    return algorithm_names[algorithm];
}

bool algorithm_parse(enum algorithm *algorithm, const char *name)
{
    const int i = index_of(algorithm_names, ALGORITHM_COUNT, name);
    if (i >= 0)
        *algorithm = (enum algorithm)i;
    return i >= 0;
}

const char *mask_name(enum mask mask)
{
    return mask_names[mask];
}

bool mask_parse(enum mask *mask, const char *name)
{
    const int i = index_of(mask_names, MASK_COUNT, name);
    if (i >= 0)
        *mask = (enum mask)i;
    return i >= 0;
}

enum status attention_check(const struct attention *a, struct error *error)
{
    const struct {
        const char *option;
        int value;
        int most;
    } extents[] = {
        {"--batch", a->batch, ATTENTION_MOST},
        {"--heads-q", a->heads_q, ATTENTION_MOST},
        {"--heads-kv", a->heads_kv, ATTENTION_MOST},
        {"--seqlen-q", a->seqlen_q, ATTENTION_MOST},
        {"--seqlen-k", a->seqlen_k, ATTENTION_MOST},
        {"--head-dim", a->head_dim, ATTENTION_MOST_IN_TILE},
        {"--block-q", a->block_q, ATTENTION_MOST_IN_TILE},
        {"--head-dim-v", a->head_dim_v, ATTENTION_MOST_IN_TILE},
        {"--block-k", a->block_k, ATTENTION_MOST_IN_TILE},
    };
    int64_t product = 1;
    for (int i = 0; i < (int)(sizeof extents / sizeof extents[0]); i++) {
        if (extents[i].value < 1 || extents[i].value > extents[i].most)
            return error_set(error, STATUS_BAD_ARGUMENT, "%s %d: must be from 1 to %d",
                             extents[i].option, extents[i].value, extents[i].most);
    }
    if (a->heads_q % a->heads_kv != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--heads-q %d: must be a multiple of --heads-kv (%d)", a->heads_q,
                         a->heads_kv);
    if (!isfinite(a->scale))
        return error_set(error, STATUS_BAD_ARGUMENT, "--scale %g: must be a finite number",
                         (double)a->scale);
    /* No count exceeds 64 bytes or FLOPs a (row, key, column) triple. */
    if (__builtin_mul_overflow((int64_t)a->batch * a->heads_q, a->seqlen_q, &product) ||
        __builtin_mul_overflow(product, a->seqlen_k, &product) ||
        __builtin_mul_overflow(product, a->head_dim + a->head_dim_v, &product) ||
        __builtin_mul_overflow(product, 64, &product) ||
        (int64_t)a->batch * a->heads_q > ATTENTION_MOST)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--batch %d --heads-q %d --seqlen-q %d --seqlen-k %d --head-dim %d: "
                         "too large, the counts would overflow 64 bits",
                         a->batch, a->heads_q, a->seqlen_q, a->seqlen_k, a->head_dim);
    return STATUS_OK;
}

int attention_planes_q(const struct attention *a)
{
    return a->batch * a->heads_q;
}

int attention_planes_kv(const struct attention *a)
{
    return a->batch * a->heads_kv;
}

int attention_kv_plane(const struct attention *a, int plane_q)
{
    /* plane_q = batch * heads_q + head, and heads_q is a multiple of heads_kv. */
    return plane_q / (a->heads_q / a->heads_kv);
}

int attention_visible_keys(const struct attention *a, int row)
{
    int visible = a->seqlen_k;
    if (a->mask == MASK_CAUSAL)
        visible = row + 1 + a->seqlen_k - a->seqlen_q;
    else if (a->mask == MASK_CAUSAL_TOP_LEFT)
        visible = row + 1;
    if (visible < 0)
        return 0;
    return visible < a->seqlen_k ? visible : a->seqlen_k;
}

static int tiles(int extent, int block)
{
    return (int)(((int64_t)extent + block - 1) / block);
}

int attention_tiles_q(const struct attention *a)
{
    return tiles(a->seqlen_q, a->block_q);
}

int attention_tiles_k(const struct attention *a)
{
    return tiles(a->seqlen_k, a->block_k);
}

int attention_visited_tiles(const struct attention *a, int i)
{
    /* Causal rows see more keys the later they are: the tile's last row decides. */
    int64_t last = ((int64_t)i + 1) * a->block_q - 1;
    if (last > a->seqlen_q - 1)
        last = a->seqlen_q - 1;
    return tiles(attention_visible_keys(a, (int)last), a->block_k);
}
