#include "common/reference.h"

#include <math.h>
#include <stdlib.h>

bool reference_sees(const struct attention *a, int query, int key)
{
    if (a->mask == MASK_CAUSAL) /* the last query sees the last key */
        return a->seqlen_k - key >= a->seqlen_q - query;
    if (a->mask == MASK_CAUSAL_TOP_LEFT) /* the first query sees the first key */
        return key <= query;
    return true;
}

/* One query: its row of Q, and the K and V of its head. */
struct query {
    int row;
    const float *q; /* (head_dim) */
    const float *k; /* (seqlen_k, head_dim) */
    const float *v; /* (seqlen_k, head_dim_v) */
};

/* Query number n, counted through batches, heads and rows. */
static struct query query_of(const struct problem *p, size_t n)
{
    const struct attention *a = &p->a;
    const size_t rows = (size_t)a->seqlen_q, keys = (size_t)a->seqlen_k;
    const size_t heads_q = (size_t)a->heads_q, heads_kv = (size_t)a->heads_kv;
    const size_t batch = n / rows / heads_q, head = n / rows % heads_q;
    const size_t head_kv = batch * heads_kv + head / (heads_q / heads_kv);
    return (struct query){
        .row = (int)(n % rows),
        .q = p->q + n * (size_t)a->head_dim,
        .k = p->k + head_kv * keys * (size_t)a->head_dim,
        .v = p->v + head_kv * keys * (size_t)a->head_dim_v,
    };
}

/* One row: o (head_dim_v) and the returned LSE. scores (seqlen_k) is scratch. */
static double reference_row(const struct attention *a, const struct query *query, double scale,
                            double *o, double *scores)
{
    const size_t d = (size_t)a->head_dim, dv = (size_t)a->head_dim_v;
    double max = -INFINITY, sum = 0;
    for (int j = 0; j < a->seqlen_k; j++) {
        if (!reference_sees(a, query->row, j))
            continue;
        double dot = 0;
        for (size_t c = 0; c < d; c++)
            dot += (double)query->q[c] * (double)query->k[(size_t)j * d + c];
        scores[j] = scale * dot;
        max = scores[j] > max ? scores[j] : max;
    }
    const double shift = max == -INFINITY ? 0 : max;
    for (size_t c = 0; c < dv; c++)
        o[c] = 0;
    for (int j = 0; j < a->seqlen_k; j++) {
        if (!reference_sees(a, query->row, j))
            continue;
        const double p = exp(scores[j] - shift);
        sum += p;
        for (size_t c = 0; c < dv; c++)
            o[c] += p * (double)query->v[(size_t)j * dv + c];
    }
    for (size_t c = 0; c < dv && sum != 0; c++)
        o[c] /= sum;
    return sum == 0 ? -INFINITY : max + log(sum);
}

void reference_attention(struct truth *truth, const struct problem *p, double scale)
{
    const size_t rows = count_lse(&p->a), dv = (size_t)p->a.head_dim_v;
    truth->o = allocate(rows * dv, sizeof *truth->o);
    truth->lse = allocate(rows, sizeof *truth->lse);
    double *scores = allocate((size_t)p->a.seqlen_k, sizeof *scores);
    for (size_t n = 0; n < rows; n++) {
        const struct query query = query_of(p, n);
        truth->lse[n] = reference_row(&p->a, &query, scale, truth->o + n * dv, scores);
    }
    free(scores);
}

void truth_free(struct truth *truth)
{
    free(truth->o);
    free(truth->lse);
    *truth = (struct truth){0};
}

static float round_to(enum dtype dtype, float x)
{
    dtype_round(&x, dtype, &x, 1);
    return x;
}

/* scores (seqlen_k) <- one row of S, -inf where a key is hidden. */
static void plain_scores(float *scores, const struct attention *a, const struct query *query)
{
    const size_t d = (size_t)a->head_dim;
    for (int j = 0; j < a->seqlen_k; j++) {
        float dot = 0;
        for (size_t c = 0; c < d; c++)
            dot += query->q[c] * query->k[(size_t)j * d + c];
        scores[j] = round_to(a->dtype, a->scale * dot);
        if (!reference_sees(a, query->row, j))
            scores[j] = -INFINITY;
    }
}

/* One row, in the arithmetic that the header describes: o (head_dim_v) and the returned LSE.
 * After each pass o is the output for the keys so far. */
static float plain_row(const struct attention *a, const struct query *query, int keys_a_pass,
                       float *o, float *scores)
{
    const size_t dv = (size_t)a->head_dim_v;
    float max = -INFINITY, sum = 0;
    plain_scores(scores, a, query);
    for (size_t c = 0; c < dv; c++)
        o[c] = 0;
    for (int first = 0; first < a->seqlen_k; first += keys_a_pass) {
        const int end = a->seqlen_k - first < keys_a_pass ? a->seqlen_k : first + keys_a_pass;
        const float max_before = max;
        for (int j = first; j < end; j++)
            max = scores[j] > max ? scores[j] : max;
        const float shift = max == -INFINITY ? 0 : max;
        const float earlier = sum * expf(max_before - shift);
        sum = earlier;
        for (int j = first; j < end; j++)
            sum += scores[j] = expf(scores[j] - shift);
        if (sum == 0)
            continue;
        const float inverse = 1 / sum;
        for (size_t c = 0; c < dv; c++)
            o[c] = o[c] * earlier * inverse;
        for (int j = first; j < end && reference_sees(a, query->row, j); j++) {
            const float p = round_to(a->dtype, scores[j] / sum);
            for (size_t c = 0; c < dv; c++)
                o[c] += p * query->v[(size_t)j * dv + c];
        }
        dtype_round(o, a->dtype, o, dv);
    }
    return sum == 0 ? -INFINITY : max + logf(sum);
}

void plain_attention(struct answer *answer, const struct problem *p, int keys_a_pass)
{
    const size_t rows = count_lse(&p->a), dv = (size_t)p->a.head_dim_v;
    *answer = (struct answer){.o = allocate(rows * dv, sizeof *answer->o),
                              .lse = allocate(rows, sizeof *answer->lse)};
    float *scores = allocate((size_t)p->a.seqlen_k, sizeof *scores);
    for (size_t n = 0; n < rows; n++) {
        const struct query query = query_of(p, n);
        float *o = answer->o + n * dv;
        answer->lse[n] = plain_row(&p->a, &query, keys_a_pass, o, scores);
    }
    free(scores);
}
