/* The attention algorithms on random problems: batches, grouped heads, lengths and head
 * dimensions that differ, masks, scales, dtypes, and blocks that divide nothing.
 *
 * Protects: O and LSE against float64; that neither they nor the counts depend on the number of
 * threads, to the last bit; and that a NaN or an infinity in Q, K or V shows exactly where
 * float64 shows it, no more and no less.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/tolerance.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Runs again with other numbers of threads and compares every bit. More threads than cores, and
 * more than thread blocks, among them. */
static void check_threads(const struct problem *p, const struct variant *variant,
                          const struct answer *answer)
{
    static const int threads[] = {2, 7};
    for (size_t k = 0; k < LENGTH(threads); k++) {
        struct answer other;
        omp_set_num_threads(threads[k]);
        problem_run(&other, p, variant);
        omp_set_num_threads(1);
        if (memcmp(other.o, answer->o, count_o(&p->a) * sizeof *other.o) != 0 ||
            memcmp(other.lse, answer->lse, count_lse(&p->a) * sizeof *other.lse) != 0 ||
            !account_equal(&other.account, &answer->account))
            fail_msg("%s, %s: %d threads give another result than 1", variant->name,
                     attention_text(&p->a), threads[k]);
        answer_free(&other);
    }
}

/* The judgement means something here: it refuses an output of zeros, unless that is right. Not
 * so for flash1 with many passes in 8 bits, whose own roundings come to as much as the output.
 */
static void check_that_zeros_fail(const struct problem *p, const struct variant *variant,
                                  const struct yardsticks *yardsticks,
                                  const struct truth *truth)
{
    if (variant->algorithm == ALGORITHM_FLASH1 && dtype_bytes(p->a.dtype) == 1 &&
        attention_tiles_k(&p->a) > 8)
        return;
    bool all_zero = true;
    for (size_t i = 0; i < count_o(&p->a); i++)
        all_zero = all_zero && truth->o[i] == 0;
    float *zeros = allocate(count_o(&p->a), sizeof *zeros);
    if (judge_o(&p->a, variant, zeros, yardsticks, truth).right != all_zero)
        fail_msg("%s, %s: zeros would pass", variant->name, attention_text(&p->a));
    free(zeros);
}

/* Every algorithm against float64; two of them, by the problem's number, with other threads. */
static void check_problem(const struct problem *p, int number)
{
    struct truth truth;
    struct yardsticks yardsticks;
    reference_attention(&truth, p, (double)p->a.scale);
    yardsticks_make(&yardsticks, p);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        struct answer answer;
        problem_run(&answer, p, &variants[v]);
        assert_right(&p->a, &variants[v], &answer, &yardsticks, &truth);
        check_that_zeros_fail(p, &variants[v], &yardsticks, &truth);
        if (v == number % VARIANT_COUNT || v == (number / 2 + 2) % VARIANT_COUNT)
            check_threads(p, &variants[v], &answer);
        answer_free(&answer);
    }
    yardsticks_free(&yardsticks);
    truth_free(&truth);
}

static void test_random_problems_and_threads(void **state)
{
    uint64_t seed = 31415;
    (void)state;
    for (int n = 0; n < 200; n++) {
        struct problem p = {.a = random_attention(&seed, 48, 32)};
        problem_fill(&p, &seed);
        check_problem(&p, n);
        problem_free(&p);
    }
}

/* Values that are no numbers, or no finite ones. */
static const float specials[] = {NAN, INFINITY, -INFINITY};

/* Where they are put. */
enum operand { OPERAND_Q, OPERAND_K, OPERAND_V, OPERAND_COUNT };

/* Puts a value into a few random elements of an operand. The 8-bit formats that have no
 * infinity make it their largest number, in float64's inputs too. */
static void plant(struct problem *p, enum operand operand, float value, uint64_t *seed)
{
    float *const arrays[] = {p->q, p->k, p->v};
    const size_t counts[] = {count_q(&p->a), count_k(&p->a), count_v(&p->a)};
    const int times = random_between(seed, 1, 3);
    for (int n = 0; n < times; n++)
        arrays[operand][random_next(seed) % counts[operand]] = value;
    problem_round(p);
}

/* Elements finite and not finite in the same places; those that are not are then taken as
 * right: whether infinity times a weight that rounds to 0 is infinite or NaN, dtypes differ. */
