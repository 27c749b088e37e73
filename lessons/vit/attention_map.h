/* What an attention map shows: rows of P = softmax(scale Q K^T), from Q, K and the LSE that a
 * kernel leaves, and what can be said of them in numbers.
 *
 * Interface:
 *   struct heads h = {12, 196, 64, 0.125, q, k};
 *   attention_map_row(row, &h, head, query, lse)      P of one query
 *   attention_map_mean(row, &h, query, lse)           its mean over the heads
 *   attention_map_scores(&h)                          variance of scores, entropy of P
 */
#ifndef FLASHLAB_LESSONS_VIT_ATTENTION_MAP_H
#define FLASHLAB_LESSONS_VIT_ATTENTION_MAP_H

struct heads {
    int heads, tokens, head_dim;
    double scale;
    const float *q, *k; /* (heads, tokens, head_dim), not owned */
};

/* row (tokens) <- exp(S - LSE), S in double. lse (heads, tokens): of that scale. */
void attention_map_row(double *row, const struct heads *h, int head, int query,
                       const float *lse);
void attention_map_mean(double *row, const struct heads *h, int query, const float *lse);

/* Over all queries and keys of all heads. */
struct score_numbers {
    double variance; /* of the scaled scores */
    double entropy;  /* in nats: the mean over the rows of P */
    double largest;  /* of a row: the mean over the rows of P */
};

struct score_numbers attention_map_scores(const struct heads *h);

/* How well heads keep angles: the root of the mean square difference of the cosine of two
 * queries of a head and that of the same two rows of x (tokens, width), over all pairs and
 * heads. Rows of length 0 count as at right angles to all. */
double attention_map_angle_error(const struct heads *h, const float *x, int width);

#endif
