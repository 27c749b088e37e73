/* Results of every step of the ladder against float64, on shapes of every kind.
 *
 * The rule is that of common/tolerance.h: at most twice the error of the plain version in the
 * same precision, plus a rounding floor; NaN and infinities exactly where float64 has them. O
 * and LSE start as NaN, so an element that is not written fails. Inputs, and the bytes before,
 * between and after rows must be as they were, and a second run must give the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tolerance.h"
#include "common/vectors.h"
#include "cuda/device.h"
#include "ladder_run.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum { RANDOM_SHAPES = 240, TOGETHER = 48 };

/* A problem with what its results are measured by. */
struct measured {
    struct problem p;
    struct truth truth;
    struct answer plain;     /* rounds S and P to the dtype */
    struct answer plain_f32; /* nothing below fp32: for the LSE, as S stays on chip */
};

static void measure(struct measured *x)
{
    struct problem f32 = x->p;
    f32.a.dtype = DTYPE_F32;
    if (!x->truth.o)
        reference_attention(&x->truth, &x->p, (double)x->p.a.scale);
    plain_attention(&x->plain, &x->p, x->p.a.seqlen_k);
    plain_attention(&x->plain_f32, &f32, x->p.a.seqlen_k);
}

static void measured_free(struct measured *x)
{
    problem_free(&x->p);
    truth_free(&x->truth);
    answer_free(&x->plain);
    answer_free(&x->plain_f32);
}

/* NULL, or what is wrong with O and LSE; in a static buffer. */
static const char *wrong(const struct answer *answer, const struct measured *x)
{
    static char text[256];
    const struct attention *a = &x->p.a;
    const struct verdict verdicts[] = {
        judge(a->dtype, answer->o, x->plain.o, x->truth.o, count_o(a)),
        judge(DTYPE_F32, answer->lse, x->plain_f32.lse, x->truth.lse, count_lse(a))};
    for (int i = 0; i < 2; i++)
        if (!verdicts[i].right) {
            snprintf(
                text, sizeof text,
                "%s is off by %g; the plain version by %g, rounding allows %g; element %ld",
                i == 0 ? "O" : "LSE", verdicts[i].error, verdicts[i].plain, verdicts[i].floor,
                verdicts[i].misplaced);
            return text;
        }
    return NULL;
}

/* Launches on NaN, waits, downloads. */
static void launch_once(struct ladder_run *run, struct answer *answer)
{
    struct error error;
    if (ladder_run_poison(run, &error) || ladder_run_launch(run, &error) ||
        stream_wait(NULL, &error) || ladder_run_download(run, answer, &error))
        fail_msg("%s: %s", ladder_run_text(run), error.text);
}

static void test_step(struct ladder_run *run, const struct measured *x)
{
    const struct attention *a = &x->p.a;
    struct answer first, second;
    struct error error;
    char text[128];
    launch_once(run, &first);
    launch_once(run, &second);
    if (memcmp(first.o, second.o, count_o(a) * sizeof(float)) != 0 ||
        memcmp(first.lse, second.lse, count_lse(a) * sizeof(float)) != 0)
        fail_msg("%s: differs from run to run", ladder_run_text(run));
    if (ladder_run_damage(run, text, &error))
        fail_msg("%s: %s", ladder_run_text(run), text);
    const char *what = wrong(&first, x);
    if (what)
        fail_msg("%s: %s", ladder_run_text(run), what);
    answer_free(&first);
    answer_free(&second);
}

/* FLASHLAB_STEP: the name of the only step to test. */
static bool is_wanted(enum ladder_step step)
{
    const char *only = getenv("FLASHLAB_STEP");
    return !only || strcmp(only, ladder_name(step)) == 0;
}

static void test_steps(const struct measured *x, enum layout layout)
{
    struct ladder_run run = {.p = x->p, .layout = layout};
    struct error error;
    if (ladder_run_open(&run, &error))
        fail_msg("%s: %s", ladder_run_text(&run), error.text);
    for (run.step = 0; run.step < LADDER_STEPS; run.step++)
        if (is_wanted(run.step) && ladder_run_is_possible(run.step))
            test_step(&run, x);
    ladder_run_close(&run);
}