static void forgive_kinds(float *got, const double *want, size_t count, const char *name,
                          const char *output, const struct attention *a)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(got[i]) != !isfinite(want[i]))
            fail_msg("%s, %s: element %zu of %s is %g, float64 gives %g", name,
                     attention_text(a), i, output, (double)got[i], want[i]);
        if (!isfinite(want[i]))
            got[i] = (float)want[i];
    }
}

static void check_specials(const struct problem *p)
{
    struct truth truth;
    struct yardsticks yardsticks;
    reference_attention(&truth, p, (double)p->a.scale);
    yardsticks_make(&yardsticks, p);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        const char *name = variants[v].name;
        struct answer answer;
        problem_run(&answer, p, &variants[v]);
        forgive_kinds(answer.o, truth.o, count_o(&p->a), name, "O", &p->a);
        forgive_kinds(answer.lse, truth.lse, count_lse(&p->a), name, "LSE", &p->a);
        assert_right(&p->a, &variants[v], &answer, &yardsticks, &truth);
        answer_free(&answer);
    }
    yardsticks_free(&yardsticks);
    truth_free(&truth);
}

/* How many elements of O a special value reached, and how many there are. */
static void count_reached(const struct problem *p, size_t *reached, size_t *all)
{
    struct truth truth;
    reference_attention(&truth, p, (double)p->a.scale);
    for (size_t i = 0; i < count_o(&p->a); i++)
        *reached += !isfinite(truth.o[i]);
    *all += count_o(&p->a);
    truth_free(&truth);
}

/* Which problems: masked or not, scaled by 0 or not. */
struct choice {
    enum operand operand;
    bool masked, scaled_by_zero;
    uint64_t seed;
};

static struct attention choose(struct choice *choice)
{
    struct attention a = random_attention(&choice->seed, 24, 12);
    if (!choice->masked)
        a.mask = MASK_NONE;
    else if (a.mask == MASK_NONE)
        a.mask = MASK_CAUSAL;
    if (choice->scaled_by_zero)
        a.scale = 0;
    else if (a.scale == 0)
        a.scale = 0.5f;
    return a;
}

/* Random problems with every special value in that operand. */
static void check_operand(struct choice choice)
{
    size_t reached = 0, all = 0;
    for (int n = 0; n < 36; n++) {
        struct problem p = {.a = choose(&choice)};
        problem_fill(&p, &choice.seed);
        plant(&p, choice.operand, specials[n % (int)LENGTH(specials)], &choice.seed);
        check_specials(&p);
        count_reached(&p, &reached, &all);
        problem_free(&p);
    }
    assert_true(reached > all / 500 && reached < all * 9 / 10);
}

static void test_special_values_in_q(void **state)
{
    (void)state;
    check_operand((struct choice){OPERAND_Q, false, false, 11});
    check_operand((struct choice){OPERAND_Q, true, false, 12});
}

static void test_special_values_in_k(void **state)
{
    (void)state;
    check_operand((struct choice){OPERAND_K, false, false, 13});
    check_operand((struct choice){OPERAND_K, true, false, 14});
}

static void test_special_values_in_v(void **state)
{
    (void)state;
    check_operand((struct choice){OPERAND_V, false, false, 15});
}

/* A value that the mask hides must not reach the output: masked is excluded, not times 0. */
static void test_special_values_in_masked_v(void **state)
{
    (void)state;
    check_operand((struct choice){OPERAND_V, true, false, 16});
}

/* 0 times NaN or infinity is NaN, so a scale of 0 hides neither. */
static void test_special_values_scaled_by_zero(void **state)
{
    (void)state;
    check_operand((struct choice){OPERAND_Q, false, true, 17});
    check_operand((struct choice){OPERAND_K, false, true, 18});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems_and_threads),
        cmocka_unit_test(test_special_values_in_q),
        cmocka_unit_test(test_special_values_in_k),
        cmocka_unit_test(test_special_values_in_v),
        cmocka_unit_test(test_special_values_in_masked_v),
        cmocka_unit_test(test_special_values_scaled_by_zero),
    };
    /* But where check_threads() says otherwise. */
    omp_set_num_threads(1);
    return cmocka_run_group_tests_name("random attention", tests, NULL, NULL);
}
