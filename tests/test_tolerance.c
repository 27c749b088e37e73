/* The judge of attention outputs: what it must refuse.
 *
 * Every other test of the algorithms trusts tests/common. Here outputs are spoiled as broken
 * kernels spoil them (NaN, constants, zeros, a row or an element off, wrong methods), in every
 * dtype and for every algorithm's yardstick, and each must be refused, while the plain version
 * itself passes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/tolerance.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* A problem with all that the judge needs. */
struct subject {
    struct problem p;
    struct truth truth;
    struct yardsticks yardsticks;
};

static void make_subject(struct subject *s, enum dtype dtype, enum mask mask)
{
    uint64_t seed = 2718;
    s->p.a = (struct attention){
        .batch = 1,
        .heads_q = 4,
        .heads_kv = 2,
        .seqlen_q = 40, /* causal: the first 8 rows see no key */
        .seqlen_k = 32,
        .head_dim = 16,
        .head_dim_v = 16,
        .scale = 0.25f,
        .mask = mask,
        .dtype = dtype,
        .block_q = 16,
        .block_k = 12,
    };
    problem_fill(&s->p, &seed);
    reference_attention(&s->truth, &s->p, (double)s->p.a.scale);
    yardsticks_make(&s->yardsticks, &s->p);
}

static void free_subject(struct subject *s)
{
    yardsticks_free(&s->yardsticks);
    truth_free(&s->truth);
    problem_free(&s->p);
}

/* x (rows x columns) is a right answer, which the function spoils; allowed is the largest error
 * that would pass. */
typedef void spoil_function(float *x, size_t rows, size_t columns, double allowed);

static void nothing(float *x, size_t rows, size_t columns, double allowed)
{
    (void)x, (void)rows, (void)columns, (void)allowed;
}

static void one_nan(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    x[rows * columns - 1] = NAN;
}

static void all_nan(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    for (size_t i = 0; i < rows * columns; i++)
        x[i] = NAN;
}

static void one_infinity(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    x[rows * columns / 2] = INFINITY;
}

/* The mean: the constant that comes nearest. */
static void constant(float *x, size_t rows, size_t columns, double allowed)
{
    double sum = 0;
    size_t count = 0;
    (void)allowed;
    for (size_t i = 0; i < rows * columns; i++) {
        if (isfinite(x[i])) {
            sum += (double)x[i];
            count++;
        }
    }
    for (size_t i = 0; i < rows * columns; i++)
        if (isfinite(x[i]))
            x[i] = (float)(sum / (double)count);
}

static void zeros(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    memset(x, 0, rows * columns * sizeof *x);
}

static void next_row(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    memmove(x, x + columns, (rows - 1) * columns * sizeof *x);
}

static void next_element(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    memmove(x, x + 1, (rows * columns - 1) * sizeof *x);
}

/* The row with the largest element: in 8 bits a smaller one is within the allowance. */
static void one_row_of_zeros(float *x, size_t rows, size_t columns, double allowed)
{
    size_t largest = 0;
    (void)allowed;
    for (size_t i = 0; i < rows * columns; i++)
        if (isfinite(x[i]) && !(fabsf(x[i]) <= fabsf(x[largest])))
            largest = i;
    memset(x + largest / columns * columns, 0, columns * sizeof *x);
}

/* 1 % more than allowed beyond the plain version's error and its own. */
static void one_element_off(float *x, size_t rows, size_t columns, double allowed)
{
    x[rows * columns - 1] += (float)(2.02 * allowed);
}

static void doubled(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    for (size_t i = 0; i < rows * columns; i++)
        x[i] *= 2;
}

static void other_sign(float *x, size_t rows, size_t columns, double allowed)
{
    (void)allowed;
    for (size_t i = 0; i < rows * columns; i++)
        x[i] = -x[i];
}

static const struct {
    const char *name;
    spoil_function *spoil;
} spoilings[] = {
    {"nothing", nothing},
    {"one NaN", one_nan},
    {"all NaN", all_nan},
    {"one infinity", one_infinity},
    {"a constant", constant},
    {"zeros", zeros},
    {"off by one row", next_row},
    {"off by one element", next_element},
    {"one row of zeros", one_row_of_zeros},
    {"one element off", one_element_off},
    {"doubled", doubled},
    {"of the other sign", other_sign},
};

