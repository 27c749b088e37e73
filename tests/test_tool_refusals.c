/* build/flashlab as a user misuses it.
 *
 * Protects: whatever is wrong with the command line or the files, the exit status is 2, the
 * message on stderr names the argument, its value and what is allowed, stdout stays empty, and
 * the disk is as it was: no half-written file, no temporary file, no empty directory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/npy_files.h"
#include "common/tool.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Later options win: a case replaces what it wants to be wrong. */
#define ATTENTION "attention --q q.npy --k k.npy --v v.npy --out out "
#define EXTENT "a whole number from 1 to"

static const struct refusal {
    const char *arguments;
    const char *says[5];
} refusals[] = {
    /* The command. */
    {"", {"usage: flashlab COMMAND"}},
    {"attend", {"attend", "unknown command", "usage: flashlab COMMAND"}},
    {"--json", {"--json", "usage: flashlab COMMAND"}},
    /* Extents. */
    {"traffic --block-q 0", {"--block-q 0", EXTENT}},
    {"traffic --block-k=0", {"--block-k 0", EXTENT}},
    {ATTENTION "--block-k 0", {"--block-k 0", EXTENT}},
    {"traffic --block-q 65537", {"--block-q 65537", "1 to 65536"}},
    {"traffic --block-q 64.5", {"--block-q 64.5", EXTENT}},
    {"traffic --block-q 0x40", {"--block-q 0x40", EXTENT}},
    {"traffic --seqlen -1", {"--seqlen -1", EXTENT}},
    {"traffic --seqlen-q -2147483649", {"--seqlen-q -2147483649", EXTENT}},
    {"traffic --seqlen 1e6", {"--seqlen 1e6", EXTENT}},
    {"traffic --seqlen many", {"--seqlen many", EXTENT}},
    {"traffic --seqlen 4294967297", {"--seqlen 4294967297", EXTENT}},
    {"traffic --seqlen 99999999999999999999", {"--seqlen 99999999999999999999", EXTENT}},
    {"traffic --seqlen 1073741824 --head-dim 16",
     {"--seqlen-q 1073741824", "--head-dim 16", "too large", "overflow"}},
    {"traffic --batch 1073741824 --heads-q 1073741824", {"--batch 1073741824", "too large"}},
    {"traffic --batch 65536 --heads-q 65536 --seqlen 1", {"--batch 65536", "too large"}},
    {"traffic --head-dim 65537", {"--head-dim 65537", "1 to 65536"}},
    {"traffic --heads-q 6 --heads-kv 4", {"--heads-q 6", "multiple of --heads-kv (4)"}},
    {"traffic --heads-q 2 --heads-kv 4", {"--heads-q 2", "multiple of --heads-kv (4)"}},
    /* What does not fit on chip: the table of the tiles' bytes. d 4096, fp32, blocks of 64. */
    {"traffic --head-dim 4096",
     {"do not fit on chip on H200", "Qi", "1048576", "3145728 of 232448: too much by 2913280"}},
    {"traffic --algorithm flash1 --head-dim 4096", {"do not fit on chip", "Kj", "1048576"}},
    {"traffic --machine teaching --block-q 128 --block-k 128",
     {"do not fit on chip on teaching", "98304 of 49152"}},
    {ATTENTION "--machine teaching --block-q 1024 --block-k 2048",
     {"do not fit on chip on teaching", "Qi", "too much by"}},
    /* Names. */
    {"traffic --machine P100", {"--machine P100", "flashlab machines"}},
    {ATTENTION "--machine H-200", {"--machine H-200", "flashlab machines"}},
    {"traffic --machine=", {"--machine '': must be a name"}},
    {"machines P100", {"P100: must be a name", "ending in .machine"}},
    {"machines --machine T4", {"--machine", "unknown option"}},
    /* Files of machines. */
    {"traffic --machine gone.machine", {"--machine gone.machine", "No such file"}},
    {"traffic --machine ./gone", {"--machine ./gone", "No such file"}},
    {"traffic --machine .machine", {"--machine .machine", "must be a name"}},
    {"traffic --machine ./", {"--machine ./", "directory"}},
    {"machines ./empty.npy", {"./empty.npy", "the file is empty"}},
    {"machines ./q.npy", {"./q.npy", "not a text file"}},
    {"machines large.machine", {"large.machine", "more than 65536 bytes"}},
    {"machines wrong.machine",
     {"wrong.machine:3: sms = 0: must be a whole number from 1 to 65536"}},
    {"traffic --machine wrong.machine", {"--machine wrong.machine:3: sms = 0: must be"}},
    {"traffic --dram --machine wide.machine",
     {"machine Wide: l2_line = 256 B: the model of L2 has lines of 128 B"}},
    {"traffic --dram --machine odd.machine", {"odd.machine:3: l2_line = 96 B: must be"}},
    {ATTENTION "--machine h200.machine", {"--machine h200.machine: [h200]: must be a name"}},
    {"run-kernel vector_add --machine two.machine",
     {"--machine two.machine:11: [Other]: must be the end"}},
    {"traffic --algorithm flash3", {"--algorithm flash3", "naive, standard, flash1 or flash2"}},
    {"traffic --dtype f64", {"--dtype f64", "f32, f16, bf16, e4m3 or e5m2"}},
    {"traffic --mask diagonal", {"--mask diagonal", "none, causal", "causal-top-left"}},
    /* Options. */
    {"traffic --frobnicate", {"--frobnicate", "unknown option", "traffic --help"}},
    {"traffic -x", {"-x", "unknown option"}},
    {"traffic --q q.npy", {"--q", "unknown option"}},
    {ATTENTION "--seqlen 5", {"--seqlen", "unknown option"}},
    {"traffic --block-q", {"--block-q", "needs a value"}},
    {"traffic --json=yes", {"--json", "takes no value"}},
    {"traffic --head 64", {"--head", "option"}}, /* --head-dim? --heads-q? */
    {"traffic 4096", {"4096", "unexpected argument"}},
    {"occupancy --threads 1025", {"--threads 1025", "from 1 to 1024"}},
    {"occupancy --registers 256", {"--registers 256", "from 1 to 255"}},
    {"occupancy --machine Ascend-910B", {"--machine Ascend-910B", "NVIDIA's GPUs"}},
    {"occupancy --shared -1", {"--shared -1", "from 0 to"}},
    {"machines H200 T4", {"T4", "unexpected argument"}},
    {"traffic --scale nan", {"--scale nan", "a finite number"}},
    {"traffic --scale 1e39", {"--scale 1e39", "a finite number"}},
    {"traffic --scale half", {"--scale half", "a finite number"}},
    /* Options that exclude each other. */
    {"traffic --tma --algorithm naive", {"--tma", "--algorithm naive"}},
    {"traffic --tma --head-dim 5", {"--tma", "--head-dim 5", "a multiple of 16"}},
    {"traffic --tiled-gemm", {"--tiled-gemm", "--algorithm flash2", "standard"}},
    /* Files that were not given, are not there, or are not arrays. */
    {"attention --k k.npy --v v.npy --out out", {"--q", "must be given"}},
    {"attention --q q.npy --v v.npy --out out", {"--k", "must be given"}},
    {"attention --q q.npy --k k.npy --out out", {"--v", "must be given"}},
    {"attention --q q.npy --k k.npy --v v.npy", {"--out", "must be given"}},
    {ATTENTION "--q=", {"--q ''", "a name"}},
    {ATTENTION "--q gone.npy", {"--q gone.npy", "No such file"}},
    {ATTENTION "--k .", {"--k .", "directory"}},
    {ATTENTION "--q empty.npy", {"--q empty.npy", "the file is empty"}},
    {ATTENTION "--v text.npy", {"--v text.npy", "NUMPY"}},
    {ATTENTION "--q truncated.npy",
     {"--q truncated.npy", "truncated", "needs 160 bytes", "159"}},
    {ATTENTION "--k lying.npy", {"--k lying.npy", "truncated", "(2, 700, 4)", "22400 bytes"}},
    {ATTENTION "--v trailing.npy", {"--v trailing.npy", "224 bytes", "225"}},
    {ATTENTION "--q ints.npy", {"--q ints.npy", "'<i4'", "'<f2', '<f4' and '<f8'"}},
    {ATTENTION "--q vast.npy", {"--q vast.npy", "4611686018427387904"}},
    /* Shapes that do not go together. */
    {ATTENTION "--q one_axis.npy", {"--q one_axis.npy", "1 axes", "at least 2"}},
    {ATTENTION "--q five_axes.npy", {"--q five_axes.npy", "5 axes"}},
    {ATTENTION "--q no_rows.npy", {"--q no_rows.npy", "extent 0"}},
    {ATTENTION "--k two_axes.npy", {"--k", "number of axes", "2", "3"}},
    {ATTENTION "--k d3.npy", {"--k", "head_dim is 3", "4 in --q"}},
    {ATTENTION "--v n6.npy", {"--v", "seqlen is 6", "7 in --k"}},
    {ATTENTION "--v h1.npy", {"--v", "heads is 1", "2 in --k"}},
    {ATTENTION "--q h3.npy", {"--q", "heads is 3", "multiple of the 2"}},
    /* Output that cannot be written. */
    {ATTENTION "--out q.npy", {"--out q.npy", "not a directory"}},
    {ATTENTION "--out q.npy/out", {"--out q.npy/out", "Not a directory"}},
    {ATTENTION "--out gone/out", {"--out gone/out", "No such file or directory"}},
    {ATTENTION "--out /proc/flashlab", {"--out /proc/flashlab", "cannot be made"}},
    {ATTENTION "--out taken_o", {"--out", "taken_o/o.npy", "not a regular file"}},
    {ATTENTION "--out taken_lse", {"--out", "taken_lse/lse.npy", "not a regular file"}},
    {ATTENTION "--out taken_lse --trace t.jsonl",
     {"--out", "taken_lse/lse.npy", "not a regular file"}},
    {ATTENTION "--trace gone/t.jsonl", {"--trace gone/t.jsonl", "No such file or directory"}},
    {ATTENTION "--trace taken_o", {"--trace taken_o", "not a regular file"}},
    {ATTENTION "--trace pipe", {"--trace pipe", "not a regular file"}},
};

