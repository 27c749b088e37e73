/* The model of L2 against hardware: simple patterns of access by the size of their data, on an
 * NVIDIA H200 with cold caches (cuda/results/h200_l2_curves.csv).
 *
 * Protects: what fits in L2 is read from DRAM once and stays dirty there, and what is far
 * larger moves in every pass. Between, where a part of the lines survives, the model turns over
 * sooner and less steeply than the hardware: how many points are near is asserted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "models/l2_traffic.h"

#define CURVES "../../cuda/results/h200_l2_curves.csv" /* from tests/data */

/* Of the bytes that the pattern asks for, in all passes. */
static const double NEAR = 0.05;
enum { POINTS = 167, READS_NEAR = 144, WRITES_NEAR = 138 };

struct point {
    const char *pattern;
    int64_t blocks, passes, bytes, read_bytes;
};

static struct point point_of(const struct csv *table, int row)
{
    return (struct point){csv_text(table, row, "pattern"), csv_int(table, row, "blocks"),
                          csv_int(table, row, "passes"), csv_int(table, row, "bytes"),
                          csv_int(table, row, "read_bytes")};
}

static bool is(const struct point *p, const char *pattern)
{
    return strcmp(p->pattern, pattern) == 0;
}

static void add(struct move_list *list, enum direction direction, int64_t start, int64_t end)
{
    move_list_add(list,
                  &(struct move){start, end - start, 1, (int32_t)(end - start), direction});
}

/* What is read and written in turns, and where; -1: is not. */
static void add_stretch(struct move_list *list, int64_t read_at, int64_t write_at,
                        int64_t bytes)
{
    enum { TURN = 65536 };
    for (int64_t at = 0; at < bytes; at += TURN) {
        const int64_t end = bytes - at < TURN ? bytes : at + TURN;
        if (read_at >= 0)
            add(list, DIRECTION_READ, read_at + at, read_at + end);
        if (write_at >= 0)
            add(list, DIRECTION_WRITE, write_at + at, write_at + end);
    }
}

/* One pass of block b, as in cuda/tests/l2_curve_kernels.cu. */
static void add_pass(struct move_list *list, const struct point *p, int64_t b)
{
    const int64_t other = INT64_C(1) << 33; /* far from the rest */
    const int64_t start = p->bytes / 16 * b / p->blocks * 16;
    const int64_t bytes = p->bytes / 16 * (b + 1) / p->blocks * 16 - start;
    const int64_t then = p->read_bytes / 16 * b / p->blocks * 16;
    if (is(p, "read_own"))
        add_stretch(list, start, -1, bytes);
    else if (is(p, "read_all"))
        add_stretch(list, 0, -1, p->bytes);
    else if (is(p, "update"))
        add_stretch(list, start, start, bytes);
    else if (is(p, "copy"))
        add_stretch(list, other + start, start, bytes);
    else if (!is(p, "wait"))
        add_stretch(list, -1, start, bytes);
    if (is(p, "write_read_own"))
        add_stretch(list, other + then, -1,
                    p->read_bytes / 16 * (b + 1) / p->blocks * 16 - then);
    else if (is(p, "write_read_all"))
        add_stretch(list, other, -1, p->read_bytes);
}

static struct l2_launch replay(const struct point *p)
{
    struct l2_traffic l2;
    struct error error;
    struct move_list list = {0};
    if (l2_traffic_init(
            &l2, &(struct l2_options){.machine = machine_find("H200"), .sample = 64}, &error))
        fail_msg("%s", error.text);
    l2_traffic_begin(&l2, p->pattern, (int)p->blocks);
    for (int64_t b = 0; b < p->blocks; b++) {
        list.count = 0;
        for (int64_t pass = 0; pass < p->passes; pass++)
            add_pass(&list, p, b);
        l2_traffic_block(&l2, &list);
    }
    l2_traffic_finish(&l2);
    const struct l2_launch launch = l2.launches[0];
    move_list_free(&list);
    l2_traffic_free(&l2);
    return launch;
}

static void test_dram_bytes_by_size(void **state)
{
    static struct csv table;
    int points = 0, reads_near = 0, writes_near = 0;
    (void)state;
    csv_read(&table, CURVES);
    for (int row = 0; row < table.rows; row++) {
        const struct point p = point_of(&table, row);
        if (is(&p, "wait"))
            continue;
        const struct l2_launch model = replay(&p);
        const int64_t read = csv_int(&table, row, "dram_read_bytes");
        const int64_t written = csv_int(&table, row, "dram_write_bytes");
        const double near = NEAR * (double)(p.bytes * p.passes + p.read_bytes);
        print_message("%-14s %3" PRId64 " blocks %9" PRId64 " %9" PRId64
                      " bytes: read %9" PRId64 ", model %9" PRId64 "; written %9" PRId64
                      ", model %9" PRId64 "\n",
                      p.pattern, p.blocks, p.bytes, p.read_bytes, read, model.dram_read_bytes,
                      written, model.dram_written_bytes);
        reads_near += fabs((double)(model.dram_read_bytes - read)) <= near;
        writes_near += fabs((double)(model.dram_written_bytes - written)) <= near;
        points++;
    }
    csv_free(&table);
    print_message("of %d points: reads near %d, writes near %d\n", points, reads_near,
                  writes_near);
    assert_int_equal(points, POINTS);
    assert_true(reads_near >= READS_NEAR);
    assert_true(writes_near >= WRITES_NEAR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dram_bytes_by_size),
    };
    return cmocka_run_group_tests_name("L2 by the size of data", tests, NULL, NULL);
}
