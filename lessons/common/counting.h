/* Counting runs for lessons: change a few numbers of a problem, count, pick out what matters.
 *
 * Interface:
 *   struct counted c;
 *   counting_run(&c, &options->simulation, ALGORITHM_FLASH2, &a, &error)
 *   c.simulated, c.predicted                     the two accounts
 *   counting_matrix_bytes(&c.simulated)          ... and what lessons compare
 */
#ifndef FLASHLAB_LESSONS_COUNTING_H
#define FLASHLAB_LESSONS_COUNTING_H

#include "kernels/attention_forward.h"

struct counted {
    struct simulation simulation; /* has run, counts only */
    struct account simulated, predicted;
    bool equal;
};

/* Counts the algorithm on problem a, on base's machine. */
enum status counting_run(struct counted *c, const struct simulation *base,
                         enum algorithm algorithm, const struct attention *a,
                         struct error *error);

/* The problem with another sequence length, for queries and keys. */
struct attention counting_with_seqlen(const struct attention *a, int seqlen);

/* Bytes moved of one tensor, read and written; 0 if the account has no such tensor. */
int64_t counting_tensor_bytes(const struct account *account, const char *name);

/* Bytes of Q, K, V, O, S and P: what the papers count. The row statistics (LSE, or l and m of
 * flash1) move too, and every table shows them, but the papers leave them out. */
int64_t counting_matrix_bytes(const struct account *account);

/* Elements of the tile of that name that a thread block of the first launch holds; 0 if none.
 */
int64_t counting_tile_bytes(const struct counted *c, const char *tile);

#endif
