/* The attention problem: shapes, mask and tile sizes that kernels, models and tools share.
 *
 *   O = softmax(scale Q K^T + mask) V,   LSE = log sum exp of each row of scores
 *
 * Shapes, all row-major: Q (batch, heads_q, seqlen_q, head_dim), K (batch, heads_kv, seqlen_k,
 * head_dim), V (batch, heads_kv, seqlen_k, head_dim_v), O (batch, heads_q, seqlen_q,
 * head_dim_v), LSE (batch, heads_q, seqlen_q). A plane is one (batch, head) pair.
 */
#ifndef FLASHLAB_CORE_ATTENTION_H
#define FLASHLAB_CORE_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"
#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum algorithm {
    ALGORITHM_NAIVE,
    ALGORITHM_STANDARD,
    ALGORITHM_FLASH1,
    ALGORITHM_FLASH2,
    ALGORITHM_COUNT,
};

/* "naive", "standard", "flash1", "flash2". */
const char *algorithm_name(enum algorithm algorithm);
bool algorithm_parse(enum algorithm *algorithm, const char *name);

enum mask {
    MASK_NONE,
    MASK_CAUSAL,          /* bottom-right: the last query sees every key */
    MASK_CAUSAL_TOP_LEFT, /* query 0 sees key 0 only, whatever the lengths */
    MASK_COUNT,
};

/* The most that an extent may be: of the problem, and of a tile (rows and head dimensions). */
enum { ATTENTION_MOST = 1 << 30, ATTENTION_MOST_IN_TILE = 1 << 16 };

struct attention {
    int batch;
    int heads_q; /* a multiple of heads_kv: query head h uses kv head h / (heads_q / heads_kv)
                  */
    int heads_kv;
    int seqlen_q; /* N of the queries */
    int seqlen_k; /* N of the keys */
    int head_dim; /* d of Q and K */
    int head_dim_v;
    float scale; /* multiplies Q K^T; usually 1 / sqrt(head_dim) */
    enum mask mask;
    enum dtype dtype; /* of Q, K, V, O, and of S and P where they go to HBM */
    int block_q;      /* Br: rows of a Q tile */
    int block_k;      /* Bc: rows of a K or V tile */
    bool tiled_gemm;  /* standard attention only: real tiles instead of each operand once */
};

/* "none", "causal", "causal-top-left". */
const char *mask_name(enum mask mask);
bool mask_parse(enum mask *mask, const char *name);

/* Checks every extent and the scale, and that no count overflows 64 bits. The message names the
 * field as the command line does (--seqlen-q), its value and what is allowed. */
enum status attention_check(const struct attention *a, struct error *error);

/* Planes of Q and O, and of K and V. */
int attention_planes_q(const struct attention *a);
int attention_planes_kv(const struct attention *a);

/* The plane of K and V that a plane of Q attends to. */
int attention_kv_plane(const struct attention *a, int plane_q);

/* How many keys a query row may see: keys 0 .. visible - 1. 0 for a row without keys. */
int attention_visible_keys(const struct attention *a, int row);

/* Tr and Tc: how many tiles cover the queries and the keys. */
int attention_tiles_q(const struct attention *a);
int attention_tiles_k(const struct attention *a);

/* How many K/V tiles Q tile i has to visit: those with at least one key that a row of the tile
 * may see. Tiles 0 .. count - 1 are visited. */
int attention_visited_tiles(const struct attention *a, int i);

#ifdef __cplusplus
}
#endif

#endif
