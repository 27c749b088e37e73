/* When an algorithm's O and LSE are right.
 *
 *   largest error against float64  <=  2 x the plain version's largest error + a floor
 *
 * The plain version (reference.h) has no tiles and rounds where the algorithm rounds: its error
 * is what the dtype costs. Another order of additions may make an algorithm somewhat worse, not
 * twice as bad; an error of method is far beyond. Source of the rule: the tests of
 * Dao-AILab/flash-attention. The floor is for results that the plain version hits by luck: see
 * tolerance.c.
 *
 * NaN and infinities come first: they have to be exactly where float64 has them. Comparisons
 * are written so that a NaN fails them.
 *
 * Interface:
 *   reference_attention(&truth, &p, scale);
 *   yardsticks_make(&yardsticks, &p);
 *   problem_run(&answer, &p, variant);
 *   assert_right(&p.a, variant, &answer, &yardsticks, &truth);
 */
#ifndef FLASHLAB_TESTS_TOLERANCE_H
#define FLASHLAB_TESTS_TOLERANCE_H

#include <stdbool.h>

#include "common/reference.h"

struct verdict {
    bool right;
    double error;   /* largest, over the finite elements */
    double plain;   /* the same of the plain version */
    double floor;   /* right needs error <= 2 plain + floor */
    long misplaced; /* index of the first NaN or infinity where another value is due, or -1 */
};

/* got[count] and plain[count], which were stored in dtype, against want[count]. */
struct verdict judge(enum dtype dtype, const float *got, const float *plain, const double *want,
                     size_t count);

/* The plain version, rounded in different places. */
struct yardsticks {
    struct answer whole;     /* S, P and O rounded once */
    struct answer in_passes; /* O rounded after every a.block_k keys: flash1 */
    struct answer f32;       /* nothing rounded below fp32: the LSE where S stays on chip */
};

void yardsticks_make(struct yardsticks *yardsticks, const struct problem *p);
/* Makes in_passes again, the only one that depends on a.block_k. */
void yardsticks_follow_blocks(struct yardsticks *yardsticks, const struct problem *p);
void yardsticks_free(struct yardsticks *yardsticks);

/* Both outputs of a run of the variant. LSE is stored in F32 whatever a->dtype. */
struct verdict judge_o(const struct attention *a, const struct variant *variant, const float *o,
                       const struct yardsticks *yardsticks, const struct truth *truth);
struct verdict judge_lse(const struct attention *a, const struct variant *variant,
                         const float *lse, const struct yardsticks *yardsticks,
                         const struct truth *truth);

/* Fails the test, naming what was run, unless both are right. */
void assert_right(const struct attention *a, const struct variant *variant,
                  const struct answer *answer, const struct yardsticks *yardsticks,
                  const struct truth *truth);

#endif
