/* What flashlab run-kernel judges by.
 *
 * Protects: a result is accepted if it is the simulator's up to rounding, and not if it is NaN,
 * constant, or that of a neighbour; a source file that is missing is an error that names it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/kernel_lines.h"
#include "common/kernel_run.h"
#include "common/random_inputs.h"

enum { COUNT = 1000 };

/* Difference of an array that change makes of random values, as a share of the tolerance. */
static double difference_after(void (*change)(float *values), float magnitude)
{
    float simulated[COUNT], on_cpu[COUNT];
    random_fill(simulated, COUNT, 1, 1);
    for (int i = 0; i < COUNT; i++)
        simulated[i] *= magnitude;
    memcpy(on_cpu, simulated, sizeof on_cpu);
    change(on_cpu);
    return kernel_result_compare("x", simulated, on_cpu, COUNT, 1).difference;
}

static void nothing(float *values)
{
    (void)values;
}

static void round_off(float *values)
{
    for (int i = 0; i < COUNT; i++)
        values[i] *= 1.0f + 3e-7f;
}

static void one_wrong(float *values)
{
    values[COUNT - 1] *= 1.001f;
}

static void shift(float *values)
{
    memmove(values + 1, values, (COUNT - 1) * sizeof *values);
}

static void constant(float *values)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = 0.0f;
}

static void one_nan(float *values)
{
    values[7] = NAN;
}

static void one_infinity(float *values)
{
    values[7] = INFINITY;
}

/* Small results are judged as strictly as large ones. */
static void test_results_are_judged(void **state)
{
    static const float magnitudes[] = {1e-6f, 1.0f, 1e6f};
    static void (*const wrong[])(float *) = {one_wrong, shift, constant, one_nan, one_infinity};
    (void)state;
    for (size_t k = 0; k < sizeof magnitudes / sizeof magnitudes[0]; k++) {
        const float magnitude = magnitudes[k];
        assert_true(difference_after(nothing, magnitude) == 0.0);
        const double rounded = difference_after(round_off, magnitude);
        assert_true(rounded > 0.0 && rounded <= 1.0);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
            if (!(difference_after(wrong[i], magnitude) > 1.0))
                fail_msg("change %zu at magnitude %g is accepted", i, (double)magnitude);
    }
}

/* Rows of attention without keys are -inf on both sides. */
static void test_equal_infinities_are_equal(void **state)
{
    const float x[2] = {-INFINITY, 1.0f}, y[2] = {INFINITY, 1.0f};
    (void)state;
    assert_true(kernel_result_compare("LSE", x, x, 2, 1).difference == 0.0);
    assert_false(kernel_result_compare("LSE", x, y, 2, 1).difference <= 1.0);
}

static void test_missing_source(void **state)
{
    static const struct cpu_counts none;
    static struct kernel_lines lines;
    const struct kernel_run run = {.run = {.kernel = CPU_FLASH2_FORWARD}, .counts = &none};
    struct error error = {0};
    (void)state;
    assert_int_equal(kernel_lines_make(&lines, &run, "/nowhere", &error), STATUS_BAD_FILE);
    assert_non_null(strstr(error.text, "--lines: /nowhere/cuda/kernels/flash2_forward.cu"));
    kernel_lines_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_judged),
        cmocka_unit_test(test_equal_infinities_are_equal),
        cmocka_unit_test(test_missing_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
