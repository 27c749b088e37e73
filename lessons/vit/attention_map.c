#include "vit/attention_map.h"

#include <math.h>
#include <stddef.h>

static double dot(const float *a, const float *b, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static const float *row_of(const struct heads *h, const float *tensor, int head, int token)
{
    return tensor + ((ptrdiff_t)head * h->tokens + token) * h->head_dim;
}

static double score(const struct heads *h, int head, int query, int key)
{
    return h->scale *
           dot(row_of(h, h->q, head, query), row_of(h, h->k, head, key), h->head_dim);
}

void attention_map_row(double *row, const struct heads *h, int head, int query,
                       const float *lse)
{
    for (int key = 0; key < h->tokens; key++)
        row[key] =
            exp(score(h, head, query, key) - (double)lse[(ptrdiff_t)head * h->tokens + query]);
}

void attention_map_mean(double *row, const struct heads *h, int query, const float *lse)
{
    for (int key = 0; key < h->tokens; key++)
        row[key] = 0;
    for (int head = 0; head < h->heads; head++)
        for (int key = 0; key < h->tokens; key++)
            row[key] += exp(score(h, head, query, key) -
                            (double)lse[(ptrdiff_t)head * h->tokens + query]) /
                        h->heads;
}

/* Adds one row to the sums: its scores and their squares, the entropy and the largest of P. */
struct sums {
    double scores, squares, entropy, largest;
};

static void add_row(struct sums *sums, const struct heads *h, int head, int query)
{
    double largest = -INFINITY, total = 0, weighted = 0;
    for (int key = 0; key < h->tokens; key++)
        largest = fmax(largest, score(h, head, query, key));
    for (int key = 0; key < h->tokens; key++) {
        const double s = score(h, head, query, key), e = exp(s - largest);
        sums->scores += s;
        sums->squares += s * s;
        total += e;
        weighted += e * (s - largest);
    }
    sums->entropy += log(total) - weighted / total; /* - sum p log p, p = e / total */
    sums->largest += 1 / total;
}

struct score_numbers attention_map_scores(const struct heads *h)
{
    struct sums sums = {0};
    for (int head = 0; head < h->heads; head++)
        for (int query = 0; query < h->tokens; query++)
            add_row(&sums, h, head, query);
    const double rows = (double)h->heads * h->tokens, scores = rows * h->tokens;
    const double mean = sums.scores / scores;
    return (struct score_numbers){sums.squares / scores - mean * mean, sums.entropy / rows,
                                  sums.largest / rows};
}

static double cosine(const float *a, const float *b, int count)
{
    const double lengths = sqrt(dot(a, a, count) * dot(b, b, count));
    return lengths > 0 ? dot(a, b, count) / lengths : 0;
}

double attention_map_angle_error(const struct heads *h, const float *x, int width)
{
    double squares = 0;
    int pairs = 0;
    for (int i = 0; i < h->tokens; i++)
        for (int j = 0; j < i; j++, pairs++) {
            const double true_cosine =
                cosine(x + (ptrdiff_t)i * width, x + (ptrdiff_t)j * width, width);
            for (int head = 0; head < h->heads; head++)
                squares += pow(
                    cosine(row_of(h, h->q, head, i), row_of(h, h->q, head, j), h->head_dim) -
                        true_cosine,
                    2);
        }
    return sqrt(squares / pairs / h->heads);
}