static double allowed_by(const struct verdict *verdict)
{
    return 2 * verdict->plain + verdict->floor;
}

/* Spoils the plain version's O, or LSE, in every way, and judges it. */
static void check_spoilings(const struct subject *s, const struct variant *variant, bool lse)
{
    const struct attention *a = &s->p.a;
    const struct yardsticks *y = &s->yardsticks;
    const size_t rows = count_lse(a), columns = lse ? 1 : (size_t)a->head_dim_v;
    const float *plain_o = variant->algorithm == ALGORITHM_FLASH1 ? y->in_passes.o : y->whole.o;
    const float *plain_lse =
        variant->algorithm == ALGORITHM_STANDARD ? y->whole.lse : y->f32.lse;
    float *x = allocate(rows * columns, sizeof *x);
    for (size_t k = 0; k < LENGTH(spoilings); k++) {
        memcpy(x, lse ? plain_lse : plain_o, rows * columns * sizeof *x);
        struct verdict verdict =
            lse ? judge_lse(a, variant, x, y, &s->truth) : judge_o(a, variant, x, y, &s->truth);
        spoilings[k].spoil(x, rows, columns, allowed_by(&verdict));
        verdict =
            lse ? judge_lse(a, variant, x, y, &s->truth) : judge_o(a, variant, x, y, &s->truth);
        if (verdict.right != (spoilings[k].spoil == nothing))
            fail_msg("%s of %s, %s, spoiled with %s: judged %s; off by %g, allowed %g",
                     lse ? "LSE" : "O", variant->name, attention_text(a), spoilings[k].name,
                     verdict.right ? "right" : "wrong", verdict.error, allowed_by(&verdict));
    }
    free(x);
}

static void test_spoiled_outputs_are_refused(void **state)
{
    (void)state;
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPE_COUNT; dtype++) {
        for (enum mask mask = MASK_NONE; mask < MASK_COUNT; mask++) {
            struct subject s;
            make_subject(&s, dtype, mask);
            for (int v = 0; v < VARIANT_COUNT; v++) {
                check_spoilings(&s, &variants[v], false);
                check_spoilings(&s, &variants[v], true);
            }
            free_subject(&s);
        }
    }
}

/* Mistakes of method: the plain version, without rounding, of a problem that is not the one
 * asked for. */
enum method {
    METHOD_RIGHT,
    METHOD_OTHER_DIAGONAL,
    METHOD_NO_SCALE,
    METHOD_LAST_KEY_LOST,
    METHOD_OTHER_KV_HEADS, /* h % heads_kv instead of h / group */
    METHOD_KEY_TWICE,      /* keys 0 and 1 both read key 0 */
    METHOD_COUNT
};

static void mistake(struct problem *p, enum method method)
{
    const size_t d = (size_t)p->a.head_dim, head = (size_t)p->a.seqlen_k * d;
    if (method == METHOD_OTHER_DIAGONAL)
        p->a.mask = p->a.mask == MASK_CAUSAL ? MASK_CAUSAL_TOP_LEFT : MASK_CAUSAL;
    else if (method == METHOD_NO_SCALE)
        p->a.scale = 1;
    else if (method == METHOD_LAST_KEY_LOST)
        for (size_t c = 0; c < d; c++)
            p->k[head - 1 - c] = 0;
    else if (method == METHOD_OTHER_KV_HEADS)
        for (size_t c = 0; c < head; c++) {
            const float other = p->k[c];
            p->k[c] = p->k[head + c];
            p->k[head + c] = other;
        }
    else if (method == METHOD_KEY_TWICE)
        memcpy(p->k + d, p->k, d * sizeof *p->k);
}

