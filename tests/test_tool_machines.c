/* `flashlab machines`, and a machine of the user's own for the commands that run on one. What
 * is wrong with such a file: test_machine_file, test_tool_refusals.
 *
 * Protects: what is printed of a machine is a file of that machine; text and JSON show every
 * figure, with its source, and say that one is unknown; a user's machine is the one that runs,
 * by its name and with its limits.
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

#include "common/npy_files.h"
#include "common/tool.h"
#include "core/machine_figures.h"
#include "core/machine_file.h"

static const char mine[] = "[Mine]\n"
                           "note = 6 KiB of SRAM\n"
                           "sms = 3             # counted\n"
                           "hbm_size = 1 GB\n"
                           "hbm_bandwidth = 0.1 TB/s\n"
                           "l2_size = 1 MiB\n"
                           "sram_per_sm = 6 KiB\n"
                           "sram_per_block = 6 KiB\n"
                           "registers_per_sm = 256 KiB\n"
                           "tensor_f16 = 1 TFLOP/s\n"
                           "fp32 = 0.5 TFLOP/s\n"
                           "pcie = none\n";

/* Runs a command that must succeed; free the run. */
static void run(struct tool_run *run, const struct workplace *place, const char *arguments)
{
    tool_run(run, place, "%s", arguments);
    if (run->status != 0 || *run->err)
        fail_msg("%s: exit status %d: %s", arguments, run->status, run->err);
}

static void write_mine(const struct workplace *place, const char *name)
{
    write_bytes(workplace_path(place, name), mine, sizeof mine - 1);
}

static void assert_same(const struct machine *a, const struct machine *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->note, b->note);
    for (int f = 0; f < FIGURE_COUNT; f++) {
        assert_true(machine_figure_get(a, (enum machine_figure)f) ==
                    machine_figure_get(b, (enum machine_figure)f));
        assert_string_equal(a->source[f], b->source[f]);
    }
}

static void assert_columns(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80)
            fail_msg("more than 80 columns: %.*s", (int)strcspn(line, "\n"), line);
}

static void test_what_is_printed_is_a_file(void **state)
{
    int count;
    const struct machine *table = machine_table(&count);
    for (int i = 0; i < count; i++) {
        struct tool_run r;
        struct machine read;
        struct error error;
        char arguments[80];
        int one;
        snprintf(arguments, sizeof arguments, "machines %s", table[i].name);
        run(&r, *state, arguments);
        if (machine_file_parse(&read, 1, &one, r.out, "stdout", &error) != STATUS_OK)
            fail_msg("%s", error.text);
        assert_same(&read, &table[i]);
        assert_columns(r.out);
        for (int f = 0; f < FIGURE_COUNT; f++) { /* none is left out */
            char line[80];
            const char *begin = strcmp(table[i].source[f], "") == 0 ? "# " : "";
            snprintf(line, sizeof line, "\n%s%s ", begin, machine_figures[f].key);
            assert_non_null(strstr(r.out, line));
        }
        tool_run_free(&r);
    }
}

static cJSON *json_of(const struct workplace *place, const char *arguments)
{
    struct tool_run r;
    run(&r, place, arguments);
    cJSON *json = cJSON_Parse(r.out);
    assert_non_null(json);
    tool_run_free(&r);
    return json;
}

static void check_json(const cJSON *json, const struct machine *m)
{
    const cJSON *sources = cJSON_GetObjectItemCaseSensitive(json, "sources");
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "name")->valuestring, m->name);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "note")->valuestring, m->note);
    for (int f = 0; f < FIGURE_COUNT; f++) {
        const char *field = machine_figures[f].field;
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field);
        const cJSON *source = cJSON_GetObjectItemCaseSensitive(sources, field);
        const double value = machine_figure_get(m, (enum machine_figure)f);
        assert_non_null(item);
        if (value > 0)
            assert_true(cJSON_IsNumber(item) && item->valuedouble == value);
        else if (value == 0)
            assert_true(cJSON_IsNull(item));
        else
            assert_string_equal(item->valuestring, "none");
        assert_string_equal(source ? source->valuestring : "", m->source[f]);
    }
}

