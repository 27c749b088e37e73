/* lessons/common/random_inputs: the Q, K and V that a recording has by its seed only.
 *
 * Protects: the very values, which recordings depend on; that tensors and seeds differ; the
 * range.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/problem.h"
#include "common/random_inputs.h"

static const struct attention shape = {2,     4,         2,         33, 70, 16,   24,
                                       0.25f, MASK_NONE, DTYPE_F32, 16, 16, false};

static struct random_inputs made(uint64_t seed)
{
    struct random_inputs x;
    struct error error = {0};
    if (random_inputs_make(&x, &shape, seed, &error))
        fail_msg("%s", error.text);
    return x;
}

/* From a statement of erand48 in Python integers, not from the code under test. */
static void test_fixed_values(void **state)
{
    static const struct {
        uint64_t seed;
        float q[3], k[3], v[3];
    } expected[] = {
        {1,
         {-0x1.2b0d64p-2f, 0x1.45ecep-2f, -0x1.d07f2ap-1f},
         {-0x1.20d0c8p-1f, 0x1.889b9p-1f, -0x1.c7f67p-1f},
         {-0x1.ac1adcp-1f, 0x1.372058p+0f, -0x1.bf6db6p-1f}},
        {0xbeefcafe123,
         {-0x1.715124p-4f, 0x1.a0609ep+0f, 0x1.a9a0b6p-4f},
         {-0x1.72e874p-2f, -0x1.ecccd2p+0f, 0x1.ede688p-4f},
         {-0x1.44be4ep-1f, -0x1.79fa42p+0f, 0x1.19162ep-3f}},
    };
    (void)state;
    for (size_t k = 0; k < LENGTH(expected); k++) {
        struct random_inputs x = made(expected[k].seed);
        for (int i = 0; i < 3; i++) {
            assert_true(x.q[i] == expected[k].q[i]);
            assert_true(x.k[i] == expected[k].k[i]);
            assert_true(x.v[i] == expected[k].v[i]);
        }
        random_inputs_free(&x);
        assert_true(!x.q && !x.k && !x.v);
    }
}

/* Elements that two arrays have in the same place: random ones share next to none. */
static int common_elements(const float *a, const float *b, size_t count)
{
    int common = 0;
    for (size_t i = 0; i < count; i++)
        common += same_bits(a[i], b[i]);
    return common;
}

static void test_tensors_and_seeds_differ(void **state)
{
    enum { COUNT = 4000 };
    static const uint64_t seeds[] = {0, 1, 2, 3, 65536, UINT64_C(1) << 32, UINT64_C(1) << 45};
    (void)state;
    assert_true(count_q(&shape) >= COUNT && count_k(&shape) >= COUNT &&
                count_v(&shape) >= COUNT);
    for (size_t i = 0; i < LENGTH(seeds); i++) {
        struct random_inputs x = made(seeds[i]);
        assert_in_range(common_elements(x.q, x.k, COUNT), 0, 3);
        assert_in_range(common_elements(x.q, x.v, COUNT), 0, 3);
        assert_in_range(common_elements(x.k, x.v, COUNT), 0, 3);
        for (size_t j = 0; j <= i; j++) {
            struct random_inputs y = made(seeds[j]);
            const int least = i == j ? COUNT : 0, most = i == j ? COUNT : 3;
            assert_in_range(common_elements(x.q, y.q, COUNT), least, most);
            assert_in_range(common_elements(x.k, y.k, COUNT), least, most);
            assert_in_range(common_elements(x.v, y.v, COUNT), least, most);
            assert_in_range(common_elements(x.q, y.k, COUNT), 0, 3);
            assert_in_range(common_elements(x.k, y.v, COUNT), 0, 3);
            assert_in_range(common_elements(x.v, y.q, COUNT), 0, 3);
            random_inputs_free(&y);
        }
        random_inputs_free(&x);
    }
}

/* In [-2, 2], with the mean and the variance of numbers uniform there: 0 and 4/3, to five
 * standard deviations of each. */
static bool uniform(const float *values, size_t count)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = (double)values[i];
        if (!(value >= -2 && value <= 2))
            return false;
        sum += value;
        squares += value * value;
    }
    const double n = (double)count;
    return fabs(sum / n) <= 5 * sqrt(4.0 / 3 / n) &&
           fabs(squares / n - 4.0 / 3) <= 5 * sqrt(64.0 / 45 / n);
}

static void test_range_and_distribution(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_inputs x = made(seed);
        assert_true(uniform(x.q, count_q(&shape)));
        assert_true(uniform(x.k, count_k(&shape)));
        assert_true(uniform(x.v, count_v(&shape)));
        random_inputs_free(&x);
    }
}

static void test_the_judges_can_fail(void **state)
{
    (void)state;
    struct random_inputs x = made(5);
    const size_t count = count_q(&shape);
    assert_true(uniform(x.q, count));
    static const float outside[] = {2.0000002f, -2.0000002f, NAN, INFINITY};
    for (size_t i = 0; i < LENGTH(outside); i++) {
        const float good = x.q[count - 1];
        x.q[count - 1] = outside[i];
        assert_false(uniform(x.q, count));
        x.q[count - 1] = good;
    }
    for (size_t i = 0; i < count; i++)
        x.q[i] *= 0.9f;
    assert_false(uniform(x.q, count));
    for (size_t i = 0; i < count; i++)
        x.q[i] = fabsf(x.q[i]);
    assert_false(uniform(x.q, count));
    assert_int_equal(common_elements(x.q, x.q, count), count);
    random_inputs_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judges_can_fail),
        cmocka_unit_test(test_fixed_values),
        cmocka_unit_test(test_tensors_and_seeds_differ),
        cmocka_unit_test(test_range_and_distribution),
    };
    return cmocka_run_group_tests_name("random_inputs", tests, NULL, NULL);
}
