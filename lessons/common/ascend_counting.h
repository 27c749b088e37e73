/* Counting runs of forward attention on an Ascend 910B, and on chips a little different from
 * it.
 *
 * Interface:
 *   struct ascend_counted c;
 *   ascend_counting_run(&c, &ascend_designs[DESIGN_910B], &a, &error)
 *   c.simulated, c.predicted, c.equal
 *   ascend_gm_bytes(&c.simulated)           ... and what lessons compare
 */
#ifndef FLASHLAB_LESSONS_ASCEND_COUNTING_H
#define FLASHLAB_LESSONS_ASCEND_COUNTING_H

#include "common/counting.h"
#include "kernels/ascend_forward.h"
#include "models/io_ascend.h"

/* A chip and a way to use it. */
struct ascend_design {
    const char *name; /* what it changes: see ascend_design_name() */
    const struct ascend *chip;
    bool direct;          /* the chip has direct ways, whatever .chip says */
    bool narrow_scores;   /* S in GM has the dtype of Q, K and V, else F32 */
    int times_q, times_k; /* Br and Bc: so many times those of the problem */
};

enum ascend_design_id {
    DESIGN_910B,
    DESIGN_WIDE_TILE,     /* Bc doubled */
    DESIGN_TALL_TILE,     /* Br doubled */
    DESIGN_NARROW_SCORES, /* S in the dtype of Q, K and V */
    DESIGN_DIRECT,        /* a 910B with the ways L0C -> UB and UB -> L1 */
    DESIGN_950,           /* an Ascend 950, which has them, and Br doubled */
    DESIGN_COUNT,
};
extern const struct ascend_design ascend_designs[DESIGN_COUNT];

/* "Bc doubled"; with narrow scores "S in f16", for that dtype: in a buffer that is returned. */
enum { DESIGN_NAME_SIZE = 24 };
char *ascend_design_name(char buffer[DESIGN_NAME_SIZE], const struct ascend_design *design,
                         enum dtype dtype);

/* The design's chip and problem are copies: not to be copied itself. */
struct ascend_counted {
    struct ascend chip;
    struct ascend_run run; /* has run, counts only */
    struct io_ascend simulated, predicted;
    bool equal;
};

/* Prepares c->chip and c->run for problem a, whose tiles become the design's. */
void ascend_counting_prepare(struct ascend_counted *c, const struct ascend_design *design,
                             const struct attention *a);

/* Prepares and counts. STATUS_ON_CHIP_FULL if the design's tiles do not fit its chip. */
enum status ascend_counting_run(struct ascend_counted *c, const struct ascend_design *design,
                                const struct attention *a, struct error *error);

/* The same problem, with the same tiles, on a 910B and by FlashAttention-2 on an H200. */
struct ascend_beside_gpu {
    struct ascend_counted ascend;
    struct counted gpu;
};

enum status ascend_beside_gpu_run(struct ascend_beside_gpu *both, const struct attention *a,
                                  struct error *error);

/* Bytes of Q, K, V, O, S, P and Oij between GM and all cores; the row statistics left out. */
int64_t ascend_gm_bytes(const struct io_ascend *io);

/* Bytes that S, P and Oij take in GM: two tiles of each for every AI core that works. */
int64_t ascend_workspace_bytes(const struct ascend_counted *c);

#endif