static struct attention shape(int batch, int heads_q, int heads_kv, int seqlen_q, int seqlen_k,
                              int head_dim, enum mask mask, enum dtype dtype)
{
    return (struct attention){.batch = batch,
                              .heads_q = heads_q,
                              .heads_kv = heads_kv,
                              .seqlen_q = seqlen_q,
                              .seqlen_k = seqlen_k,
                              .head_dim = head_dim,
                              .head_dim_v = head_dim,
                              .scale = 1.0f / sqrtf((float)head_dim),
                              .mask = mask,
                              .dtype = dtype,
                              .block_q = 1,
                              .block_k = 1};
}

/* Around the edge of a tile half of the time, anything otherwise. */
static int random_length(uint64_t *seed)
{
    static const int edges[] = {16, 32, 64, 128, 192};
    if (random_between(seed, 0, 1))
        return random_between(seed, 1, 200);
    return edges[random_between(seed, 0, 4)] + random_between(seed, -2, 2);
}

static struct attention random_shape(uint64_t *seed)
{
    const int heads_kv = random_between(seed, 1, 2);
    struct attention a =
        shape(random_between(seed, 1, 2), heads_kv * random_between(seed, 1, 3), heads_kv,
              random_length(seed), random_length(seed), 64 << random_between(seed, 0, 2),
              random_between(seed, 0, 1) ? MASK_CAUSAL : MASK_NONE,
              random_between(seed, 0, 1) ? DTYPE_BF16 : DTYPE_F16);
    const float scales[] = {a.scale, a.scale, a.scale, a.scale, 0.3f, -a.scale, 0.0f};
    a.scale = scales[random_between(seed, 0, 6)];
    return a;
}

/* References take longer than kernels: all cores work at them. */
static void test_all(struct measured *x, int count, uint64_t seed)
{
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < count; i++)
        measure(&x[i]);
    for (int i = 0; i < count; i++) {
        test_steps(&x[i], (enum layout)random_between(&seed, 0, LAYOUT_COUNT - 1));
        measured_free(&x[i]);
    }
}

static int shapes_wanted(int all)
{
    const char *limit = getenv("FLASHLAB_SHAPES");
    const int most = limit ? atoi(limit) : all;
    return most > 0 && most < all ? most : all;
}

static void test_random_shapes(void **state)
{
    static struct measured x[TOGETHER];
    uint64_t seed = 1;
    const int wanted = shapes_wanted(RANDOM_SHAPES);
    (void)state;
    for (int done = 0; done < wanted; done += TOGETHER) {
        const int count = wanted - done < TOGETHER ? wanted - done : TOGETHER;
        for (int i = 0; i < count; i++) {
            x[i] = (struct measured){.p = {.a = random_shape(&seed)}};
            problem_fill(&x[i].p, &seed);
        }
        test_all(x, count, seed);
    }
}

static const struct {
    int batch, heads_q, heads_kv, seqlen_q, seqlen_k, d;
    enum mask mask;
} chosen[] = {
    {1, 1, 1, 1, 1, 64, MASK_NONE},          {1, 2, 1, 1, 333, 128, MASK_CAUSAL}, /* decode */
    {1, 1, 1, 333, 1, 128, MASK_CAUSAL}, /* rows without keys: all but one */
    {1, 6, 2, 300, 96, 64, MASK_CAUSAL}, /* whole tiles of them */
    {1, 2, 2, 260, 130, 256, MASK_CAUSAL},   {1, 1, 1, 1000, 1000, 128, MASK_NONE},
    {1, 1, 1, 1000, 1000, 128, MASK_CAUSAL}, {1, 1, 1, 1024, 1024, 64, MASK_CAUSAL},
    {1, 1, 1, 700, 1300, 256, MASK_CAUSAL},  {9, 5, 1, 70, 70, 64, MASK_CAUSAL},
};

static void test_chosen_shapes(void **state)
{
    static struct measured x[2 * LENGTH(chosen)];
    uint64_t seed = 2;
    const int wanted = shapes_wanted(LENGTH(x));
    (void)state;
    for (int i = 0; i < wanted; i++) {
        const size_t n = (size_t)i / 2;
        x[i] = (struct measured){
            .p = {.a = shape(chosen[n].batch, chosen[n].heads_q, chosen[n].heads_kv,
                             chosen[n].seqlen_q, chosen[n].seqlen_k, chosen[n].d,
                             chosen[n].mask, i % 2 ? DTYPE_F16 : DTYPE_BF16)}};
        problem_fill(&x[i].p, &seed);
    }
    test_all(x, wanted, seed);
}

