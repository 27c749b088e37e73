/* Files of machines.
 *
 * Protects: a user's file gives the machine that it says, in any order of lines and with the
 * line ends of any system; whatever is wrong with one is refused by the line, the key, the
 * value and what is allowed, and gives no machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/core_fixture.h"
#include "core/machine_figures.h"
#include "core/machine_file.h"

enum { MOST_TEXT = 4096, MOST = 2 };

static const char good[] = "# mine\n"
                           "[Mine]\n"
                           "sms = 4\n"
                           "hbm_size = 1 GB\n"
                           "hbm_bandwidth = 0.1 TB/s\n"
                           "l2_size = 1 MiB\n"
                           "l2_line = 128 B\n"
                           "l2_sector = 32 B\n"
                           "sram_per_sm = 48 KiB\n" /* line 9 */
                           "sram_per_block = 40 KiB # a guess\n"
                           "registers_per_sm = 256 KiB\n"
                           "threads_per_sm = 512\n" /* line 12 */
                           "warps_per_sm = 16\n"
                           "blocks_per_sm = 8\n"
                           "threads_per_block = 256\n"
                           "tensor_f16 = 1 TFLOP/s\n"
                           "fp32 = 100 GFLOP/s\n" /* line 17 */
                           "nvlink = none\n";

/* Copies text to out, with the first find in it replaced; find "" puts it at the end. */
static void edit(char out[MOST_TEXT], const char *text, const char *find, const char *put)
{
    const char *at = *find ? strstr(text, find) : text + strlen(text);
    if (!at)
        fail_msg("\"%s\" is not in the file", find);
    const int before = (int)(at - text);
    const int length =
        snprintf(out, MOST_TEXT, "%.*s%s%s", before, text, put, at + strlen(find));
    assert_in_range(length, 0, MOST_TEXT - 1);
}

static void parse_good(struct machine machines[MOST], const char *text, int want)
{
    struct error error = {0};
    int count = -1;
    if (machine_file_parse(machines, MOST, &count, text, "my.machine", &error) != STATUS_OK)
        fail_msg("%s", error.text);
    assert_int_equal(count, want);
}

static void check_mine(const struct machine *m)
{
    assert_string_equal(m->name, "Mine");
    assert_int_equal(m->sms, 4);
    assert_int_equal(m->hbm_bytes, 1000000000);
    assert_true(m->hbm_bytes_per_second == 0.1 * 1e12);
    assert_int_equal(m->l2_bytes, 1 << 20);
    assert_int_equal(m->sram_bytes_per_sm, 48 << 10);
    assert_int_equal(m->sram_bytes_per_block, 40 << 10);
    assert_int_equal(m->warps_per_sm, 16);
    assert_true(m->fp32_flops == 1e11 && m->tensor_flops == 1e12);
    assert_true(m->nvlink_bytes_per_second == MACHINE_NONE);
    assert_true(m->clock_hz == 0 && m->pcie_bytes_per_second == 0); /* unknown */
    assert_string_equal(m->source[FIGURE_SRAM_PER_BLOCK], "a guess");
    assert_string_equal(m->source[FIGURE_SRAM_PER_SM], "");
}

static void test_good_files(void **state)
{
    struct machine machines[MOST];
    char text[MOST_TEXT], more[MOST_TEXT];
    (void)state;
    parse_good(machines, good, 1);
    check_mine(&machines[0]);
    assert_string_equal(machines[0].note, "");
    /* Comments, blanks, a note, an order of its own, no end of the last line, bytes of UTF-8.
     */
    edit(text, good, "sms = 4\n", "");
    edit(more, text, "[Mine]\n", "\n  [Mine]\t# \xc3\xa9\n\tnote =  a note  # not shown\n");
    edit(text, more, "", "  sms=4");
    parse_good(machines, text, 1);
    check_mine(&machines[0]);
    assert_string_equal(machines[0].note, "a note");
    /* The ends of lines of Windows. */
    size_t used = 0;
    for (const char *c = good; *c; c++) {
        if (*c == '\n')
            text[used++] = '\r';
        text[used++] = *c;
    }
    text[used] = '\0';
    parse_good(machines, text, 1);
    check_mine(&machines[0]);
    /* Two machines. */
    edit(text, good, "[Mine]", "[Other]");
    edit(more, good, "", text);
    parse_good(machines, more, 2);
    check_mine(&machines[0]);
    assert_string_equal(machines[1].name, "Other");
}

