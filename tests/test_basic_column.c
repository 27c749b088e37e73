/* lessons/common/basic_column: the third column of the lessons about vectors and matrices.
 *
 * Protects: shapes that an H200 ran are found with its counters, others are not; the kernels on
 * the CPU count and compute as the simulator; a sector or a result that differs fails the
 * claim; what a kernel refuses is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/basic_column.h"

static const struct usage usage = {.program = "test", .options = BASIC_LESSON_OPTIONS};

static const struct cpu_run recorded[] = {
    {.kernel = CPU_VECTOR_ADD, .cols = 1 << 20},
    {.kernel = CPU_MATMUL_NAIVE, .rows = 256, .cols = 256, .depth = 256},
    {.kernel = CPU_MATMUL_TILED, .rows = 2048, .cols = 2048, .depth = 2048, .tile = 64},
    {.kernel = CPU_SOFTMAX_SAFE, .rows = 8192, .cols = 8192},
    {.kernel = CPU_SOFTMAX_ONLINE, .rows = 8192, .cols = 8192},
};
enum { RECORDED = sizeof recorded / sizeof recorded[0] };

static const struct cpu_run small[] = {
    {.kernel = CPU_VECTOR_ADD, .cols = 1003},
    {.kernel = CPU_MATMUL_NAIVE, .rows = 9, .cols = 33, .depth = 7},
    {.kernel = CPU_MATMUL_TILED, .rows = 17, .cols = 40, .depth = 5, .tile = 16},
    {.kernel = CPU_SOFTMAX_SAFE, .rows = 3, .cols = 77},
    {.kernel = CPU_SOFTMAX_ONLINE, .rows = 3, .cols = 77},
};
enum { SMALL = sizeof small / sizeof small[0] };

static void open_column(struct basic_column *k, struct options *o)
{
    struct error error;
    options_init(o);
    o->json = true; /* claims are collected, not printed */
    if (basic_column_open(k, o, recorded, RECORDED, small, SMALL, &error))
        fail_msg("%s", error.text);
}

/* Claims that fail, of how many. */
static int failures(int *claims, const struct basic_column *k, const struct options *o)
{
    struct lesson l;
    lesson_begin(&l, &usage, o, "?");
    basic_column_claim(&l, k);
    cJSON_Delete(l.json);
    *claims = l.claims;
    return l.failed;
}

static void test_recorded_and_small_shapes(void **state)
{
    /* of cuda/results/h200_basic.csv, by eye */
    static const int64_t loads[RECORDED] = {262144, 2621440, 33554432, 25165824, 16777216};
    static const double dram_reads[RECORDED] = {4608, 0, 32786432, 344886784, 397085952};
    struct options o;
    static struct basic_column k;
    int claims;
    (void)state;
    open_column(&k, &o);
    assert_string_equal(k.gpu, "NVIDIA H200");
    for (int n = 0; n < RECORDED; n++) {
        const struct basic_row *row = &k.row[n];
        assert_int_equal(row->source, BASIC_RECORDED);
        assert_int_equal(row->sectors.measured[DIRECTION_READ], loads[n]);
        assert_true(row->dram_read_bytes == dram_reads[n]);
        assert_null(row->result.array);
    }
    for (int n = 0; n < SMALL; n++) {
        assert_int_equal(k.small[n].source, BASIC_ON_CPU);
        assert_non_null(k.small[n].result.array);
    }
    assert_int_equal(failures(&claims, &k, &o), 0);
    assert_int_equal(claims, 2 * RECORDED + 3 * SMALL);
}

static void test_what_differs_fails(void **state)
{
    struct options o;
    static struct basic_column k;
    int claims;
    (void)state;
    open_column(&k, &o);
    for (int n = 0; n < RECORDED; n++) {
        k.row[n].sectors.measured[DIRECTION_WRITE]++;
        assert_int_equal(failures(&claims, &k, &o), 1);
        k.row[n].sectors.measured[DIRECTION_WRITE]--;
        k.row[n].sectors.predicted[DIRECTION_REDUCE]++;
        assert_int_equal(failures(&claims, &k, &o), 1);
        k.row[n].sectors.predicted[DIRECTION_REDUCE]--;
    }
    for (int n = 0; n < SMALL; n++) {
        const double right = k.small[n].result.difference;
        k.small[n].result.difference = NAN;
        assert_int_equal(failures(&claims, &k, &o), 1);
        k.small[n].result.difference = right;
    }
    assert_int_equal(failures(&claims, &k, &o), 0);
}

/* Other rows, columns, depth or another tile are another shape. */
static void test_other_shapes_are_not_found(void **state)
{
    struct cpu_run shape = {
        .kernel = CPU_MATMUL_TILED, .rows = 300, .cols = 257, .depth = 513, .tile = 64};
    int *const sides[] = {&shape.rows, &shape.cols, &shape.depth, &shape.tile};
    struct options o;
    static struct basic_column k;
    struct error error;
    int claims;
    (void)state;
    options_init(&o);
    o.json = true;
    assert_int_equal(basic_column_open(&k, &o, &shape, 1, NULL, 0, &error), STATUS_OK);
    assert_int_equal(k.row[0].source, BASIC_RECORDED);
    for (int side = 0; side < 4; side++) {
        const int recorded_side = *sides[side];
        *sides[side] /= 2;
        assert_int_equal(basic_column_open(&k, &o, &shape, 1, NULL, 0, &error), STATUS_OK);
        assert_int_equal(k.row[0].source, BASIC_UNKNOWN);
        assert_true(k.row[0].median_us < 0 && k.row[0].dram_read_bytes < 0);
        assert_int_equal(failures(&claims, &k, &o), 0);
        assert_int_equal(claims, 0);
        *sides[side] = recorded_side;
    }
}

static void test_on_the_cpu(void **state)
{
    struct options o;
    static struct basic_column k;
    struct error error;
    int claims;
    (void)state;
    options_init(&o);
    o.json = o.cpu = true;
    assert_int_equal(basic_column_open(&k, &o, small, SMALL, small, SMALL, &error), STATUS_OK);
    assert_int_equal(k.small_rows, 0);
    assert_string_equal(k.gpu, "");
    assert_int_equal(failures(&claims, &k, &o), 0);
    assert_int_equal(claims, 3 * SMALL);
}

static void test_refusals(void **state)
{
    static const struct cpu_run wide = {
        .kernel = CPU_MATMUL_TILED, .rows = 9, .cols = 9, .depth = 9, .tile = 17};
    struct options o;
    static struct basic_column k;
    struct error error;
    (void)state;
    options_init(&o);
    o.cpu = true;
    assert_int_equal(basic_column_open(&k, &o, &wide, 1, NULL, 0, &error), STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "--cpu: tile 17: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_and_small_shapes),
        cmocka_unit_test(test_what_differs_fails),
        cmocka_unit_test(test_other_shapes_are_not_found),
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