/* Inputs whose scores are extreme: factor times normal numbers, or of one sign in Q and of the
 * other in K. */
static void fill_extreme(struct problem *p, float factor, bool signs, uint64_t *seed)
{
    problem_fill(p, seed);
    for (size_t i = 0; i < count_q(&p->a); i++)
        p->q[i] = signs ? factor * fabsf(p->q[i]) : factor * p->q[i];
    for (size_t i = 0; i < count_k(&p->a); i++)
        p->k[i] = signs ? -factor * fabsf(p->k[i]) : factor * p->k[i];
    problem_round(p);
}

/* Scores of some thousands of either sign, and all below -1000: what a running maximum that
 * starts at 0, or an exponent that overflows, gets wrong. */
static void test_extreme_scores(void **state)
{
    static struct measured x[12];
    uint64_t seed = 3;
    const int wanted = shapes_wanted(LENGTH(x));
    (void)state;
    for (int i = 0; i < wanted; i++) {
        x[i] = (struct measured){.p = {.a = shape(1, 2, 1, 150, 170, 64 << i % 3, MASK_CAUSAL,
                                                  i / 3 % 2 ? DTYPE_F16 : DTYPE_BF16)}};
        fill_extreme(&x[i].p, 30, i >= 6, &seed);
    }
    test_all(x, wanted, seed);
}

/* The stored problems with PyTorch's answers in float64, as far as the ladder can do them. */
static void test_stored(void **state)
{
    struct csv manifest;
    int tested = 0;
    (void)state;
    csv_read(&manifest, STORED_MANIFEST);
    for (int row = 0; row < manifest.rows; row++) {
        struct stored stored;
        stored_read(&stored, &manifest, row);
        const struct attention *a = &stored.problem.a;
        for (int k = 0; k < 2; k++) {
            bool exact;
            struct measured x = {
                .p = stored_problem(&stored, k ? DTYPE_F16 : DTYPE_BF16, &exact)};
            if (exact && a->mask != MASK_CAUSAL_TOP_LEFT && a->head_dim == a->head_dim_v &&
                (a->head_dim == 64 || a->head_dim == 128 || a->head_dim == 256)) {
                x.truth = stored.truth;
                measure(&x);
                for (enum layout layout = 0; layout < LAYOUT_COUNT; layout++)
                    test_steps(&x, layout);
                tested++;
                x.truth = (struct truth){0}; /* stored's */
            }
            measured_free(&x);
        }
        stored_free(&stored);
    }
    csv_free(&manifest);
    assert_true(tested > 0);
}

/* The judge of this file: NaN, a constant and an answer off by one row do not pass. */
static void test_the_judge(void **state)
{
    struct measured x = {.p = {.a = shape(1, 1, 1, 70, 70, 64, MASK_NONE, DTYPE_BF16)}};
    uint64_t seed = 4;
    (void)state;
    problem_fill(&x.p, &seed);
    measure(&x);
    const size_t d = 64, count = count_o(&x.p.a);
    struct answer other = {.o = allocate(count, sizeof *other.o), .lse = x.plain_f32.lse};
    memcpy(other.o, x.plain.o, count * sizeof *other.o);
    assert_null(wrong(&other, &x));
    other.o[count - 1] = NAN;
    assert_non_null(wrong(&other, &x));
    memcpy(other.o, x.plain.o + d, (count - d) * sizeof *other.o);
    assert_non_null(wrong(&other, &x));
    memset(other.o, 0, count * sizeof *other.o);
    assert_non_null(wrong(&other, &x));
    other.lse = x.plain.lse + 1;
    memcpy(other.o, x.plain.o, count * sizeof *other.o);
    assert_non_null(wrong(&other, &x));
    free(other.o);
    measured_free(&x);
}

/* An argument is a pattern: test_ladder 'test_random*'. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge),     cmocka_unit_test(test_stored),
        cmocka_unit_test(test_chosen_shapes), cmocka_unit_test(test_extreme_scores),
        cmocka_unit_test(test_random_shapes),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
