/* Shared memory's requests of the tiled matrix products in closed form, beside the counters of
 * an NVIDIA H200 (cuda/results/h200_counters.csv).
 *
 * Protects: loads, their wavefronts, and stores of matmul_shared and matmul_tiled, equal in
 * every recorded row whose tiles are whole; other shapes are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "common/csv.h"
#include "common/fault.h"
#include "models/shared_matmul.h"

#define COUNTERS "../../cuda/results/h200_counters.csv" /* from tests/data */

static void check(const struct csv *table, int row, const char *column, int64_t predicted)
{
    const int64_t measured = csv_int(table, row, column);
    if (measured != predicted)
        fail_msg("row %d, %s: measured %" PRId64 ", predicted %" PRId64, row, column, measured,
                 predicted);
}

static void check_kernel(const char *kernel,
                         struct shared_requests (*predict)(const struct io_matmul *, int),
                         int rows)
{
    static struct csv table;
    int checked = 0;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        if (strcmp(csv_text(&table, row, "kernel"), kernel) != 0)
            continue;
        const struct io_matmul shape = {(int)csv_int(&table, row, "rows"),
                                        (int)csv_int(&table, row, "cols"),
                                        (int)csv_int(&table, row, "depth")};
        const int tile = (int)csv_int(&table, row, "tile");
        if (shape.rows % tile != 0 || shape.cols % tile != 0 || shape.depth % tile != 0)
            continue;
        const struct shared_requests predicted = predict(&shape, tile);
        check(&table, row, "shared_load_instructions", predicted.loads);
        check(&table, row, "shared_load_wavefronts", predicted.load_wavefronts);
        check(&table, row, "shared_store_instructions", predicted.stores);
        check(&table, row, "shared_store_wavefronts", predicted.stores);
        checked++;
    }
    csv_free(&table);
    assert_int_equal(checked, rows);
}

static void test_matmul_shared_is_as_measured(void **state)
{
    (void)state;
    check_kernel("matmul_shared", shared_of_matmul_shared, 5);
}

static void test_matmul_tiled_is_as_measured(void **state)
{
    (void)state;
    check_kernel("matmul_tiled", shared_of_matmul_tiled, 6);
}

static void predict_ragged(void *context)
{
    const struct io_matmul shape = {64, 64, 60};
    (void)context;
    (void)shared_of_matmul_shared(&shape, 16);
}

static void test_ragged_tiles_are_a_bug(void **state)
{
    (void)state;
    const struct fault fault = fault_of(predict_ragged, NULL);
    assert_true(fault_is_bug(&fault, "sim/models/shared_matmul.c", "not whole"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_shared_is_as_measured),
        cmocka_unit_test(test_matmul_tiled_is_as_measured),
        cmocka_unit_test(test_ragged_tiles_are_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