static void write_image(const struct workplace *place, const char *name, const char *descr,
                        const char *shape, size_t data_bytes)
{
    char header[200];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
             descr, shape);
    struct image image = image_of(1, header, NULL, data_bytes);
    write_bytes(workplace_path(place, name), image.bytes, image.size);
    free(image.bytes);
}

/* Machines with one mistake each. */
static void write_machines(const struct workplace *place)
{
    static const char figures[] = "hbm_size = 1 GB\nhbm_bandwidth = 1 TB/s\nl2_size = 1 MiB\n"
                                  "sram_per_sm = 9 KiB\nsram_per_block = 9 KiB\n"
                                  "registers_per_sm = 1 KiB\ntensor_f16 = 1 TFLOP/s\n";
    static const struct {
        const char *name, *begin, *end;
    } files[] = {
        {"wrong.machine", "# mine\n[Mine]\nsms = 0\n", "fp32 = 1 TFLOP/s\n"},
        {"h200.machine", "[h200]\nsms = 1\n", "fp32 = 1 TFLOP/s\n"},
        {"wide.machine", "[Wide]\nsms = 1\nl2_line = 256 B\n", "fp32 = 1 TFLOP/s\n"},
        {"odd.machine", "[Odd]\nsms = 1\nl2_line = 96 B\n", "fp32 = 1 TFLOP/s\n"},
        {"two.machine", "[Mine]\nsms = 1\n", "fp32 = 1 TFLOP/s\n[Other]\n"},
    };
    static char large[65537];
    char text[1000];
    for (size_t i = 0; i < LENGTH(files); i++) {
        const int length =
            snprintf(text, sizeof text, "%s%s%s", files[i].begin, figures, files[i].end);
        write_bytes(workplace_path(place, files[i].name), text, (size_t)length);
    }
    memset(large, '\n', sizeof large);
    write_bytes(workplace_path(place, "large.machine"), large, sizeof large);
}

