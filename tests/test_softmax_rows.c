/* lessons/common/softmax_rows, softmax_column: what the lesson on softmax says of the three
 * kernels.
 *
 * Protects: counts are the closed forms'; results, at ordinary, large and masked rows, are
 * those of float64, and the judge refuses others; parts merge to the row; what the
 * recorded sweep is read and judged as.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/softmax_column.h"
#include "common/softmax_rows.h"

static void test_the_judge(void **state)
{
    const float x[6] = {1, 2, 3, -INFINITY, -INFINITY, -INFINITY};
    float y[6] = {0.0900305733f, 0.244728476f, 0.665240943f, 0, 0, 0};
    (void)state;
    assert_true(softmax_error(y, x, 2, 3) < 1e-7);
    for (int n = 0; n < 6; n++) {
        const float right = y[n];
        static const float wrong[] = {NAN, INFINITY, 0.5f};
        for (int k = 0; k < 3; k++) {
            y[n] = wrong[k];
            assert_true(softmax_error(y, x, 2, 3) > 0.1);
        }
        y[n] = right * 1.001f + (right == 0.0f ? 1e-30f : 0.0f);
        assert_true(softmax_error(y, x, 2, 3) > 5e-4);
        y[n] = right;
    }
}

static void test_counts_are_the_closed_forms(void **state)
{
    static const int shapes[][2] = {{1, 1}, {3, 31}, {5, 32}, {7, 100}, {2, 5000}};
    (void)state;
    for (int way = 0; way < SOFTMAX_WAYS; way++) {
        for (size_t n = 0; n < sizeof shapes / sizeof shapes[0]; n++) {
            struct account predicted, simulated;
            struct error error;
            assert_int_equal(softmax_count(&predicted, &simulated, (enum softmax_way)way,
                                           shapes[n][0], shapes[n][1], machine_default(),
                                           &error),
                             STATUS_OK);
            assert_true(account_equal(&predicted, &simulated));
            assert_int_equal(account_total(&simulated).of[DIRECTION_READ].bytes,
                             4 * softmax_loads((enum softmax_way)way) * shapes[n][0] *
                                 shapes[n][1]);
        }
    }
}

/* naive survives small scores only. */
static void test_random_rows(void **state)
{
    (void)state;
    for (int way = 0; way < SOFTMAX_WAYS; way++) {
        struct error error;
        double worst;
        int64_t nan;
        assert_int_equal(softmax_random_error(&worst, &nan, (enum softmax_way)way, 3, 777, 1.0f,
                                              machine_default(), &error),
                         STATUS_OK);
        assert_true(worst > 0 && worst < 1e-5);
        assert_int_equal(nan, 0);
        assert_int_equal(softmax_random_error(&worst, &nan, (enum softmax_way)way, 3, 777, 1e3f,
                                              machine_default(), &error),
                         STATUS_OK);
        if (way == SOFTMAX_NAIVE) {
            assert_true(isinf(worst) && nan > 0);
        } else {
            assert_true(worst < 1e-5);
            assert_int_equal(nan, 0);
        }
    }
}

static void test_parts(void **state)
{
    static const int cases[][2] = {{1, 1}, {2, 2}, {7, 3}, {1000, 64}, {1000, 1000}};
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct error error;
        double worst[MERGE_ORDERS];
        assert_int_equal(softmax_merge_errors(worst, cases[n][0], cases[n][1], &error),
                         STATUS_OK);
        for (int order = 0; order < MERGE_ORDERS; order++)
            assert_true(worst[order] < 1e-5);
    }
}

/* The committed sweep, some of it by eye, and judged. */
static void test_sweep(void **state)
{
    static struct softmax_sweep s;
    struct error error;
    (void)state;
    if (softmax_sweep_read(&s, &error))
        fail_msg("%s", error.text);
    assert_int_equal(s.length[0].cols, 64);
    assert_int_equal(s.length[SWEEP_LENGTHS - 1].rows, 16);
    assert_true(s.length[8].cols == 16384 && s.length[8].way[SOFTMAX_SAFE].us == 324.67);
    assert_true(s.length[8].way[SOFTMAX_SAFE].of_dram ==
                (803686400.0 + 271480576.0) / 4 / (1 << 26));
    assert_true(s.length[8].way[SOFTMAX_SAFE].requested == 4.0);
    assert_true(softmax_sweep_error(&s, 64, 4096, 1) < 0.05);
    assert_true(softmax_sweep_error(&s, 64, 8192, 1) > 0.2);
    assert_true(softmax_sweep_error(&s, 16384, SWEEP_LAST, 0) < 0.05);
    assert_true(softmax_sweep_error(&s, 8192, SWEEP_LAST, 0) > 0.2);
    assert_int_equal(softmax_sweep_uncached(&s), 16384);
    s.length[12].way[SOFTMAX_SAFE].of_dram = 3.7;
    assert_int_equal(softmax_sweep_uncached(&s), s.length[13].cols);
    s.length[SWEEP_LENGTHS - 1].way[SOFTMAX_SAFE].of_dram = 3.7;
    assert_int_equal(softmax_sweep_uncached(&s), 0);
}

/* 60 MiB over 132 SMs of 8 blocks; 6 MiB over 80. */
static void test_rows_that_fill_l2(void **state)
{
    (void)state;
    assert_int_equal(softmax_fills_l2(machine_find("H200")), 14894);
    assert_int_equal(softmax_fills_l2(machine_find("V100")), 2457);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge),   cmocka_unit_test(test_counts_are_the_closed_forms),
        cmocka_unit_test(test_random_rows), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_sweep),       cmocka_unit_test(test_rows_that_fill_l2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
