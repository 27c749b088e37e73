/* lessons/common/ncu_csv: what ncu printed becomes launches, anything else a message.
 *
 * Protects: a table that ncu really printed (tests/data/ncu_flash2.csv); units, thousands,
 * quotes, order and missing counters; the launches of others left out; every refusal.
 */
#include "common/npy_files.h"

#include "common/core_fixture.h"
#include "common/ncu_csv.h"

#ifndef FLASHLAB_TEST_DATA
#define FLASHLAB_TEST_DATA "tests/data"
#endif

enum { MOST = 3 };

/* What is wrong with the launch: a counter, COUNTER_COUNT for its name, -1 for nothing. */
static int wrong_in(const struct observed_launch *launch, const char *kernel,
                    const double *expected)
{
    for (int c = 0; c < COUNTER_COUNT; c++)
        if (launch->of[c] != expected[c])
            return c;
    return strcmp(launch->kernel, kernel) == 0 ? -1 : COUNTER_COUNT;
}

static void expect_launch(const struct observed_launch *launch, const char *kernel,
                          const double *expected)
{
    const int wrong = wrong_in(launch, kernel, expected);
    if (wrong == COUNTER_COUNT)
        fail_msg("a launch of %s, not %s", launch->kernel, kernel);
    if (wrong >= 0)
        fail_msg("%s of %s is %.17g, not %.17g", counter_name((enum counter)wrong), kernel,
                 launch->of[wrong], expected[wrong]);
}

static void test_the_comparison_can_fail(void **state)
{
    const double expected[COUNTER_COUNT] = {1, 2, -1};
    struct observed_launch launch = {.kernel = "flash1_forward", .of = {1, 2, -1}};
    (void)state;
    assert_int_equal(wrong_in(&launch, "flash1_forward", expected), -1);
    assert_int_equal(wrong_in(&launch, "flash1_forwar", expected), COUNTER_COUNT);
    for (int c = 0; c < COUNTER_COUNT; c++) {
        launch.of[c]++;
        assert_int_equal(wrong_in(&launch, "flash1_forward", expected), c);
        launch.of[c]--;
    }
}

/* In the order of enum counter: what the file says, read off by eye. */
static void test_a_real_table(void **state)
{
    static const double expected[MOST][COUNTER_COUNT] = {
        {10240, 2080, 0, -1, -1, 35520, 268544, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
         43584},
        {10240, 2080, 0, -1, -1, 35296, 268800, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
         43776},
        {1152, 136, 0, -1, -1, 15943, 54272, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 13728}};
    struct observed_launch launches[MOST];
    struct error error;
    int count = 0;
    (void)state;
    if (ncu_csv_read(launches, MOST, &count, FLASHLAB_TEST_DATA "/ncu_flash2.csv", &error))
        fail_msg("%s", error.text);
    assert_int_equal(count, MOST);
    for (int i = 0; i < MOST; i++)
        expect_launch(&launches[i], "flash2_forward", expected[i]);
}

#define HEADER "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
#define ROW(id, kernel, metric, unit, value)                                                   \
    "\"" id "\",\"" kernel "\",\"" metric "\",\"" unit "\",\"" value "\"\n"
#define LOADS "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
#define READ "dram__bytes_read.sum"
#define TIME "gpu__time_duration.sum"
#define FLASH1 "void flash1_forward<64>(attention, int)"

static const struct value {
    const char *metric, *unit, *text;
    enum counter counter;
    double expected;
} values[] = {
    {LOADS, "sector", "1,234,567", COUNTER_LOAD_SECTORS, 1234567},
    {LOADS, "", "0", COUNTER_LOAD_SECTORS, 0},
    {LOADS, "sector", "9,007,199,254,740,992", COUNTER_LOAD_SECTORS, 9007199254740992.0},
    {"sm__inst_executed_pipe_tensor.sum", "inst", "77", COUNTER_TENSOR_INSTRUCTIONS, 77},
    {"smsp__sass_inst_executed_op_shared_ld.sum", "inst", "1", COUNTER_SHARED_LOAD_INSTRUCTIONS,
     1},
    {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "", "1,048,576",
     COUNTER_SHARED_LOAD_WAVEFRONTS, 1048576},
    {"smsp__sass_inst_executed_op_shared_st.sum", "inst", "3",
     COUNTER_SHARED_STORE_INSTRUCTIONS, 3},
    {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "", "4",
     COUNTER_SHARED_STORE_WAVEFRONTS, 4},
    {READ, "byte", "268,544", COUNTER_DRAM_READ_BYTES, 268544},
    {READ, "Kbyte", "1.001", COUNTER_DRAM_READ_BYTES, 1001},
    {READ, "Mbyte", "1,234.56", COUNTER_DRAM_READ_BYTES, 1234560000},
    {READ, "Gbyte", "2", COUNTER_DRAM_READ_BYTES, 2e9},
    {READ, "Tbyte", "0.25", COUNTER_DRAM_READ_BYTES, 25e10},
    {TIME, "ns", "43.5", COUNTER_DURATION_NS, 43.5},
    {TIME, "us", "43.5", COUNTER_DURATION_NS, 43500},
    {TIME, "ms", "43.5", COUNTER_DURATION_NS, 43500000},
    {TIME, "s", "1.5", COUNTER_DURATION_NS, 15e8},
    {TIME, "nsecond", "43,584", COUNTER_DURATION_NS, 43584},
    {TIME, "usecond", "43.5", COUNTER_DURATION_NS, 43500},
    {TIME, "msecond", "43.5", COUNTER_DURATION_NS, 43500000},
    {TIME, "second", "2", COUNTER_DURATION_NS, 2e9},
};

