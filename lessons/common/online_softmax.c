#include "common/online_softmax.h"

#include <math.h>

struct softmax_state softmax_state_empty(void)
{
    return (struct softmax_state){-INFINITY, 0.0f};
}

/* exp(from - to) for from <= to; 0 for from = -inf, to = -inf too, where the difference is NaN.
 */
static float factor(float from, float to)
{
    return from == -INFINITY ? 0.0f : expf(from - to);
}

float softmax_state_add(struct softmax_state *s, float x)
{
    const float m = fmaxf(s->m, x), rescale = factor(s->m, m);
    s->l = s->l * rescale + factor(x, m);
    s->m = m;
    return rescale;
}

struct softmax_state softmax_state_merge(struct softmax_state a, struct softmax_state b)
{
    const float m = fmaxf(a.m, b.m);
    return (struct softmax_state){m, a.l * factor(a.m, m) + b.l * factor(b.m, m)};
}

struct softmax_state softmax_state_defined(const float *x, int count)
{
    struct softmax_state s = softmax_state_empty();
    double sum = 0;
    for (int n = 0; n < count; n++)
        s.m = fmaxf(s.m, x[n]);
    for (int n = 0; n < count; n++)
        sum += x[n] == -INFINITY ? 0.0 : exp((double)x[n] - (double)s.m);
    s.l = (float)sum;
    return s;
}
