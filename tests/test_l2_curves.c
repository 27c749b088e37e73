/* The model of L2 against hardware: simple patterns of access by the size of their data, on an
 * NVIDIA H200 with cold caches (cuda/results/h200_l2_curves.csv).
 *
 * Protects: what fits in L2 is read from DRAM once and stays dirty there, and what is far
 * larger moves in every pass. Between, where a part of the lines survives, the model turns over
 * sooner and writes more than the hardware: how many points are near is asserted.
 * tests/make_l2_tables.py makes a table of some of the points that are printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/csv.h"
#include "models/l2_traffic.h"

#define CURVES "../../cuda/results/h200_l2_curves.csv" /* from tests/data */

/* Of the bytes that the pattern asks for, in all passes. */
static const double NEAR = 0.05;
enum { POINTS = 171, READS_NEAR = 152, WRITES_NEAR = 138 };

/* Bytes: of the blocks' threads at a time, and as good as at a time. Where other memory lies.
 */
enum { TURN = 16384, PIECE = 65536 };
static const int64_t OTHER = INT64_C(1) << 33;

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

/* What a block goes through: piece bytes from each step on, as in
 * cuda/tests/l2_curve_kernels.cu. */
struct stretch {
    int64_t from, to, piece, step;
};

static struct stretch own(int64_t bytes, const struct point *p, int64_t b)
{
    return (struct stretch){bytes / 16 * b / p->blocks * 16,
                            bytes / 16 * (b + 1) / p->blocks * 16, PIECE, PIECE};
}

static struct stretch in_order(const struct point *p, int64_t b)
{
    return (struct stretch){b * TURN, p->bytes, TURN, p->blocks * TURN};
}

/* The bases of what is read and written at the offsets of the stretch; -1: is not. */
static void add_stretch(struct move_list *list, const int64_t reads[2], int64_t write,
                        struct stretch s)
{
    for (int64_t at = s.from; at < s.to; at += s.step) {
        const int64_t end = s.to - at < s.piece ? s.to : at + s.piece;
        for (int k = 0; k < 2; k++)
            if (reads[k] >= 0)
                add(list, DIRECTION_READ, reads[k] + at, reads[k] + end);
        if (write >= 0)
            add(list, DIRECTION_WRITE, write + at, write + end);
    }
}

/* One pass of block b. The other memory is far from the first. */
static void add_pass(struct move_list *list, const struct point *p, int64_t b)
{
    static const struct {
        const char *name;
        int64_t reads[2], write;
        bool in_order;
    } patterns[] = {
        {"read_own", {0, -1}, -1, false},       {"write", {-1, -1}, 0, false},
        {"update", {0, -1}, 0, false},          {"accumulate", {OTHER, 0}, OTHER, false},
        {"write_read_own", {-1, -1}, 0, false}, {"write_read_all", {-1, -1}, 0, false},
        {"copy", {OTHER, -1}, 0, false},        {"copy_in_order", {OTHER, -1}, 0, true},
        {"add", {OTHER, 2 * OTHER}, 0, false},  {"add_in_order", {OTHER, 2 * OTHER}, 0, true},
    };
    static const int64_t here[2] = {0, -1}, there[2] = {OTHER, -1};
    for (size_t k = 0; k < LENGTH(patterns); k++)
        if (is(p, patterns[k].name))
            add_stretch(list, patterns[k].reads, patterns[k].write,
                        patterns[k].in_order ? in_order(p, b) : own(p->bytes, p, b));
    if (is(p, "read_all"))
        add_stretch(list, here, -1, (struct stretch){0, p->bytes, PIECE, PIECE});
    else if (is(p, "write_read_own"))
        add_stretch(list, there, -1, own(p->read_bytes, p, b));
    else if (is(p, "write_read_all"))
        add_stretch(list, there, -1, (struct stretch){0, p->read_bytes, PIECE, PIECE});
}

static struct l2_launch replay(const struct point *p)
{
    struct l2_traffic l2;
    struct error error;
    struct move_list list = {0};
    if (l2_traffic_init(
            &l2, &(struct l2_options){.machine = machine_find("H200"), .sample = 32}, &error))
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
        print_message("point; %s; %" PRId64 "; %" PRId64 "; %" PRId64 "; %" PRId64 "; %" PRId64
                      "; %" PRId64 "; %" PRId64 "; %" PRId64 "\n",
                      p.pattern, p.blocks, p.passes, p.bytes, p.read_bytes, read,
                      model.dram_read_bytes, written, model.dram_written_bytes);
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
