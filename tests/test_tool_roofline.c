/* `flashlab roofline` and `flashlab times`.
 *
 * Protects: the numbers of text, JSON and CSV, on machines whose ridges are known; which
 * algorithms and machines are listed; what is refused, with nothing written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/tool.h"

enum { ROWS = 258 };

static cJSON *run_json(const struct workplace *place, const char *arguments)
{
    struct tool_run run;
    tool_run(&run, place, "%s", arguments);
    if (run.status != 0 || *run.err)
        fail_msg("%s: exit status %d: %s", arguments, run.status, run.err);
    cJSON *json = cJSON_Parse(run.out);
    if (!json)
        fail_msg("%s: no JSON: %s", arguments, run.out);
    tool_run_free(&run);
    return json;
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item))
        fail_msg("%s is no number", key);
    return item->valuedouble;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-4 * fabs(want)))
        fail_msg("%.9g, not %.9g", got, want);
}

static void test_json_has_the_ridge_and_four_algorithms(void **state)
{
    cJSON *json = run_json(*state, "roofline --machine A100-80GB --dtype f16 --json");
    const cJSON *list = cJSON_GetObjectItem(json, "algorithms");
    assert_near(number(json, "hbm_ridge"), 312 / 2.039);
    assert_near(number(json, "peak_flops_per_second"), 312e12);
    assert_int_equal(cJSON_GetArraySize(list), 4);
    const cJSON *standard = cJSON_GetArrayItem(list, 1), *flash2 = cJSON_GetArrayItem(list, 3);
    assert_string_equal(cJSON_GetObjectItem(standard, "bound")->valuestring, "HBM");
    assert_string_equal(cJSON_GetObjectItem(flash2, "bound")->valuestring, "compute");
    /* N = 4096, d = 64 */
    assert_near(number(flash2, "flops"), 4.0 * 4096 * 4096 * 64);
    assert_near(number(flash2, "hbm_bytes"), 2 * 4.0 * 4096 * 64 + 4 * 4096);
    assert_near(number(standard, "attainable_flops_per_second"),
                number(standard, "flops") / number(standard, "hbm_bytes") * 2.039e12);
    assert_near(number(flash2, "attainable_flops_per_second"), 312e12);
    assert_true(number(flash2, "seconds_at_once") > 0);
    assert_true(number(flash2, "seconds_in_turn") > number(flash2, "seconds_at_once"));
    cJSON_Delete(json);
}

static void test_one_algorithm_alone(void **state)
{
    cJSON *json = run_json(*state, "roofline --algorithm flash1 --machine T4 --json");
    const cJSON *list = cJSON_GetObjectItem(json, "algorithms");
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_string_equal(
        cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "algorithm")->valuestring, "flash1");
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "l2_ridge"))); /* not known of a T4 */
    cJSON_Delete(json);
}

static void test_text_lists_every_machine(void **state)
{
    struct tool_run run;
    tool_run(&run, *state, "roofline --dtype bf16");
    assert_int_equal(run.status, 0);
    assert_non_null(
        strstr(run.out, "H200, bf16: peak 989.0 TFLOP/s\n  HBM  4.80 TB/s, ridge 206.0 "));
    assert_non_null(strstr(run.out, "\nT4                  -        -         -"));
    assert_non_null(strstr(run.out, "\nAscend-910B"));
    assert_non_null(strstr(run.out, "\nB200            293.4"));
    tool_run_free(&run);
}

static void test_csv_is_what_is_drawn(void **state)
{
    const struct workplace *place = *state;
    struct tool_run run;
    char line[256];
    int ceilings = 0, kernels = 0;
    tool_run(&run, place, "roofline --machine A100-40GB --dtype f16 --csv r.csv");
    assert_int_equal(run.status, 0);
    tool_run_free(&run);
    FILE *file = fopen(workplace_path(place, "r.csv"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        ceilings += strncmp(line, "fp16,ceiling,", 13) == 0;
        kernels += strncmp(line, "fp16,kernel,", 12) == 0;
    }
    fclose(file);
    assert_int_equal(ceilings, 6); /* HBM, L2, tensor cores: two points each */
    assert_int_equal(kernels, 4);
}

static void test_times_are_all_there(void **state)
{
    cJSON *json = run_json(*state, "times --json");
    int production = 0;
    assert_int_equal(cJSON_GetArraySize(json), ROWS);
    for (const cJSON *row = json->child; row; row = row->next) {
        assert_true(number(row, "measured_us") >= 15);
        assert_true(number(row, "estimate_us") >= number(row, "overlapped_us"));
        assert_true(number(row, "in_turn_us") >= number(row, "overlapped_us") * (1 - 1e-9));
        production += strcmp(cJSON_GetObjectItem(row, "kind")->valuestring, "cuDNN") == 0;
    }
    assert_int_equal(production, 15);
    cJSON_Delete(json);
}

static void test_times_csv_and_text_have_a_line_a_run(void **state)
{
    struct tool_run run;
    char line[256];
    int lines = 0;
    tool_run(&run, *state, "times --csv t.csv");
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.out, "flash2_forward     b 4 h 16 N 4096 d 64 64x64"));
    assert_non_null(strstr(run.out, "\nall                   258 "));
    tool_run_free(&run);
    FILE *file = fopen(workplace_path(*state, "t.csv"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        lines++;
    fclose(file);
    assert_int_equal(lines, ROWS + 1);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *arguments, *says;
    } bad[] = {
        {"roofline --dtype bf16 --machine T4 --csv r.csv", "--dtype bf16"},
        {"roofline --machine nowhere", "--machine nowhere"},
        {"roofline --seqlen 0", "--seqlen 0"},
        {"roofline --heads-q 6 --heads-kv 4 --csv r.csv", "heads"},
        {"roofline --scale 2", "--scale"},
        {"roofline --plot r.gif", "--plot r.gif"},
        {"roofline --csv nowhere/r.csv", "--csv"},
        {"roofline flash2", "unexpected"},
        {"times --machine H200", "--machine"},
        {"times --csv nowhere/t.csv", "--csv"},
    };
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct tool_run run;
        tool_run(&run, *state, "%s", bad[i].arguments);
        if (run.status != 2 || *run.out || !strstr(run.err, bad[i].says))
            fail_msg("%s: exit status %d: %s%s", bad[i].arguments, run.status, run.out,
                     run.err);
        tool_run_free(&run);
        char *listing = workplace_listing(*state);
        assert_string_equal(listing, "");
        free(listing);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_json_has_the_ridge_and_four_algorithms),
        TEST(test_one_algorithm_alone),
        TEST(test_text_lists_every_machine),
        TEST(test_csv_is_what_is_drawn),
        TEST(test_times_are_all_there),
        TEST(test_times_csv_and_text_have_a_line_a_run),
        TEST(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("flashlab roofline and times", tests, NULL, NULL);
}
