#include "common/same_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/float64.h"
#include "common/inputs.h"

/* Runs one algorithm with data and gives its largest error against the formula. */
static enum status run_with_data(struct simulation *s, const struct inputs *in,
                                 const double *reference, double *largest, struct error *error)
{
    const size_t rows =
        (size_t)attention_planes_q(&s->attention) * (size_t)s->attention.seqlen_q;
    float *o = malloc(rows * (size_t)s->attention.head_dim_v * sizeof *o);
    float *lse = malloc(rows * sizeof *lse);
    enum status status = STATUS_OK;
    if (!o || !lse)
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the results");
    else
        status = attention_simulate(s, in->q.data, in->k.data, in->v.data, o, lse, error);
    if (!status)
        *largest = float64_largest_error(&s->attention, o, reference);
    free(o);
    free(lse);
    return status;
}

/* Rounds the input as hbm_upload() will, so that the reference sees the same numbers. */
static void round_inputs(struct inputs *in, enum dtype dtype)
{
    struct npy *arrays[] = {&in->q, &in->k, &in->v};
    for (int i = 0; i < 3; i++)
        dtype_round(arrays[i]->data, dtype, arrays[i]->data, (size_t)arrays[i]->count);
}

/* The input of the claim, and what the formula makes of it. */
struct real_head {
    struct options options; /* the lesson's, with the shapes of the input */
    struct inputs in;
    double *reference; /* (seqlen_q, head_dim_v) */
    double largest;    /* |reference| */
};

static enum status load_head(struct real_head *head, const struct options *options,
                             struct error *error)
{
    head->options = *options;
    head->options.q = FLASHLAB_ROOT "/lessons/data/minilm_q.npy";
    head->options.k = FLASHLAB_ROOT "/lessons/data/minilm_k.npy";
    head->options.v = FLASHLAB_ROOT "/lessons/data/minilm_v.npy";
    if (inputs_read(&head->in, &head->options, error))
        return error->status;
    const struct attention *a = &head->options.simulation.attention;
    const size_t count = (size_t)a->seqlen_q * (size_t)a->head_dim_v;
    head->reference = malloc(count * sizeof *head->reference);
    if (!head->reference) {
        inputs_free(&head->in);
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %zu doubles", count);
    }
    round_inputs(&head->in, a->dtype);
    float64_attention(head->reference, a, head->in.q.data, head->in.k.data, head->in.v.data);
    for (size_t i = 0; i < count; i++)
        head->largest = fmax(head->largest, fabs(head->reference[i]));
    return STATUS_OK;
}

static void claim_all(struct lesson *l, const struct real_head *head,
                      const double errors[ALGORITHM_COUNT])
{
    const struct attention *a = &head->options.simulation.attention;
    const double bound =
        2 * errors[ALGORITHM_STANDARD] + (double)dtype_epsilon(a->dtype) * head->largest;
    lesson_say(
        l,
        "Input: one head of all-MiniLM-L6-v2 reading the opening of Alice's Adventures\n"
        "in Wonderland: N = %d, d = %d, %s. Reference: the formula in float64. Allowed:\n"
        "twice the error of standard attention (%.1e) and one rounding of the largest\n"
        "output (%.2f).\n\n",
        a->seqlen_q, a->head_dim, dtype_name(a->dtype), errors[ALGORITHM_STANDARD],
        head->largest);
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        char claim[80];
        snprintf(claim, sizeof claim, "%s gives softmax(Q K^T / sqrt(d)) V",
                 algorithm_name((enum algorithm)i));
        lesson_claim_error(l, claim, bound, errors[i]);
    }
}

enum status lesson_same_result(struct lesson *l, struct error *error)
{
    struct real_head head = {0};
    double errors[ALGORITHM_COUNT];
    enum status status = load_head(&head, l->options, error);
    if (status)
        return status;
    for (int i = 0; i < ALGORITHM_COUNT && !status; i++) {
        head.options.simulation.algorithm = (enum algorithm)i;
        status = run_with_data(&head.options.simulation, &head.in, head.reference, &errors[i],
                               error);
    }
    if (!status)
        claim_all(l, &head, errors);
    free(head.reference);
    inputs_free(&head.in);
    return status;
}
