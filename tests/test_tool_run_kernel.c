/* flashlab run-kernel: the CUDA kernels' source on the CPU.
 *
 * Protects: the sectors that an H200 counted for the same runs; figures of launches, arrays and
 * lines that add up; the page with every line of the source; and whatever is wrong with the
 * command line ends with exit status 2, a message that says what is allowed, and no output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* At path, "a.b.0.c": names of objects and indices of arrays. */
static const cJSON *find(const cJSON *json, const char *path)
{
    char name[64];
    for (const char *at = path; *at;) {
        const size_t length = strcspn(at, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const cJSON *next = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(name))
                                                : cJSON_GetObjectItem(json, name);
        if (!next)
            fail_msg("no %s in %s", name, path);
        json = next;
        at += length + (at[length] == '.');
    }
    return json;
}

static int64_t number(const cJSON *json, const char *path)
{
    const cJSON *found = find(json, path);
    if (!cJSON_IsNumber(found))
        fail_msg("%s is no number", path);
    return (int64_t)found->valuedouble;
}

/* What the tool prints with --json; cJSON_Delete() it. */
static cJSON *run_json(const struct workplace *place, const char *arguments)
{
    struct tool_run run;
    tool_run(&run, place, "run-kernel %s --json", arguments);
    cJSON *json = cJSON_Parse(run.out);
    if (run.status != 0 || !json)
        fail_msg("%s: exit status %d: %s%s", arguments, run.status, run.out, run.err);
    assert_true(cJSON_IsTrue(find(json, "equal")));
    tool_run_free(&run);
    return json;
}

/* Load and store sectors that an H200 counted (cuda/results/h200_counters.csv). */
static void test_sectors_are_the_measured_ones(void **state)
{
    static const struct {
        const char *arguments;
        int64_t loaded, stored;
    } cases[] = {
        {"vector_add --cols 1048581", 262146, 131073},
        {"matmul_naive --rows 256 --cols 256 --depth 256", 2621440, 8192},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        cJSON *json = run_json(*state, cases[i].arguments);
        assert_int_equal(number(json, "sectors.loaded.on_cpu"), cases[i].loaded);
        assert_int_equal(number(json, "sectors.stored.on_cpu"), cases[i].stored);
        assert_int_equal(number(json, "launches.0.hbm.load.sectors"), cases[i].loaded);
        cJSON_Delete(json);
    }
}

static const char *const figures[] = {"accesses", "requests",   "bytes",
                                      "sectors",  "wavefronts", "conflicts"};

/* sum += what object has of each figure; of either memory. */
static void add_figures(int64_t sum[LENGTH(figures)], const cJSON *object)
{
    for (size_t k = 0; object && k < LENGTH(figures); k++) {
        const cJSON *value = cJSON_GetObjectItem(object, figures[k]);
        sum[k] += value ? (int64_t)value->valuedouble : 0;
    }
}

/* Lines, and arrays of HBM, add up to the launches' totals. */
static void check_sums(const cJSON *json, const char *memory, const char *way)
{
    int64_t launches[LENGTH(figures)] = {0}, arrays[LENGTH(figures)] = {0};
    int64_t lines[LENGTH(figures)] = {0};
    const cJSON *launch, *array, *line;
    const bool hbm = strcmp(memory, "hbm") == 0;
    cJSON_ArrayForEach(launch, find(json, "launches"))
    {
        add_figures(launches, cJSON_GetObjectItem(cJSON_GetObjectItem(launch, memory), way));
        cJSON_ArrayForEach(array, cJSON_GetObjectItem(launch, "arrays"))
            add_figures(arrays, cJSON_GetObjectItem(array, way));
    }
    cJSON_ArrayForEach(
        line, find(json, "lines")) if (strcmp(cJSON_GetStringValue(find(line, "memory")),
                                              memory) == 0 &&
                                       strcmp(cJSON_GetStringValue(find(line, "way")), way) ==
                                           0) add_figures(lines, line);
    assert_true(launches[0] > 0 && launches[1] > 0);
    for (size_t k = 0; k < LENGTH(figures); k++) {
        if (launches[k] != lines[k] || (hbm && launches[k] != arrays[k]))
            fail_msg("%s %s, %s: launches %ld, arrays %ld, lines %ld", memory, way, figures[k],
                     (long)launches[k], (long)arrays[k], (long)lines[k]);
    }
}

static void test_figures_add_up(void **state)
{
    static const char *const runs[] = {
        "flash2_forward --seqlen 100 --head-dim 32 --block-q 32 --block-k 16 --mask causal",
        "flash1_forward --seqlen 70 --heads-q 2 --heads-kv 1",
        "standard_attention --seqlen 100 --head-dim 24",
        "matmul_shared --rows 70 --cols 50 --depth 40 --tile 16",
        "matmul_tiled --rows 70 --cols 50 --depth 40 --tile 16",
        "softmax_online --rows 3 --cols 700",
    };
    for (size_t i = 0; i < LENGTH(runs); i++) {
        char arguments[160];
        snprintf(arguments, sizeof arguments, "%s --lines", runs[i]);
        cJSON *json = run_json(*state, arguments);
        check_sums(json, "hbm", "load");
        check_sums(json, "hbm", "store");
        check_sums(json, "shared", "load");
        check_sums(json, "shared", "store");
        cJSON_Delete(json);
    }
}