static enum status read_text(const struct place *place, const char *text, int *count,
                             struct observed_launch *launches, struct error *error)
{
    write_bytes(place->path, text, strlen(text));
    return ncu_csv_read(launches, MOST, count, place->path, error);
}

static void test_units_and_thousands(void **state)
{
    for (size_t i = 0; i < LENGTH(values); i++) {
        const struct value *v = &values[i];
        struct observed_launch launches[MOST];
        struct error error;
        double expected[COUNTER_COUNT];
        char text[1024];
        int count;
        snprintf(text, sizeof text, HEADER "\"0\",\"" FLASH1 "\",\"%s\",\"%s\",\"%s\"\n",
                 v->metric, v->unit, v->text);
        if (read_text(*state, text, &count, launches, &error))
            fail_msg("%s", error.text);
        assert_int_equal(count, 1);
        for (int c = 0; c < COUNTER_COUNT; c++)
            expected[c] = c == (int)v->counter ? v->expected : -1;
        expect_launch(&launches[0], "flash1_forward", expected);
    }
}

/* Columns and rows in any order, \r\n, no end of the last line, other kernels, other metrics.
 */
static void test_order_and_what_is_left_out(void **state)
{
    static const char text[] =
        "program says \"ID\"\n==PROF== Connected\n"
        "\"ID\",\"Metric Value\",\"more, and \"\"more\"\"\",\"Metric Name\",\"Kernel "
        "Name\",\"Metric Unit\"\r\n"
        "\"10\",\"5\",\"a\"\"b\",\"" LOADS "\",\"standard_output\",\"sector\"\r\n"
        "\"9\",\"4\",\"\",\"" LOADS
        "\",\"void standard_softmax<int, (bool)1>(int)\",\"sector\"\r\n"
        "\r\n==WARNING== late\r\n"
        "\"8\",\"n/a\",\"\",\"" LOADS
        "\",\"void cutlass::gemm<flash2_forward>(int)\",\"sector\"\r\n"
        "\"6\",\"n/a\",\"\",\"" LOADS "\",\"void flash2(int)\",\"sector\"\r\n"
        "\"7\",\"n/a\",\"\",\"" LOADS "\",\"void flash2_forward_other(int)\",\"furlong\"\r\n"
        "\"2\",\"(!) x\",\"\",\"sm__warps.avg\",\"standard_scores(int)\",\"warp\"\r\n"
        "\"9\",\"6\",\"\",\"lts__t_sectors.sum\",\"void standard_softmax<int, "
        "(bool)1>(int)\",\"\"";
    struct observed_launch launches[MOST];
    struct error error;
    double expected[COUNTER_COUNT];
    int count;
    if (read_text(*state, text, &count, launches, &error))
        fail_msg("%s", error.text);
    assert_int_equal(count, 3);
    for (int c = 0; c < COUNTER_COUNT; c++)
        expected[c] = -1;
    expect_launch(&launches[0], "standard_scores", expected);
    expected[COUNTER_LOAD_SECTORS] = 5;
    expect_launch(&launches[2], "standard_output", expected);
    expected[COUNTER_LOAD_SECTORS] = 4;
    expected[COUNTER_L2_SECTORS] = 6;
    expect_launch(&launches[1], "standard_softmax", expected);
}