/* The edges that figures may share without a contradiction. */
static void test_edges(void **state)
{
    static const char *const edits[][2] = {
        {"sram_per_block = 40", "sram_per_block = 48"},
        {"l2_sector = 32", "l2_sector = 128"},
        {"warps_per_sm = 16\n", ""},
        {"threads_per_sm = 512\n", ""},
        {"threads_per_sm = 512", "threads_per_sm = 543"},
        {"blocks_per_sm = 8", "blocks_per_sm = 16"},
        {"threads_per_block = 256", "threads_per_block = 512"},
        {"l2_line = 128 B\n", ""},
        {"l2_size = 1 MiB", "l2_size = 128 B"},
        {"hbm_size = 1 GB", "hbm_size = 1 MiB"},
        {"nvlink = none\n", ""},
    };
    struct machine machines[MOST];
    char text[MOST_TEXT];
    (void)state;
    for (size_t i = 0; i < LENGTH(edits); i++) {
        edit(text, good, edits[i][0], edits[i][1]);
        parse_good(machines, text, 1);
    }
}

#define TEXT_100                                                                               \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaaaaaaaaaa"

static const struct refusal {
    const char *find, *put;
    int line;
    const char *says[3];
} refusals[] = {
    /* Lines. */
    {"sms = 4", "sms 4", 3, {"sms 4: must be [NAME], key = value or # a comment"}},
    {"sms = 4", "= 4", 3, {": unknown key"}},
    {"sms = 4", "SMS = 4", 3, {"SMS: unknown key"}},
    {"sms = 4", "sms\tx = 4", 3, {"sms x: unknown key"}},
    {"sms = 4", "sms_count = 4", 3, {"sms_count: unknown key", "flashlab machines H200"}},
    {"nvlink = none", "sms = 5", 18, {"sms: must be given once, line 3 has it"}},
    {"nvlink = none", "note = a\nnote = b", 19, {"note: must be given once, line 18"}},
    {"# mine", "sms = 4", 1, {"sms: must come after the [NAME] of a machine"}},
    {"sms = 4", "sms = 4 #" TEXT_100 TEXT_100 TEXT_100, 3, {"309 bytes", "at most 300"}},
    {"sms = 4", "sms = 4 #" TEXT_100 TEXT_100, 3, {"sms: the source", "at most 159 bytes"}},
    {"sms = 4", "note = " TEXT_100 TEXT_100, 3, {"note = aaa", "a text of 1 to 119 bytes"}},
    {"sms = 4", "note =", 3, {"note = : must be a text"}},
    {"sms = 4", "sms = \x01", 3, {"byte 7 is 0x01", "must be text"}},
    {"sms = 4", "sms = \x7f", 3, {"byte 7 is 0x7f"}},
    {"sms = 4", "sms = \xc3\xa9", 3, {"byte 7 is 0xc3", "ASCII outside comments"}},
    {"# mine",
     "\x7f"
     "ELF",
     1,
     {"byte 1 is 0x7f"}},
    {"# mine", "# \x1b[31m", 1, {"byte 3 is 0x1b"}},
    {"sms = 4", "sms = 4\r#", 3, {"byte 8 is 0x0d"}},
    /* Names. */
    {"[Mine]", "[]", 2, {"[]: must be [NAME], of 1 to 31 letters, digits, - and _"}},
    {"[Mine]", "[My GPU]", 2, {"[My GPU]: must be [NAME]"}},
    {"[Mine]", "[Mine", 2, {"[Mine: must be [NAME]"}},
    {"[Mine]", "[Mine] x", 2, {"[Mine] x: must be [NAME]"}},
    {"[Mine]", "[12345678901234567890123456789012]", 2, {"1 to 31 letters"}},
    {"nvlink = none", "[mine]", 18, {"[mine]: must be another name than that of machine 1"}},
    /* Values. */
    {"sms = 4", "sms = -4", 3, {"sms = -4: must be a whole number from 1 to 65536"}},
    {"sms = 4", "sms = 0", 3, {"sms = 0: must be a whole number"}},
    {"sms = 4", "sms = many", 3, {"sms = many: must be a whole number"}},
    {"sms = 4", "sms =", 3, {"sms = : must be a whole number"}},
    {"sms = 4", "sms = 4 of them", 3, {"sms = 4 of them: must be a whole number"}},
    {"sms = 4", "sms = 4 = 5", 3, {"sms = 4 = 5: must be"}},
    {"sms = 4", "sms = none", 3, {"sms = none: must be a whole number"}},
    {"1 MiB", "1", 6, {"l2_size = 1: must be from 1 to", "whole bytes, as 48 KiB", "MiB"}},
    {"1 MiB", "1 MB/s", 6, {"l2_size = 1 MB/s: must be from 1 to"}},
    {"48 KiB", "2 GiB", 9, {"sram_per_sm = 2 GiB", "from 1 to 1073741824 whole bytes"}},
    {"1 TFLOP/s", "1e3 TFLOP/s", 16, {"tensor_f16 = 1e3 TFLOP/s: must be above 0", "TFLOP/s"}},
    {"none", "no", 18, {"nvlink = no: must be above 0", "GB/s, TB/s, or none"}},
    {"none", "0 GB/s", 18, {"nvlink = 0 GB/s: must be above 0"}},
    /* Contradictions. */
    {"40 KiB",
     "49 KiB",
     10,
     {"sram_per_block = 49 KiB: must be at most sram_per_sm = 48 KiB of line 9"}},
    {"l2_sector = 32 B",
     "l2_sector = 256 B",
     8,
     {"l2_sector = 256 B: must be at most l2_line = 128 B of line 7"}},
    {"l2_sector = 32 B", "l2_sector = 48 B", 8, {"l2_sector = 48 B: must be a power of two"}},
    {"l2_line = 128 B", "l2_line = 96 B", 7, {"l2_line = 96 B: must be a power of two"}},
    {"l2_size = 1 MiB", "l2_size = 1000000 B", 6, {"must be a multiple of l2_line = 128 B"}},
    {"l2_size = 1 MiB", "l2_size = 2 GB", 6, {"must be at most hbm_size = 1 GB of line 4"}},
    {"warps_per_sm = 16",
     "warps_per_sm = 17",
     13,
     {"warps_per_sm = 17: must be at most a 32nd of threads_per_sm = 512 of line 12"}},
    {"blocks_per_sm = 8", "blocks_per_sm = 17", 14, {"at most warps_per_sm = 16 of line 13"}},
    {"threads_per_block = 256",
     "threads_per_block = 513",
     15,
     {"must be at most threads_per_sm = 512 of line 12"}},
    {"256 KiB", "262143 B", 11, {"registers_per_sm = 262143 B: must be a multiple of the 4"}},
    /* In a block that another follows. */
    {"nvlink = none", "sms = 5\n[Other]", 18, {"sms: must be given once"}},
    {"sram_per_block = 40 KiB # a guess\n",
     "[Other]\n",
     2,
     {"[Mine]: sram_per_block is missing: must be from 1 to"}},
};