/* The text of the line of the file, without its end; false if there is none. */
static bool read_line(char *text, int size, FILE *file)
{
    if (!fgets(text, size, file))
        return false;
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* Every source line is there, in order, and figures stand below those that touch memory. */
static void test_source_page(void **state)
{
    struct tool_run run;
    char line[256], wanted[280];
    FILE *source = fopen("cuda/kernels/vector_add.cu", "r");
    assert_non_null(source);
    tool_run(&run, *state, "run-kernel vector_add --cols 1000 --lines --cpu");
    assert_int_equal(run.status, 0);
    const char *at = run.out;
    for (int number = 1; read_line(line, sizeof line, source); number++) {
        snprintf(wanted, sizeof wanted, "\n%4d%s%s\n", number, *line ? "  " : "", line);
        const char *found = strstr(at, wanted);
        if (!found)
            fail_msg("line %d is missing, or not in its place: %s", number, line);
        at = found + strlen(wanted) - 1;
        const bool loads = strstr(line, "x[n] = a[") != NULL;
        if (loads != (strncmp(at, "\n   > load   a ", 15) == 0))
            fail_msg("figures below line %d: %.60s", number, at);
        if (loads) /* 31 whole requests, and one of 8 lanes: 31 x 4 + 1 sectors */
            assert_non_null(strstr(at, " 32 requests            125 sectors"));
    }
    fclose(source);
    for (at = run.out; *at; at += *at == '\n') {
        const size_t length = strcspn(at, "\n");
        if (length > 110)
            fail_msg("%zu columns: %.*s", length, (int)length, at);
        at += length;
    }
    assert_non_null(strstr(run.out, "PASS  c: differs from the simulator's by 0 of"));
    tool_run_free(&run);
}

/* Coalesced, broadcast, and one sector a lane. */
static void test_efficiency(void **state)
{
    cJSON *json = run_json(*state, "matmul_naive --rows 4 --cols 32 --depth 64 --lines");
    assert_int_equal(number(json, "launches.0.arrays.B.load.efficiency_percent"), 100);
    assert_int_equal(number(json, "launches.0.arrays.A.load.efficiency_percent"), 400);
    assert_int_equal(number(json, "launches.0.arrays.A.load.requests"), 4 * 64);
    assert_int_equal(number(json, "launches.0.arrays.A.load.sectors"), 4 * 64);
    cJSON_Delete(json);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *arguments, *says[4];
    } cases[] = {
        {"", {"NAME", "must be given", "vector_add, matmul_naive", "or flash2_forward"}},
        {"flash3", {"flash3", "vector_add", "softmax_online", "standard_attention"}},
        {"vector_add flash2_forward", {"flash2_forward", "unexpected argument"}},
        {"vector_add --gpu", {"--gpu", "ncu"}},
        {"vector_add --rows 5", {"--rows", "the shape of vector_add has --cols"}},
        {"vector_add --seqlen 5", {"--seqlen", "vector_add has --cols"}},
        {"flash2_forward --tile 16", {"--tile", "flash2_forward has --seqlen"}},
        {"vector_add --cols 0", {"--cols 0", "a whole number from 1 to"}},
        {"vector_add --cols", {"--cols", "needs a value"}},
        {"matmul_tiled --tile 24", {"--tile 24", "16, 32 or 64"}},
        {"matmul_shared --tile 64", {"--tile 64", "16 or 32"}},
        {"flash2_forward --block-q 65", {"--block-q 65", "1 to 64"}},
        {"flash2_forward --head-dim 512", {"--head-dim 512", "1 to 256"}},
        {"flash2_forward --heads-q 3 --heads-kv 2", {"--heads-q 3", "--heads-kv"}},
        {"flash2_forward --machine P100", {"--machine P100", "flashlab machines"}},
        {"flash2_forward --head-dim 128 --machine T4",
         {"--machine T4", "need", "bytes of shared memory", "65536"}},
        {"matmul_naive --rows 262145 --cols 1 --depth 1", {"matmul_naive", "65537", "65535"}},
        {"vector_add --seed x", {"--seed x"}},
        {"standard_attention --seqlen 65536", {"S has", "4 GB"}},
        {"naive_attention --dtype f16", {"--dtype", "unknown option"}},
    };
    const struct workplace *place = *state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const char *arguments = cases[i].arguments;
        struct tool_run run;
        tool_run(&run, place, "run-kernel%s%s", *arguments ? " " : "", arguments);
        if (run.status != 2 || *run.out)
            fail_msg("%s: exit status %d: %s", cases[i].arguments, run.status, run.out);
        for (int k = 0; k < 4 && cases[i].says[k]; k++)
            if (!strstr(run.err, cases[i].says[k]))
                fail_msg("%s does not say '%s': %s", cases[i].arguments, cases[i].says[k],
                         run.err);
        tool_run_free(&run);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_sectors_are_the_measured_ones),
        TEST(test_figures_add_up),
        TEST(test_source_page),
        TEST(test_efficiency),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests_name("tool run-kernel", tests, NULL, NULL);
}