static void test_json(void **state)
{
    int count;
    const struct machine *table = machine_table(&count);
    cJSON *all = json_of(*state, "machines --json");
    assert_int_equal(cJSON_GetArraySize(all), count);
    for (int i = 0; i < count; i++) {
        char arguments[80];
        check_json(cJSON_GetArrayItem(all, i), &table[i]);
        snprintf(arguments, sizeof arguments, "machines --json %s", table[i].name);
        cJSON *one = json_of(*state, arguments);
        assert_true(cJSON_Compare(one, cJSON_GetArrayItem(all, i), true));
        cJSON_Delete(one);
    }
    cJSON_Delete(all);
}

static void test_table(void **state)
{
    static const char *const lines[] = {
        "\nT4            40   16  0.320    4    64    64    32    65   8.1  1.02   none\n",
        "\nH200         132  141  4.800   60   228   227    64   989  67.0  3.87    900\n",
        "\nAscend-910B   24   69  1.600  192   512   512     ?   354  11.1     ?      ?\n",
    };
    int count;
    const struct machine *table = machine_table(&count);
    struct tool_run r;
    run(&r, *state, "machines");
    assert_columns(r.out);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(r.out, lines[i]))
            fail_msg("there is no %s in %s", lines[i], r.out);
    for (int i = 0; i < count; i++) {
        const char *name = strstr(r.out, table[i].name);
        assert_non_null(name);
        assert_non_null(strstr(name + 1, table[i].note));
    }
    assert_non_null(strstr(r.out, "Default: H200"));
    tool_run_free(&r);
}

static void test_own_machine_is_shown(void **state)
{
    const struct workplace *place = *state;
    struct machine read;
    struct error error;
    struct tool_run r;
    int count;
    write_mine(place, "my.machine");
    run(&r, place, "machines my.machine");
    assert_int_equal(machine_file_parse(&read, 1, &count, mine, "mine", &error), STATUS_OK);
    assert_non_null(strstr(r.out, "[Mine]\nnote = 6 KiB of SRAM\n"));
    assert_non_null(strstr(r.out, "\nsms               = 3             # counted\n"));
    assert_non_null(strstr(r.out, "\nfp32              = 0.5 TFLOP/s\n"));
    assert_non_null(strstr(r.out, "\n# clock             unknown\n"));
    assert_non_null(strstr(r.out, "\npcie              = none\n"));
    tool_run_free(&r);
    cJSON *json = json_of(place, "machines ./my.machine --json");
    check_json(json, &read);
    cJSON_Delete(json);
}

static void test_own_machine_runs(void **state)
{
    static const struct {
        const char *arguments;
        int status;
        const char *says;
    } cases[] = {
        {"traffic --machine %s --seqlen 32 --head-dim 16 --block-q 16 --block-k 16", 0,
         "flash2 on Mine: "},
        {"traffic --machine %s --seqlen 32 --head-dim 32 --block-q 16 --block-k 32", 2,
         "do not fit on chip on Mine"},
        {"run-kernel vector_add --cols 64 --machine %s", 0, "limits of Mine"},
        {"run-kernel flash2_forward --seqlen 32 --machine %s", 2, "--machine Mine: "},
        {"traffic --json --seqlen 32 --head-dim 16 --block-q 16 --block-k 16 --machine %s", 0,
         "\"machine\":\t\"Mine\""},
    };
    static const char *const files[] = {"my.machine", "./plain.txt"};
    const struct workplace *place = *state;
    write_mine(place, "my.machine");
    write_mine(place, "plain.txt");
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        char arguments[200];
        struct tool_run r;
        const char *format = cases[i / 2].arguments, *at = strstr(format, "%s");
        snprintf(arguments, sizeof arguments, "%.*s%s%s", (int)(at - format), format,
                 files[i % 2], at + 2);
        tool_run(&r, place, "%s", arguments);
        if (r.status != cases[i / 2].status ||
            !strstr(r.status == 0 ? r.out : r.err, cases[i / 2].says))
            fail_msg("%s: exit status %d\n%s%s", arguments, r.status, r.out, r.err);
        tool_run_free(&r);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_printed_is_a_file),
        TEST(test_json),
        TEST(test_table),
        TEST(test_own_machine_is_shown),
        TEST(test_own_machine_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
