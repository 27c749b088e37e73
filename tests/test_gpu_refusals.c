/* Messages of a machine that is not fit to run the CUDA kernels, which need none to be seen.
 *
 * Protects: a GPU too old for the compiled kernels is refused with its name, its compute
 * capability and the one needed, newer ones are not; who may not read hardware counters is told
 * both ways to get the permission, and whose counters another profiler has, where to read them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cuda/refusals.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void test_old_gpus(void **state)
{
    static const int old[][2] = {{3, 5}, {6, 1}, {7, 0}, {7, 2}};
    static const int fine[][2] = {{7, 5}, {8, 0}, {8, 9}, {9, 0}, {10, 0}, {12, 1}};
    (void)state;
    for (size_t k = 0; k < LENGTH(old); k++) {
        struct error error = {STATUS_OK, ""};
        assert_int_equal(refuse_old_gpu("Tesla V100", old[k][0], old[k][1], &error),
                         STATUS_BAD_ARGUMENT);
        assert_int_equal(error.status, STATUS_BAD_ARGUMENT);
        if (old[k][0] == 7 && old[k][1] == 0)
            assert_string_equal(
                error.text, "Tesla V100 has compute capability 7.0: 7.5 or later is needed");
    }
    for (size_t k = 0; k < LENGTH(fine); k++) {
        struct error error = {STATUS_OK, ""};
        assert_int_equal(refuse_old_gpu("some GPU", fine[k][0], fine[k][1], &error), STATUS_OK);
        assert_string_equal(error.text, "");
    }
}

static void test_counters(void **state)
{
    const char *privileged = counters_advice(COUNTERS_PRIVILEGED);
    const char *taken = counters_advice(COUNTERS_TAKEN);
    (void)state;
    assert_non_null(strstr(privileged, "only administrators"));
    assert_non_null(strstr(privileged, "run as root"));
    assert_non_null(strstr(privileged, "NVreg_RestrictProfilingToAdminUsers=0"));
    assert_non_null(strstr(taken, "Another profiler"));
    assert_non_null(strstr(taken, "--ncu FILE"));
    assert_string_equal(counters_advice(COUNTERS_FAILED), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_gpus),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests_name("gpu refusals", tests, NULL, NULL);
}
