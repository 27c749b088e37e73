#include "common/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct variant variants[VARIANT_COUNT] = {
    {"naive", ALGORITHM_NAIVE, false},
    {"standard", ALGORITHM_STANDARD, false},
    {"standard on tiles", ALGORITHM_STANDARD, true},
    {"flash1", ALGORITHM_FLASH1, false},
    {"flash2", ALGORITHM_FLASH2, false},
};

static size_t product(int a, int b, int c, int d)
{
    return (size_t)a * (size_t)b * (size_t)c * (size_t)d;
}

size_t count_q(const struct attention *a)
{
    return product(a->batch, a->heads_q, a->seqlen_q, a->head_dim);
}

size_t count_k(const struct attention *a)
{
    return product(a->batch, a->heads_kv, a->seqlen_k, a->head_dim);
}

size_t count_v(const struct attention *a)
{
    return product(a->batch, a->heads_kv, a->seqlen_k, a->head_dim_v);
}

size_t count_o(const struct attention *a)
{
    return product(a->batch, a->heads_q, a->seqlen_q, a->head_dim_v);
}

size_t count_lse(const struct attention *a)
{
    return product(a->batch, a->heads_q, a->seqlen_q, 1);
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        fail_msg("no memory for %zu elements of %zu bytes", count, size);
    return memory;
}

uint64_t random_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int random_between(uint64_t *state, int low, int high)
{
    return low + (int)(random_next(state) % (uint64_t)(high - low + 1));
}

float random_normal(uint64_t *state) /* Box and Muller */
{
    const double radius = ldexp((double)(random_next(state) >> 11) + 1, -53);
    const double angle = ldexp((double)(random_next(state) >> 11), -53);
    return (float)(sqrt(-2 * log(radius)) * cos(2 * acos(-1) * angle));
}

struct attention random_attention(uint64_t *state, int most_rows, int most_head_dim)
{
    const int heads_kv = random_between(state, 1, 3);
    struct attention a = {
        .batch = random_between(state, 1, 2),
        .heads_q = heads_kv * random_between(state, 1, 3),
        .heads_kv = heads_kv,
        .seqlen_q = random_between(state, 1, most_rows),
        .seqlen_k = random_between(state, 1, most_rows),
        .head_dim = random_between(state, 1, most_head_dim),
        .mask = (enum mask)random_between(state, 0, MASK_COUNT - 1),
        .dtype = (enum dtype)random_between(state, 0, DTYPE_COUNT - 1),
        .block_q = random_between(state, 1, random_between(state, 0, 1) ? 12 : most_rows),
        .block_k = random_between(state, 1, random_between(state, 0, 1) ? 12 : most_rows),
    };
    const float usual = 1.0f / sqrtf((float)a.head_dim);
    const float scales[] = {usual, usual, usual, 0.3f, -usual, 0.0f};
    a.scale = scales[random_between(state, 0, 5)];
    a.head_dim_v =
        random_between(state, 0, 1) ? a.head_dim : random_between(state, 1, most_head_dim);
    return a;
}

static float *normal_numbers(size_t count, uint64_t *state)
{
    float *x = allocate(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = random_normal(state);
    return x;
}

void problem_fill(struct problem *p, uint64_t *state)
{
    p->q = normal_numbers(count_q(&p->a), state);
    p->k = normal_numbers(count_k(&p->a), state);
    p->v = normal_numbers(count_v(&p->a), state);
    problem_round(p);
}

void problem_free(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    *p = (struct problem){0};
}

static bool round_all(float *x, enum dtype dtype, size_t count)
{
    bool exact = true;
    for (size_t i = 0; i < count; i++) {
        const float before = x[i];
        dtype_round(&x[i], dtype, &x[i], 1);
        exact = exact && x[i] == before;
    }
    return exact;
}

bool problem_round(struct problem *p)
{
    const bool q = round_all(p->q, p->a.dtype, count_q(&p->a));
    const bool k = round_all(p->k, p->a.dtype, count_k(&p->a));
    const bool v = round_all(p->v, p->a.dtype, count_v(&p->a));
    return q && k && v;
}

const char *attention_text(const struct attention *a)
{
    static char text[256];
    snprintf(text, sizeof text,
             "batch %d, heads %d/%d, %d x %d, d %d/%d, scale %g, mask %s, %s, blocks %d x %d",
             a->batch, a->heads_q, a->heads_kv, a->seqlen_q, a->seqlen_k, a->head_dim,
             a->head_dim_v, (double)a->scale, mask_name(a->mask), dtype_name(a->dtype),
             a->block_q, a->block_k);
    return text;
}

void problem_run(struct answer *answer, const struct problem *p, const struct variant *variant)
{
    struct simulation s = {
        .algorithm = variant->algorithm, .attention = p->a, .machine = machine_default()};
    s.attention.tiled_gemm = variant->tiled_gemm;
    answer->o = allocate(count_o(&p->a), sizeof *answer->o);
    answer->lse = allocate(count_lse(&p->a), sizeof *answer->lse);
    struct error error;
    if (attention_simulate(&s, p->q, p->k, p->v, answer->o, answer->lse, &error))
        fail_msg("%s, %s: %s", variant->name, attention_text(&p->a), error.text);
    answer->account = gpu_account(&s.gpu);
}

void answer_free(struct answer *answer)
{
    free(answer->o);
    free(answer->lse);
    *answer = (struct answer){0};
}
