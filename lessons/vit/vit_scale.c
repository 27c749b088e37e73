/* Why 1/sqrt(d): the section of lesson 04 that measures scores with and without it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/random_inputs.h"
#include "vit/vit_claims.h"

/* The same rows with and without 1/sqrt(d). */
struct scaling {
    struct score_numbers plain, scaled;
};

static struct scaling scaling_of(const struct heads *h)
{
    struct heads plain = *h;
    plain.scale = 1;
    return (struct scaling){attention_map_scores(&plain), attention_map_scores(h)};
}

static void say_scaling(struct lesson *l, const char *who, const struct scaling *s)
{
    lesson_say(l, "%-22s %10.2f %8.2f %8.3f %10.2f %8.2f %8.3f\n", who, s->plain.variance,
               s->plain.entropy, s->plain.largest, s->scaled.variance, s->scaled.entropy,
               s->scaled.largest);
}

/* N rows of d numbers of mean 0 and variance 1, as Vaswani et al. suppose. */
static enum status random_scaling(struct scaling *s, int d, struct error *error)
{
    enum { SEED = 2, TENSOR = 1 };
    const size_t count = (size_t)VIT_PATCHES * (size_t)d;
    float *q = malloc(2 * count * sizeof *q);
    if (!q)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for Q and K");
    random_fill(q, 2 * count, SEED, TENSOR);
    for (size_t i = 0; i < 2 * count; i++)
        q[i] *= sqrtf(0.75f); /* random_fill()'s variance is 4/3 */
    const struct heads h = {1, VIT_PATCHES, d, 1 / sqrt(d), q, q + count};
    *s = scaling_of(&h);
    free(q);
    return STATUS_OK;
}

/* Largest deviations of random rows from what theory says of them. */
struct deviations {
    double plain, scaled, entropy;
};

static enum status claim_random(struct lesson *l, struct deviations *most, int d,
                                struct error *error)
{
    struct scaling s;
    char who[32];
    if (random_scaling(&s, d, error))
        return error->status;
    snprintf(who, sizeof who, "random, d = %d", d);
    say_scaling(l, who, &s);
    most->plain = fmax(most->plain, fabs(s.plain.variance / d - 1));
    most->scaled = fmax(most->scaled, fabs(s.scaled.variance - 1));
    most->entropy = fmax(most->entropy, fabs(s.scaled.entropy - (log(VIT_PATCHES) - 0.5)));
    return STATUS_OK;
}

enum { LEAST_D = 16, MOST_D = 256 };

enum status vit_claim_scale(struct lesson *l, const struct vit *vit, struct error *error)
{
    const struct heads h = vit_heads(vit);
    struct deviations most = {0};
    struct scaling s = scaling_of(&h);
    lesson_say(
        l, "The sum of d products of independent numbers of mean 0 and variance 1 has\n"
           "variance d (Vaswani et al. 2017, 3.2.1). Softmax of such scores is nearly one-\n"
           "hot, and its gradient nearly 0. Entropy of a row of P in nats, of at most\n"
           "ln 196 = 5.28; largest: of a row, both means over the rows.\n\n");
    lesson_say(l, "%-22s %28s %28s\n", "", "q.k", "q.k / sqrt(d)");
    lesson_say(l, "%-22s %10s %8s %8s %10s %8s %8s\n", "", "variance", "entropy", "largest",
               "variance", "entropy", "largest");
    for (int d = LEAST_D; d <= MOST_D; d *= 4)
        if (claim_random(l, &most, d, error))
            return error->status;
    say_scaling(l, "this picture, d = 64", &s);
    if (vit_is_trained(vit)) {
        const struct heads trained = vit_trained_heads(vit);
        char who[32];
        s = scaling_of(&trained);
        snprintf(who, sizeof who, "trained, d = %d", trained.head_dim);
        say_scaling(l, who, &s);
    }
    lesson_say(l, "\n");
    /* Four standard deviations of the product of two mean squares of N d numbers, whose own
     * squares have variance 0.8, at the smallest d. */
    const double allowed = 4 * sqrt(2 * 0.8 / (VIT_PATCHES * LEAST_D));
    lesson_claim_error(l, "Random rows: the variance of q.k is d, at every d", allowed,
                       most.plain);
    lesson_claim_error(l, "Scaled, it is 1 at every d", allowed, most.scaled);
    /* Of weights exp(s), s normal of variance 1, it is ln N + 1/2 - 1. Rows are not equally
     * long and N is finite: 2 % of ln N is allowed. */
    lesson_claim_error(l, "and the entropy is ln N - 1/2, whatever d is", 0.1, most.entropy);
    return STATUS_OK;
}