static const struct refusal {
    const char *text, *says;
} refusals[] = {
    {"", ": the file is empty"},
    {"==PROF== Connected\nID,Kernel Name\n",
     ": no line begins with \"ID\": what `ncu --csv` prints"},
    {"\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Value\"\n",
     ": line 1: no column \"Metric Unit\""},
    {"x\n\"ID\",\"a\",\"b\",\"" LOADS "\"\n", ": line 2: no column \"Kernel Name\""},
    {"\"ID\",\"Kernel Name\n", ": line 1: no column \"ID\""},
    {HEADER,
     ": no launch of naive_attention, standard_..., flash1_forward or flash2_forward is in"},
    {HEADER ROW("0", "void gemm(int)", LOADS, "sector", "1"),
     ": no launch of naive_attention, "},
    {HEADER ROW("x", FLASH1, LOADS, "sector", "1"),
     ": line 2: ID \"x\": a whole number from 0"},
    {HEADER ROW("-1", FLASH1, LOADS, "sector", "1"), ": line 2: ID \"-1\": a whole number"},
    {HEADER ROW("", FLASH1, LOADS, "sector", "1"), ": line 2: ID \"\": a whole number"},
    {HEADER ROW("1234567890123456", FLASH1, LOADS, "", "1"),
     ": line 2: ID \"1234567890123456\": a"},
    {HEADER ROW("0", FLASH1, LOADS, "sector", "n/a"),
     ": line 2: Metric Value \"n/a\": a number from 0 to 2^53 is needed"},
    {HEADER ROW("0", FLASH1, LOADS, "sector", ""), ": line 2: Metric Value \"\": a number"},
    {HEADER ROW("0", FLASH1, LOADS, "sector", "-1"), ": line 2: Metric Value \"-1\": a number"},
    {HEADER ROW("0", FLASH1, LOADS, "sector", "0x10"),
     ": line 2: Metric Value \"0x10\": a number"},
    {HEADER ROW("0", FLASH1, LOADS, "sector", "1.2.3"),
     ": line 2: Metric Value \"1.2.3\": a num"},
    {HEADER ROW("0", FLASH1, LOADS, "sector", "9007199254740994"),
     ": line 2: Metric Value \"90071"},
    {HEADER ROW("0", FLASH1, READ, "Tbyte", "9999"),
     ": line 2: Metric Value \"9999\": a number"},
    {HEADER ROW("0", FLASH1, LOADS, "", "00000000000000000000000000000001"),
     ": Metric Value \"0"},
    {HEADER ROW("0", FLASH1, LOADS, "\x1b[2J", "1"),
     ": line 2: Metric Unit \"?[2J\": sector, inst or nothing is needed"},
    {HEADER ROW("0", FLASH1, LOADS, "byte", "1"),
     ": line 2: Metric Unit \"byte\": sector, inst"},
    {HEADER ROW("0", FLASH1, READ, "kB", "1"),
     ": line 2: Metric Unit \"kB\": byte, Kbyte, Mbyte"},
    {HEADER ROW("0", FLASH1, TIME, "cycle", "1"),
     ": line 2: Metric Unit \"cycle\": ns, us, ms, s"},
    {HEADER ROW("0", FLASH1, LOADS, "", "1") "\"1\",\"" FLASH1 "\"\n",
     ": line 3: a row of 5 quoted fields is needed"},
    {HEADER "\"0\",\"" FLASH1 "\",\"" LOADS "\",\"\",\"1\n", ": line 2: a row of 5 quoted"},
    {HEADER "\"0\"x,\"" FLASH1 "\",\"" LOADS "\",\"\",\"1\"\n", ": line 2: a row of 5 quoted"},
    {HEADER "free text\n", ": line 2: a row of 5 quoted fields is needed"},
    {HEADER ROW("0", FLASH1, LOADS, "", "1") ROW("0", FLASH1, LOADS, "", "1"),
     ": line 3: Metric Name \"" LOADS "\": each metric once an ID, of one process, is needed"},
    {HEADER ROW("0", FLASH1, LOADS, "", "1") ROW("0", "naive_attention", READ, "byte", "1"),
     ": line 3: Kernel Name \"naive_attention\": the kernel that this ID had before is needed"},
    {HEADER ROW("0", FLASH1, LOADS, "", "1") ROW("1", FLASH1, LOADS, "", "1")
         ROW("2", FLASH1, LOADS, "", "1") ROW("3", FLASH1, LOADS, "", "1"),
     ": 4 launches: one run of one algorithm, at most 3, is needed"},
};

static void expect_refused(const char *path, const char *says)
{
    struct observed_launch launches[MOST];
    struct error error = {0};
    int count = 99;
    if (ncu_csv_read(launches, MOST, &count, path, &error) != STATUS_BAD_FILE)
        fail_msg("not refused, expected \"%s\"", says);
    assert_int_equal(error.status, STATUS_BAD_FILE);
    assert_int_equal(count, 0);
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text, says))
        fail_msg("\"%s\" does not begin with the path and have \"%s\"", error.text, says);
    for (const char *c = error.text; *c; c++)
        assert_true(*c >= ' ' && *c <= '~');
}

static void test_refusals(void **state)
{
    const struct place *place = *state;
    expect_refused(place->path, ": No such file or directory");
    expect_refused(place->folder, ": cannot read: Is a directory");
    expect_refused("/dev/zero", ": more than 16777216 bytes");
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        write_bytes(place->path, refusals[i].text, strlen(refusals[i].text));
        expect_refused(place->path, refusals[i].says);
    }
}

/* A line of more fields than any table of ncu has. */
static void test_many_fields(void **state)
{
    const struct place *place = *state;
    char text[4096] = "\"ID\"";
    for (int i = 0; i < 70; i++)
        strcat(text, ",\"Kernel Name\"");
    write_bytes(place->path, text, strlen(text));
    expect_refused(place->path, ": line 1: no column \"ID\"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_comparison_can_fail),
        TEST(test_a_real_table),
        TEST(test_units_and_thousands),
        TEST(test_order_and_what_is_left_out),
        TEST(test_refusals),
        TEST(test_many_fields),
    };
#undef TEST
    return cmocka_run_group_tests_name("ncu_csv", tests, NULL, NULL);
}
