/* lessons/common/results_table: the files of cuda/results, and what is none of them.
 *
 * Protects: the committed probes, field by field at both ends; fields that are empty or no
 * number; columns that are not there; every refusal by its line.
 */
#include "common/npy_files.h"

#include "common/core_fixture.h"
#include "common/results_table.h"

#ifndef FLASHLAB_TEST_DATA
#define FLASHLAB_TEST_DATA "tests/data"
#endif

#define PROBES FLASHLAB_TEST_DATA "/../../cuda/results/h200_probes.csv"
#define MACHINE "# NVIDIA H200, 132 SMs; driver 580.1, CUDA 13.0\n"
#define DATE "# 2026-11-30: make gpu-probes\n"
#define NAMES "kernel,cols,us\n"

static const char *path_of(void **state)
{
    const struct place *place = *state;
    return place->path;
}

static void make_table(void **state, const char *text)
{
    write_bytes(path_of(state), text, strlen(text));
}

static void test_a_committed_table(void **state)
{
    struct results_table t;
    struct error error;
    double x;
    (void)state;
    if (results_table_read(&t, PROBES, &error))
        fail_msg("%s", error.text);
    assert_string_equal(t.gpu, "NVIDIA H200");
    assert_string_equal(t.software, "driver 580.159.04, CUDA 13.0");
    assert_string_equal(t.date, "2026-11-30");
    assert_int_equal(t.columns, 14);
    assert_int_equal(t.rows, 942);
    assert_string_equal(results_table_text(&t, 0, "access"), "global_load");
    assert_true(results_table_number(&x, &t, 3, "load_sectors") && x == 12);
    assert_string_equal(results_table_text(&t, 883, "access"), "matrix_load");
    assert_null(results_table_text(&t, 0, "acces"));
    assert_false(results_table_number(&x, &t, 0, "access"));
    assert_true(x == -1);
    results_table_free(&t);
    results_table_free(&t);
}

static void test_fields(void **state)
{
    struct results_table t;
    struct error error;
    double x;
    make_table(state, MACHINE DATE NAMES "copy,,2.5\nadd,7,nan\nsub,8x,inf");
    assert_int_equal(results_table_read(&t, path_of(state), &error), STATUS_OK);
    assert_int_equal(t.rows, 3);
    assert_string_equal(results_table_text(&t, 0, "cols"), "");
    assert_false(results_table_number(&x, &t, 0, "cols"));
    assert_true(results_table_number(&x, &t, 0, "us") && x == 2.5);
    assert_true(results_table_number(&x, &t, 1, "cols") && x == 7);
    assert_false(results_table_number(&x, &t, 1, "us"));
    assert_false(results_table_number(&x, &t, 2, "cols"));
    assert_false(results_table_number(&x, &t, 2, "us"));
    assert_false(results_table_number(&x, &t, 2, "nothing"));
    results_table_free(&t);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "the file is empty"},
        {"kernel,cols\n", "line 1: \"kernel,cols\": \"# GPU"},
        {"# NVIDIA H200\n" DATE NAMES "a,1,2\n", "line 1"},
        {"# ; driver 1, CUDA 2\n" DATE NAMES "a,1,2\n", "line 1"},
        {"# H\x80; driver 1, CUDA 2\n" DATE NAMES "a,1,2\n", "line 1: \"# H?"},
        {MACHINE, "line 1: \"\": \"# date"},
        {MACHINE NAMES "a,1,2\n", "line 2: \"kernel,cols,us\""},
        {MACHINE "# 2026-11-30 and much more: x\n" NAMES "a,1,2\n", "line 2"},
        {MACHINE DATE, "names of columns"},
        {MACHINE DATE "kernel\na\n", "line 3: \"kernel\": a line of 2 to 64"},
        {MACHINE DATE NAMES, "a row is needed"},
        {MACHINE DATE NAMES "a,1\n", "line 4: \"a\": a row of as many"},
        {MACHINE DATE NAMES "a,1,2\nb,1,2,3\n", "line 5: \"b\": a row of as many"},
        {MACHINE DATE NAMES "a,1,2\n\n", "line 5: \"\": a row of as many"},
    };
    const char *path = path_of(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct results_table t;
        struct error error;
        make_table(state, cases[i].text);
        if (results_table_read(&t, path, &error) != STATUS_BAD_FILE)
            fail_msg("case %zu is accepted", i);
        if (!strstr(error.text, cases[i].message) ||
            strncmp(error.text, path, strlen(path)) != 0)
            fail_msg("case %zu: %s", i, error.text);
        assert_null(t.cell);
        assert_null(t.text);
    }
}

static void test_too_many_columns(void **state)
{
    char text[1024] = MACHINE DATE "c";
    struct results_table t;
    struct error error;
    for (int n = 1; n <= 64; n++)
        strcat(text, ",c");
    make_table(state, text);
    assert_int_equal(results_table_read(&t, path_of(state), &error), STATUS_BAD_FILE);
    remove(path_of(state));
    assert_int_equal(results_table_read(&t, path_of(state), &error), STATUS_BAD_FILE);
    assert_non_null(strstr(error.text, "No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_committed_table),
        cmocka_unit_test_setup_teardown(test_fields, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_refusals, make_place, remove_place),
        cmocka_unit_test_setup_teardown(test_too_many_columns, make_place, remove_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
