/* Attention written down twice, as simply as it goes, sharing nothing with sim/.
 *
 *   reference_attention()  the formula in double: what every algorithm is measured against
 *   plain_attention()      what a few lines of array code on a GPU give in that dtype: the
 *                          yardstick for how far from the formula an algorithm may be
 *
 * Keys that a mask hides are left out, whatever their values. Rows without keys, and rows whose
 * scores are all -inf, give O = 0 and LSE = -inf. NaN scores give NaN.
 */
#ifndef FLASHLAB_TESTS_REFERENCE_H
#define FLASHLAB_TESTS_REFERENCE_H

#include <stdbool.h>

#include "common/problem.h"

/* o (batch, heads_q, seqlen_q, head_dim_v), lse (batch, heads_q, seqlen_q): owned. */
struct truth {
    double *o, *lse;
};

/* True if the mask lets that query see that key. */
bool reference_sees(const struct attention *a, int query, int key);

/* scale: the problem's, before it was rounded to float. */
void reference_attention(struct truth *truth, const struct problem *p, double scale);
void truth_free(struct truth *truth);

/* S in fp32, rounded to p->a.dtype; softmax in fp32; P rounded to the dtype; O summed in fp32,
 * rounded to the dtype. So it is after every keys_a_pass keys, as in FlashAttention-1, where O
 * waits in HBM for the next pass, and is multiplied by l and then by 1 / l in fp32 each time;
 * p->a.seqlen_k: one pass. answer_free() frees the answer; its account is empty. */
void plain_attention(struct answer *answer, const struct problem *p, int keys_a_pass);

#endif
