/* The partitions of L2 against hardware: which one SMs, blocks and lines belong to on an NVIDIA
 * H200 (cuda/results/h200_l2_sides.csv).
 *
 * Protects: that the model divides blocks and lines between the partitions as the GPU does: SMs
 * in halves, 12 of 16 blocks on one side, homes that change by 4 KiB. Which lines have which
 * home depends on physical addresses, and is not the model's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/csv.h"
#include "models/l2_sides.h"

#define SIDES "../../cuda/results/h200_l2_sides.csv" /* from tests/data */

enum { SMS = 132, LINES = 1024, NEARER_CYCLES = 100 };

static int read_sides(int side[LINES], const struct csv *table, const char *what)
{
    int count = 0;
    for (int row = 0; row < table->rows; row++) {
        if (strcmp(csv_text(table, row, "what"), what) != 0)
            continue;
        assert_true(count < LINES);
        assert_int_equal(csv_int(table, row, "number"), count);
        side[count++] = (int)csv_int(table, row, "side");
    }
    return count;
}

static int on_side_1(const int *side, int count)
{
    int sum = 0;
    for (int k = 0; k < count; k++)
        sum += side[k];
    return sum;
}

static void test_half_of_the_sms_are_near_each_partition(void **state)
{
    static struct csv table;
    int side[LINES];
    (void)state;
    csv_read(&table, SIDES);
    assert_int_equal(read_sides(side, &table, "sm"), SMS);
    assert_int_equal(on_side_1(side, SMS), SMS / 2);
    for (int row = 0; row < table.rows; row++) {
        if (strcmp(csv_text(&table, row, "what"), "sm") != 0)
            continue;
        const int64_t to_0 = csv_int(&table, row, "cycles_to_side_0");
        const int64_t to_1 = csv_int(&table, row, "cycles_to_side_1");
        assert_true(csv_int(&table, row, "side") ? to_1 < to_0 - NEARER_CYCLES
                                                 : to_0 < to_1 - NEARER_CYCLES);
    }
    csv_free(&table);
}

static void check_grid(const char *what, int blocks)
{
    static struct csv table;
    int side[LINES], modelled = 0;
    csv_read(&table, SIDES);
    assert_int_equal(read_sides(side, &table, what), blocks);
    for (int block = 0; block < blocks; block++)
        modelled += l2_side(2, block, blocks);
    assert_int_equal(on_side_1(side, 8), 0);
    assert_int_equal(l2_side(2, 7, blocks), 0);
    assert_int_equal(modelled, on_side_1(side, blocks));
    csv_free(&table);
}

static void test_blocks_are_dealt_out_as_on_the_gpu(void **state)
{
    (void)state;
    check_grid("block of 16", 16);
    check_grid("block of 132", SMS);
    assert_int_equal(l2_side(1, 100, SMS), 0);
}

static void test_homes_change_by_4_kib(void **state)
{
    static struct csv table;
    int home[LINES], modelled[LINES];
    (void)state;
    csv_read(&table, SIDES);
    assert_int_equal(read_sides(home, &table, "line"), LINES);
    for (int line = 0; line < LINES; line++) {
        modelled[line] = l2_home(2, line);
        assert_int_equal(home[line], home[line / L2_HOME_LINES * L2_HOME_LINES]);
        assert_int_equal(modelled[line], modelled[line / L2_HOME_LINES * L2_HOME_LINES]);
    }
    assert_int_equal(on_side_1(home, LINES), LINES / 2);
    assert_int_equal(on_side_1(modelled, LINES), LINES / 2);
    assert_int_equal(l2_home(1, L2_HOME_LINES), 0);
    csv_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_of_the_sms_are_near_each_partition),
        cmocka_unit_test(test_blocks_are_dealt_out_as_on_the_gpu),
        cmocka_unit_test(test_homes_change_by_4_kib),
    };
    return cmocka_run_group_tests_name("The partitions of L2", tests, NULL, NULL);
}
