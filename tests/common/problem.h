/* Attention problems with host arrays, random numbers to make them of, and one call to run
 * them.
 *
 * Interface:
 *   struct problem p = {.a = {...}};
 *   uint64_t seed = 1;
 *   problem_fill(&p, &seed);                             normal q, k and v, rounded to a.dtype
 *   struct answer answer;
 *   problem_run(&answer, &p, &variants[0]);              simulates; fails the test if that
 * fails answer_free(&answer); problem_free(&p); Every number comes from splitmix64 with a seed
 * that the test names: the same on every run.
 */
#ifndef FLASHLAB_TESTS_PROBLEM_H
#define FLASHLAB_TESTS_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/attention_forward.h"

/* q (batch, heads_q, seqlen_q, head_dim), k (batch, heads_kv, seqlen_k, head_dim), v (batch,
 * heads_kv, seqlen_k, head_dim_v): owned, each element representable in a.dtype. */
struct problem {
    struct attention a;
    float *q, *k, *v;
};

/* o (batch, heads_q, seqlen_q, head_dim_v), lse (batch, heads_q, seqlen_q): owned. */
struct answer {
    float *o, *lse;
    struct account account;
};

/* The algorithms as the tests run them: four, and standard attention on real tiles. */
struct variant {
    const char *name;
    enum algorithm algorithm;
    bool tiled_gemm;
};
enum { VARIANT_COUNT = 5 };
extern const struct variant variants[VARIANT_COUNT];

/* Elements of each array. */
size_t count_q(const struct attention *a);
size_t count_k(const struct attention *a);
size_t count_v(const struct attention *a);
size_t count_o(const struct attention *a);
size_t count_lse(const struct attention *a);

/* count zeroed elements of size bytes; fails the test without memory. free() them. */
void *allocate(size_t count, size_t size);

uint64_t random_next(uint64_t *state);
int random_between(uint64_t *state, int low, int high); /* both included */
float random_normal(uint64_t *state);

/* A random problem's shape, mask, scale, dtype and blocks, each extent from 1 to about its
 * limit: grouped heads, seqlen_q != seqlen_k, head_dim != head_dim_v, blocks beyond the length.
 */
struct attention random_attention(uint64_t *state, int most_rows, int most_head_dim);

/* Allocates q, k and v for p->a and fills them with normal numbers. */
void problem_fill(struct problem *p, uint64_t *state);
void problem_free(struct problem *p);

/* Rounds q, k and v to p->a.dtype; false if an element changed. */
bool problem_round(struct problem *p);

/* "batch 1, heads 6/2, 96 x 96, ..." in a static buffer: for messages. */
const char *attention_text(const struct attention *a);

/* Runs the variant on the default machine. */
void problem_run(struct answer *answer, const struct problem *p, const struct variant *variant);
void answer_free(struct answer *answer);

#endif
