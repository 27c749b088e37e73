#include "common/float64.h"

#include <math.h>
#include <stdlib.h>

/* p[visible] <- exp(scale q . k_j - max), returns their sum. */
static double row_of_weights(double *p, const struct attention *a, const float *q,
                             const float *k, int visible)
{
    double max = -INFINITY, sum = 0;
    for (int j = 0; j < visible; j++) {
        double dot = 0;
        for (int c = 0; c < a->head_dim; c++)
            dot += (double)q[c] * (double)k[(size_t)j * (size_t)a->head_dim + (size_t)c];
        p[j] = (double)a->scale * dot;
        max = p[j] > max ? p[j] : max;
    }
    for (int j = 0; j < visible; j++)
        sum += p[j] = exp(p[j] - max);
    return sum;
}

void float64_attention(double *o, const struct attention *a, const float *q, const float *k,
                       const float *v)
{
    const size_t d = (size_t)a->head_dim, dv = (size_t)a->head_dim_v;
    const size_t queries = (size_t)a->seqlen_q, keys = (size_t)a->seqlen_k;
#pragma omp parallel for schedule(dynamic, 16) collapse(2)
    for (int plane = 0; plane < attention_planes_q(a); plane++) {
        for (size_t i = 0; i < queries; i++) {
            const size_t kv_plane = (size_t)attention_kv_plane(a, plane);
            const size_t row = (size_t)plane * queries + i;
            const int visible = attention_visible_keys(a, (int)i);
            double *p = malloc(keys * sizeof *p);
            CHECK(p, "no host memory for %zu doubles", keys);
            const double sum =
                row_of_weights(p, a, q + row * d, k + kv_plane * keys * d, visible);
            for (size_t c = 0; c < dv; c++) {
                double value = 0;
                for (size_t j = 0; j < (size_t)visible; j++)
                    value += p[j] * (double)v[(kv_plane * keys + j) * dv + c];
                o[row * dv + c] = visible > 0 ? value / sum : 0.0;
            }
            free(p);
        }
    }
}

double float64_largest_error(const struct attention *a, const float *o, const double *reference)
{
    const size_t count =
        (size_t)attention_planes_q(a) * (size_t)a->seqlen_q * (size_t)a->head_dim_v;
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double error = fabs((double)o[i] - reference[i]);
        if (isnan(error))
            return error;
        largest = error > largest ? error : largest;
    }
    return largest;
}