/* Q (2, 5, 4), K and V (2, 7, 4), and files with one mistake each. */
static void write_files(const struct workplace *place)
{
    static const struct array_file good[] = {
        {"q.npy", "<f4", false, 3, {2, 5, 4}, 1},
        {"k.npy", "<f4", false, 3, {2, 7, 4}, 2},
        {"v.npy", "<f4", false, 3, {2, 7, 4}, 3},
        {"two_axes.npy", "<f4", false, 2, {7, 4}, 4},
        {"d3.npy", "<f4", false, 3, {2, 7, 3}, 5},
        {"n6.npy", "<f4", true, 3, {2, 6, 4}, 6},
        {"h1.npy", "<f4", false, 3, {1, 7, 4}, 7},
        {"h3.npy", "<f4", true, 3, {3, 5, 4}, 8},
        {"one_axis.npy", "<f4", false, 1, {20}, 9},
        {"no_rows.npy", "<f4", false, 2, {0, 4}, 0},
    };
    for (size_t i = 0; i < LENGTH(good); i++)
        write_array(place, &good[i]);
    write_machines(place);
    write_image(place, "truncated.npy", "<f4", "(2, 5, 4)", 159);
    write_image(place, "lying.npy", "<f4", "(2, 700, 4)", 224);
    write_image(place, "trailing.npy", "<f4", "(2, 7, 4)", 225);
    write_image(place, "ints.npy", "<i4", "(2, 5, 4)", 160);
    write_image(place, "five_axes.npy", "<f4", "(1, 1, 2, 5, 4)", 160);
    write_image(place, "vast.npy", "<f4", "(4611686018427387904, 4)", 160);
    write_bytes(workplace_path(place, "empty.npy"), "", 0);
    write_bytes(workplace_path(place, "text.npy"), "1 2 3\n", 6);
    static const char *const folders[] = {"taken_o", "taken_o/o.npy", "taken_lse",
                                          "taken_lse/lse.npy"};
    for (size_t i = 0; i < LENGTH(folders); i++)
        assert_int_equal(mkdir(workplace_path(place, folders[i]), 0777), 0);
    assert_int_equal(mkfifo(workplace_path(place, "pipe"), 0666), 0);
}

