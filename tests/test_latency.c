/* Hiding latency (models/latency): Little's law and the warps played through.
 *
 * Protects: both by hand for small cases, that they are equal where nothing but latency and the
 * unit's rate counts, that a unit is never busier than it can be, and that waiting for all of a
 * round costs what the beginnings of its operations take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "models/latency.h"

enum { OPERATIONS = 64 * LATENCY_MOST_INDEPENDENT };

static void assert_near(double value, double wanted, double share)
{
    if (!(fabs(value - wanted) <= share * wanted))
        fail_msg("%.9g is not %.9g", value, wanted);
}

static void test_littles_law_by_hand(void **state)
{
    static const struct latency_unit fma = {.latency = 4, .interval = 1};
    static const struct latency_unit slow = {.latency = 700, .interval = 14};
    static const struct latency_unit uneven = {.latency = 701, .interval = 14};
    (void)state;
    assert_int_equal(latency_in_flight_needed(&fma), 4);
    assert_int_equal(latency_in_flight_needed(&slow), 50);
    assert_int_equal(latency_in_flight_needed(&uneven), 51);
    assert_near(latency_rate(&fma, 1), 0.25, 1e-12);
    assert_near(latency_rate(&fma, 3), 0.75, 1e-12);
    assert_near(latency_rate(&fma, 4), 1, 1e-12);
    assert_near(latency_rate(&fma, 64), 1, 1e-12);
    assert_near(latency_rate(&slow, 25), 0.5 / 14, 1e-12);
}

/* Two warps, two FMAs each, one in flight: begin at 0, 1, 4, 5; the last result comes at 9. */
static void test_warps_by_hand(void **state)
{
    static const struct latency_unit fma = {.latency = 4, .interval = 1};
    static const struct latency_unit load = {.latency = 10, .interval = 2};
    (void)state;
    assert_near(latency_simulate(&fma, &(struct latency_warps){2, 1, false, false, 2}), 4 / 9.0,
                1e-12);
    /* one warp, rounds of two: 0, 2, then 12, 14; the last comes at 24 */
    assert_near(latency_simulate(&load, &(struct latency_warps){1, 2, true, false, 4}),
                4 / 24.0, 1e-12);
    /* each waits for the one that it needs: 0, 2, 10, 12; the last comes at 22 */
    assert_near(latency_simulate(&load, &(struct latency_warps){1, 2, false, false, 4}),
                4 / 22.0, 1e-12);
}

static void test_chains_follow_littles_law(void **state)
{
    static const struct latency_unit units[] = {{4, 1}, {700, 14}, {37, 5}, {1, 1}, {3, 8}};
    (void)state;
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        for (int warps = 1; warps <= LATENCY_MOST_WARPS; warps = 2 * warps + 1) {
            for (int k = 1; k <= LATENCY_MOST_INDEPENDENT; k *= 2) {
                const struct latency_warps w = {warps, k, false, false, OPERATIONS};
                assert_near(latency_simulate(&units[u], &w),
                            latency_rate(&units[u], (int64_t)warps * k), 0.05);
            }
        }
    }
}

/* A round of k takes the latency and k - 1 intervals, until the unit is busy. */
static void test_rounds_cost_their_beginnings(void **state)
{
    static const struct latency_unit unit = {.latency = 1000, .interval = 10};
    (void)state;
    for (int k = 1; k <= LATENCY_MOST_INDEPENDENT; k *= 2) {
        const struct latency_warps w = {1, k, true, false, OPERATIONS};
        assert_near(latency_simulate(&unit, &w), k / (1000.0 + 10 * (k - 1)), 1e-12);
        const struct latency_warps all = {LATENCY_MOST_WARPS, k, true, false, OPERATIONS};
        const double most = latency_rate(&unit, (int64_t)LATENCY_MOST_WARPS * k);
        assert_true(latency_simulate(&unit, &all) <= most);
        assert_near(latency_simulate(&unit, &all), most, 0.1);
    }
}

/* Five warps of which four keep the unit busy: these four end first, then the fifth is alone,
 * and takes as long again. Five of eight parts of the time are used. */
static void test_the_youngest_warp_comes_last(void **state)
{
    static const struct latency_unit fma = {.latency = 4, .interval = 1};
    (void)state;
    const struct latency_warps five = {5, 1, false, true, OPERATIONS};
    assert_near(latency_simulate(&fma, &five), 5 / 8.0, 0.01);
    const struct latency_warps three = {3, 2, false, true, OPERATIONS};
    assert_near(latency_simulate(&fma, &three), 3 / 4.0, 0.01);
    const struct latency_warps eight = {8, 1, false, true, OPERATIONS};
    assert_near(latency_simulate(&fma, &eight), 1, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_littles_law_by_hand),
        cmocka_unit_test(test_warps_by_hand),
        cmocka_unit_test(test_chains_follow_littles_law),
        cmocka_unit_test(test_rounds_cost_their_beginnings),
        cmocka_unit_test(test_the_youngest_warp_comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
