/* Arithmetic on tiles: what a thread block computes between its loads and stores.
 *
 * Interface:
 *   Every operation works on the first rows rows and cols columns of its tiles (the rest is
 *   padding of ragged tiles), counts its FLOPs by kind, and in counts-only mode does nothing
 *   else. Names are the paper's: S scores, P probabilities, m row maximum, l row sum, O output.
 *   m, l, c and L are rows x 1 tiles.
 *
 * -inf means "no key": m = -inf for a row that has seen none. (-inf) - (-inf) never happens;
 * such rows have P = 0, l = 0, and in the end O = 0 and L = -inf. NaN and infinite scores
 * propagate to O and L, those of keys that a mask hides do not.
 */
#ifndef FLASHLAB_OPS_TILE_OPS_H
#define FLASHLAB_OPS_TILE_OPS_H

#include "core/attention.h"
#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every element of t <- value. Not an arithmetic operation: no FLOPs. */
void tile_fill(struct tile *t, float value);

/* dst <- src, both of the same shape. No FLOPs. */
void tile_copy(struct tile *dst, const struct tile *src);

/* t <- t rounded to the dtype, as the cast of P before the second product. No FLOPs. */
void tile_round(struct tile *t, enum dtype dtype, int rows, int cols);

/* S (rows x cols) <- scale * Q (rows x d) K^T (K: cols x d), d the columns of Q.
 * 2 rows cols d matrix FLOPs, rows cols other. */
void tile_scores(struct tile *S, const struct tile *Q, const struct tile *K, int rows, int cols,
                 float scale);

/* O (rows x dv) <- O + P (rows x cols) V (cols x dv), dv the columns of O.
 * 2 rows cols dv matrix FLOPs. */
void tile_add_product(struct tile *O, const struct tile *P, const struct tile *V, int rows,
                      int cols);

/* The same without the keys that a's mask hides, so that not even a NaN or infinity in their
 * rows of V, which P = 0 would not cancel, reaches O. P's first element is that of query row0
 * and key col0. The FLOPs are those of the whole product. */
void tile_add_masked_product(struct tile *O, const struct tile *P, const struct tile *V,
                             const struct attention *a, int row0, int col0, int rows, int cols);

/* S <- -inf where a's mask hides the key from the query. The tile's first element is the score
 * of query row0 and key col0. No FLOPs. */
void tile_mask(struct tile *S, const struct attention *a, int row0, int col0, int rows,
               int cols);

/* m_new <- max(m, row maxima of S). rows cols other. */
void tile_row_max(struct tile *m_new, const struct tile *m, const struct tile *S, int rows,
                  int cols);

/* c <- exp(m - m_new), the factor that takes sums relative to m to sums relative to m_new.
 * rows exp, rows other. */
void tile_correction(struct tile *c, const struct tile *m, const struct tile *m_new, int rows);

/* S <- P = exp(S - m), row by row, and l <- c l + row sums of P.
 * rows cols exp, 2 rows cols + rows other. */
void tile_exp_sum(struct tile *S, const struct tile *m, struct tile *l, const struct tile *c,
                  int rows, int cols);

/* S <- exp(S - m), row by row. rows cols exp, rows cols other. */
void tile_exp(struct tile *S, const struct tile *m, int rows, int cols);

/* O <- diag(c) O. rows cols other. */
void tile_scale_rows(struct tile *O, const struct tile *c, int rows, int cols);

/* O <- O + X. rows cols other. */
void tile_add(struct tile *O, const struct tile *X, int rows, int cols);

/* O <- diag(l)^-1 O, rows with l = 0 become 0. rows cols other. */
void tile_divide_rows(struct tile *O, const struct tile *l, int rows, int cols);

/* L <- m + log l, -inf where l = 0. 2 rows other. */
void tile_log_sum_exp(struct tile *L, const struct tile *m, const struct tile *l, int rows);

#ifdef __cplusplus
}
#endif

#endif
