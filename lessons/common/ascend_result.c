#include "common/ascend_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/ascend_counting.h"
#include "common/float64.h"
#include "common/inputs.h"

/* The input, what the formula makes of it, and room for what a run makes of it. */
struct head {
    struct attention a;
    struct inputs in;
    double *reference; /* (seqlen_q, head_dim_v) */
    float *o, *lse;
    double largest; /* |reference| */
};

static void head_free(struct head *head)
{
    free(head->reference);
    free(head->o);
    free(head->lse);
    inputs_free(&head->in);
}

/* Reads the head and rounds it as kernels will see it. The problem has the lesson's tiles. */
static enum status head_read(struct head *head, const struct options *lesson,
                             struct error *error)
{
    struct options o = *lesson;
    o.q = FLASHLAB_ROOT "/lessons/data/minilm_q.npy";
    o.k = FLASHLAB_ROOT "/lessons/data/minilm_k.npy";
    o.v = FLASHLAB_ROOT "/lessons/data/minilm_v.npy";
    *head = (struct head){0};
    if (inputs_read(&head->in, &o, error))
        return error->status;
    head->a = o.simulation.attention;
    struct npy *const arrays[] = {&head->in.q, &head->in.k, &head->in.v};
    for (int i = 0; i < 3; i++)
        dtype_round(arrays[i]->data, head->a.dtype, arrays[i]->data, (size_t)arrays[i]->count);
    const size_t rows = (size_t)head->a.seqlen_q, count = rows * (size_t)head->a.head_dim_v;
    head->reference = malloc(count * sizeof *head->reference);
    head->o = malloc(count * sizeof *head->o);
    head->lse = malloc(rows * sizeof *head->lse);
    if (!head->reference || !head->o || !head->lse) {
        head_free(head);
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %zu results", count);
    }
    float64_attention(head->reference, &head->a, head->in.q.data, head->in.k.data,
                      head->in.v.data);
    for (size_t i = 0; i < count; i++)
        head->largest = fmax(head->largest, fabs(head->reference[i]));
    return STATUS_OK;
}

/* What may be the largest error: by standard attention's. */
static enum status allowed_error(double *allowed, struct head *head, struct error *error)
{
    struct simulation s = {
        .algorithm = ALGORITHM_STANDARD, .attention = head->a, .machine = machine_default()};
    if (attention_simulate(&s, head->in.q.data, head->in.k.data, head->in.v.data, head->o,
                           head->lse, error))
        return error->status;
    *allowed = 2 * float64_largest_error(&head->a, head->o, head->reference) +
               (double)dtype_epsilon(head->a.dtype) * head->largest;
    return STATUS_OK;
}

static enum status claim_design(struct lesson *l, struct head *head, const char *claim,
                                enum ascend_design_id design, double allowed,
                                struct error *error)
{
    struct ascend_counted c;
    ascend_counting_prepare(&c, &ascend_designs[design], &head->a);
    if (ascend_simulate(&c.run, head->in.q.data, head->in.k.data, head->in.v.data, head->o,
                        head->lse, error))
        return error->status;
    lesson_claim_error(l, claim, allowed,
                       float64_largest_error(&head->a, head->o, head->reference));
    return STATUS_OK;
}

static enum status claim_all(struct lesson *l, struct head *head, struct error *error)
{
    char narrow[80];
    double allowed = 0;
    if (allowed_error(&allowed, head, error))
        return error->status;
    snprintf(narrow, sizeof narrow, "... with S in %s between the cores",
             dtype_name(head->a.dtype));
    lesson_say(l,
               "Input: one head of all-MiniLM-L6-v2 reading the opening of Alice's Adventures\n"
               "in Wonderland: N = %d, d = %d, %s. Allowed: twice the error of standard\n"
               "attention against float64, and one rounding of the largest output.\n\n",
               head->a.seqlen_q, head->a.head_dim, dtype_name(head->a.dtype));
    if (claim_design(l, head, "Tiles through global memory give softmax(Q K^T / sqrt(d)) V",
                     DESIGN_910B, allowed, error) ||
        claim_design(l, head, narrow, DESIGN_NARROW_SCORES, allowed, error) ||
        claim_design(l, head, "... with direct ways between the cores", DESIGN_DIRECT, allowed,
                     error))
        return error->status;
    return STATUS_OK;
}

enum status ascend_claim_result(struct lesson *l, struct error *error)
{
    struct head head;
    enum status status = head_read(&head, l->options, error);
    if (status)
        return status;
    status = claim_all(l, &head, error);
    head_free(&head);
    return status;
}