/* Complaints about one run, to the file; true if there are any. */
static bool judge(FILE *to, const struct refusal *r, const struct tool_run *run,
                  const char *before, const char *after)
{
    bool bad = false;
    if (run->status != 2)
        bad = fprintf(to, "%s: exit status %d, not 2\n", r->arguments, run->status);
    if (*run->out)
        bad = fprintf(to, "%s: prints to stdout: %s\n", r->arguments, run->out);
    for (size_t i = 0; i < LENGTH(r->says) && r->says[i]; i++)
        if (!strstr(run->err, r->says[i]))
            bad = fprintf(to, "%s: \"%s\" is not in: %s\n", r->arguments, r->says[i], run->err);
    size_t same = 0;
    while (before[same] && before[same] == after[same])
        same++;
    if (before[same] != after[same]) /* the listings are sorted: the first difference is new */
        bad = fprintf(to, "%s: the disk has changed at %.20s\n", r->arguments, after + same);
    return bad;
}

static void test_refusals(void **state)
{
    const struct workplace *place = *state;
    int bad = 0;
    write_files(place);
    char *before = workplace_listing(place);
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        struct tool_run run;
        tool_run(&run, place, "%s", refusals[i].arguments);
        char *after = workplace_listing(place);
        bad += judge(stdout, &refusals[i], &run, before, after);
        if (strcmp(before, after) != 0) { /* so that the next case starts clean */
            remove(workplace_path(place, "out/o.npy"));
            remove(workplace_path(place, "out/lse.npy"));
            remove(workplace_path(place, "out"));
            remove(workplace_path(place, "t.jsonl"));
        }
        free(after);
        tool_run_free(&run);
    }
    free(before);
    if (bad > 0)
        fail_msg("%d of %zu cases", bad, LENGTH(refusals));
}

/* A run that is refused leaves the results of an earlier one alone. */
static void test_earlier_results_survive(void **state)
{
    const struct workplace *place = *state;
    struct tool_run run;
    write_files(place);
    tool_run(&run, place, ATTENTION "--trace t.jsonl");
    assert_int_equal(run.status, 0);
    tool_run_free(&run);
    char *before = workplace_listing(place);
    assert_non_null(strstr(before, "out/lse.npy\nout/o.npy\n"));
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        if (strncmp(refusals[i].arguments, ATTENTION, strlen(ATTENTION)) != 0 ||
            strstr(refusals[i].arguments, "pipe")) /* see test_refusals */
            continue;
        tool_run(&run, place, "%s", refusals[i].arguments);
        char *after = workplace_listing(place);
        assert_string_equal(after, before);
        free(after);
        tool_run_free(&run);
    }
    free(before);
}

/* The checker rejects what it should. */
static void test_judge_can_fail(void **state)
{
    (void)state;
    const struct refusal r = {"judge, expected to complain", {"--q 5", "allowed"}};
    const struct {
        int status;
        const char *out, *err, *after;
        bool bad;
    } cases[] = {
        {2, "", "--q 5: 1 is allowed", "q\n", false},
        {0, "", "--q 5: 1 is allowed", "q\n", true},
        {1, "", "--q 5: 1 is allowed", "q\n", true},
        {139, "", "--q 5: 1 is allowed", "q\n", true},
        {2, "x", "--q 5: 1 is allowed", "q\n", true},
        {2, "", "--q 5", "q\n", true},
        {2, "", "", "q\n", true},
        {2, "", "--q 5: allowed", "o\nq\n", true},
    };
    FILE *nowhere = tmpfile();
    assert_non_null(nowhere);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char out[32], err[32];
        snprintf(out, sizeof out, "%s", cases[i].out);
        snprintf(err, sizeof err, "%s", cases[i].err);
        const struct tool_run run = {cases[i].status, out, err};
        assert_int_equal(judge(nowhere, &r, &run, "q\n", cases[i].after), cases[i].bad);
    }
    fclose(nowhere);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_refusals),
        TEST(test_earlier_results_survive),
        cmocka_unit_test(test_judge_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
