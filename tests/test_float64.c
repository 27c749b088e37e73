/* lessons/common/float64: attention by the formula, and the error that lessons judge by.
 *
 * Protects: values worked out by hand, a row without keys; that an error anywhere is found, NaN
 * and infinity among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/float64.h"

/* One query, two keys: weights 1/4 and 3/4. */
static void test_by_hand(void **state)
{
    const struct attention a = {1, 1, 1, 1, 2, 1, 1, 1.0f, MASK_NONE, DTYPE_F32, 16, 16, false};
    const float q[] = {1}, k[] = {0, logf(3)}, v[] = {8, 16};
    double o;
    (void)state;
    float64_attention(&o, &a, q, k, v);
    assert_true(fabs(o - 14) < 1e-6);
}

/* Two queries, one key, aligned bottom-right: the first sees none. */
static void test_no_keys(void **state)
{
    const struct attention a = {1,    1,           1,         2,  1,  1,    1,
                                1.0f, MASK_CAUSAL, DTYPE_F32, 16, 16, false};
    const float q[] = {5, 5}, k[] = {1}, v[] = {7};
    double o[2];
    (void)state;
    float64_attention(o, &a, q, k, v);
    assert_true(o[0] == 0 && o[1] == 7);
}

static void test_largest_error(void **state)
{
    enum { COUNT = 3 };
    const struct attention a = {1,    1,         1,         COUNT, 1,  1,    1,
                                1.0f, MASK_NONE, DTYPE_F32, 16,    16, false};
    const double reference[COUNT] = {1, 2, 3};
    (void)state;
    for (int at = 0; at < COUNT; at++) {
        float o[COUNT] = {1, 2, 3};
        assert_true(float64_largest_error(&a, o, reference) == 0);
        o[at] -= 0.5f;
        assert_true(float64_largest_error(&a, o, reference) == 0.5);
        o[at] = INFINITY;
        assert_true(isinf(float64_largest_error(&a, o, reference)));
        o[at] = NAN;
        assert_true(isnan(float64_largest_error(&a, o, reference)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_no_keys),
        cmocka_unit_test(test_largest_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