/* O shows such a mistake in 16 bits and above, the LSE, kept in fp32, in every dtype. */
static void test_wrong_methods_are_refused(void **state)
{
    const struct variant *flash2 = &variants[4];
    (void)state;
    assert_int_equal(flash2->algorithm, ALGORITHM_FLASH2);
    for (int k = 0; k < DTYPE_COUNT * METHOD_COUNT; k++) {
        const enum dtype dtype = (enum dtype)(k / METHOD_COUNT);
        const enum method method = (enum method)(k % METHOD_COUNT);
        struct subject s;
        make_subject(&s, dtype, method == METHOD_OTHER_DIAGONAL ? MASK_CAUSAL : MASK_NONE);
        const struct attention asked = s.p.a;
        mistake(&s.p, method);
        s.p.a.dtype = DTYPE_F32;
        struct answer answer;
        plain_attention(&answer, &s.p, s.p.a.seqlen_k);
        dtype_round(answer.o, dtype, answer.o, count_o(&asked));
        const bool o = judge_o(&asked, flash2, answer.o, &s.yardsticks, &s.truth).right;
        const bool lse = judge_lse(&asked, flash2, answer.lse, &s.yardsticks, &s.truth).right;
        if (lse != (method == METHOD_RIGHT) ||
            (dtype_bytes(dtype) > 1 && o != (method == METHOD_RIGHT)))
            fail_msg("%s, wrong method %d: O judged %s, LSE %s", dtype_name(dtype), method,
                     o ? "right" : "wrong", lse ? "right" : "wrong");
        answer_free(&answer);
        free_subject(&s);
    }
}

/* The edge of what is allowed, worked out by hand for each dtype: at it, and just beyond. */
static void test_the_allowance_is_exact(void **state)
{
    static const struct {
        enum dtype dtype;
        double allowed; /* for a largest magnitude of 2, plain off by 1/8 */
    } edges[] = {
        {DTYPE_F32, 0.25 + 0x1p-21}, {DTYPE_F16, 0.25 + 0x1p-10}, {DTYPE_BF16, 0.25 + 0x1p-7},
        {DTYPE_E4M3, 0.25 + 0x1p-3}, {DTYPE_E5M2, 0.25 + 0x1p-2},
    };
    const double want[] = {1, -2, 0.5, INFINITY, NAN};
    const float plain[] = {1, -1.875f, 0.5f, INFINITY, NAN};
    (void)state;
    for (size_t k = 0; k < LENGTH(edges); k++) {
        float got[] = {1, -2, 0.5f, INFINITY, NAN};
        got[2] = (float)(0.5 + edges[k].allowed);
        assert_true(judge(edges[k].dtype, got, plain, want, 5).right);
        got[2] = (float)(0.5 - edges[k].allowed);
        assert_true(judge(edges[k].dtype, got, plain, want, 5).right);
        got[2] = (float)(0.5 + 1.001 * edges[k].allowed);
        assert_false(judge(edges[k].dtype, got, plain, want, 5).right);
    }
}

/* What is due where float64 has NaN or an infinity; a plain version that broke down. */
static void test_nan_and_infinities_must_be_in_place(void **state)
{
    static const struct {
        double want;
        float got;
        bool right;
    } places[] = {
        {NAN, NAN, true},           {NAN, 0, false},
        {NAN, INFINITY, false},     {INFINITY, INFINITY, true},
        {INFINITY, NAN, false},     {INFINITY, -INFINITY, false},
        {-INFINITY, -1e30f, false}, {-INFINITY, -INFINITY, true},
        {-INFINITY, 0, false},      {1, NAN, false},
        {1, INFINITY, false},       {1, 1, true},
    };
    (void)state;
    for (size_t k = 0; k < LENGTH(places); k++) {
        const double want[] = {1, places[k].want};
        const float got[] = {1, places[k].got}, plain[] = {1, (float)places[k].want};
        const struct verdict verdict = judge(DTYPE_F32, got, plain, want, 2);
        if (verdict.right != places[k].right)
            fail_msg("%g for %g is judged %s", (double)places[k].got, places[k].want,
                     verdict.right ? "right" : "wrong");
    }
    const double want[] = {1, 2};
    const float got[] = {1, 2}, nan[] = {1, NAN}, infinite[] = {INFINITY, 2};
    assert_true(judge(DTYPE_F16, got, got, want, 2).right);
    assert_false(judge(DTYPE_F16, got, nan, want, 2).right);
    assert_false(judge(DTYPE_F16, got, infinite, want, 2).right);
    assert_false(judge(DTYPE_F16, got, got, want, 0).right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_allowance_is_exact),
        cmocka_unit_test(test_nan_and_infinities_must_be_in_place),
        cmocka_unit_test(test_spoiled_outputs_are_refused),
        cmocka_unit_test(test_wrong_methods_are_refused),
    };
    return cmocka_run_group_tests_name("tolerance", tests, NULL, NULL);
}