/* Fails unless text is refused for that line, with a message that has all of says. */
static void expect_refusal(const char *text, int most, const struct refusal *r)
{
    struct machine machines[MOST];
    struct error error = {0};
    char start[32];
    int count = -1;
    const enum status status =
        machine_file_parse(machines, most, &count, text, "my.machine", &error);
    snprintf(start, sizeof start, "my.machine:%d: ", r->line);
    if (status != STATUS_BAD_FILE || error.status != status || count != 0)
        fail_msg("\"%s\": status %d, %d machines", r->put, (int)status, count);
    if (strncmp(error.text, start, strlen(start)) != 0)
        fail_msg("\"%s\" is not for line %d: %s", r->put, r->line, error.text);
    for (size_t i = 0; i < LENGTH(r->says) && r->says[i]; i++)
        if (!strstr(error.text, r->says[i]))
            fail_msg("\"%s\" is not in: %s", r->says[i], error.text);
    for (const char *c = error.text; *c; c++)
        assert_in_range(*c, ' ', '~');
}

static void test_refusals(void **state)
{
    char text[MOST_TEXT];
    (void)state;
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        edit(text, good, refusals[i].find, refusals[i].put);
        expect_refusal(text, MOST, &refusals[i]);
    }
}

static void test_files_without_a_machine(void **state)
{
    static const struct refusal r = {"", "no machine", 2, {"must have a machine, [NAME]"}};
    static const struct refusal empty = {"", "nothing", 0, {"must have a machine, [NAME]"}};
    static const struct refusal second = {
        "", "a second machine", 19, {"[Other]: must be the end: the file may have 1 machine"}};
    char text[MOST_TEXT];
    (void)state;
    expect_refusal("# none\n\n", MOST, &r);
    expect_refusal("", MOST, &empty);
    edit(text, good, "", "[Other]\n");
    expect_refusal(text, 1, &second);
}

/* Each figure that is required is missed, and no other. */
static void test_missing_figures(void **state)
{
    struct machine machines[MOST];
    char text[MOST_TEXT], line[80], says[80];
    int missed = 0;
    (void)state;
    for (int f = 0; f < FIGURE_COUNT; f++) {
        snprintf(line, sizeof line, "\n%s =", machine_figures[f].key);
        const char *at = strstr(good, line);
        if (!at) {
            assert_false(machine_figures[f].required);
            continue;
        }
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n") + 1, at);
        edit(text, good, line, "");
        if (!machine_figures[f].required) {
            parse_good(machines, text, 1);
            continue;
        }
        snprintf(says, sizeof says, "[Mine]: %s is missing: must be ", machine_figures[f].key);
        const struct refusal r = {line, "", 2, {says}};
        expect_refusal(text, MOST, &r);
        missed++;
    }
    assert_int_equal(missed, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_files),      cmocka_unit_test(test_edges),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_files_without_a_machine),
        cmocka_unit_test(test_missing_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
