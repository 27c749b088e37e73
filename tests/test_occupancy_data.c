/* What lesson 14 says of an H200's occupancy (lessons/common/occupancy_data).
 *
 * Protects: points of the sweeps against the rows of the file and Little's law written here,
 * the tiles' blocks and times, refusals of rows that are not there, and what is found in sweeps
 * made up so that the answer is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "common/occupancy_data.h"

/* from tests/data */
#define SWEEPS "../../cuda/results/h200_occupancy_times.csv"
#define SIZES "../../cuda/results/h200_occupancy.csv"
#define TIMES "../../cuda/results/h200_times.csv"

static struct occupancy_data data;

static int open_data(void **state)
{
    struct error error;
    (void)state;
    if (occupancy_data_read(&data, &error))
        fail_msg("%s", error.text);
    return 0;
}

static int close_data(void **state)
{
    (void)state;
    occupancy_data_free(&data);
    return 0;
}

static void assert_near(double value, double wanted, double share)
{
    if (!(fabs(value - wanted) <= share * wanted))
        fail_msg("%.9g is not %.9g", value, wanted);
}

static double latency_ns(const struct csv *table)
{
    for (int row = 0; row < table->rows; row++)
        if (strcmp(csv_text(table, row, "kernel"), "pointer_chase") == 0)
            return 1e3 * csv_double(table, row, "median_us") / csv_double(table, row, "work");
    fail_msg("no row of pointer_chase");
    return 0;
}

/* bytes/s or FLOP/s, by the H200's datasheet. */
static double littles_law(const struct csv *table, int row, bool is_load)
{
    const double warps =
        (double)(csv_int(table, row, "blocks") * csv_int(table, row, "threads")) / 32;
    const double in_flight = warps * (double)csv_int(table, row, "independent");
    return is_load ? fmin(4.8e12, 132 * in_flight * 512 / latency_ns(table) * 1e9)
                   : 67e12 * fmin(1, in_flight / 4 / 4);
}

static void test_points_are_the_rows(void **state)
{
    static struct csv table;
    int point = 0;
    (void)state;
    csv_read(&table, SWEEPS);
    for (int row = 0; row < table.rows; row++) {
        const bool is_load = strcmp(csv_text(&table, row, "kernel"), "sum_vector") == 0;
        if (!is_load && strcmp(csv_text(&table, row, "kernel"), "fma_chains") != 0)
            continue;
        assert_true(point < data.points);
        const struct sweep_point *p = &data.point[point++];
        const double seconds = csv_double(&table, row, "median_us") / 1e6;
        assert_int_equal(p->is_load, is_load);
        assert_int_equal(p->independent, csv_int(&table, row, "independent"));
        assert_near(p->occupancy, p->warps / 64.0, 1e-12);
        assert_near(p->measured,
                    (is_load ? 1 : 2) * (double)csv_int(&table, row, "work") / seconds, 1e-12);
        assert_near(p->predicted, littles_law(&table, row, is_load), 0.001);
        if (is_load)
            assert_near(p->simulated, p->predicted, 0.15);
        assert_true(p->simulated <= p->predicted * 1.0001);
    }
    assert_int_equal(point, data.points);
    csv_free(&table);
}

static void test_blocks_are_the_drivers(void **state)
{
    (void)state;
    assert_int_equal(data.blocks_rows, data.sizes.rows + data.sweeps.rows);
    assert_int_equal(data.blocks_equal, data.blocks_rows);
}

/* The row with that tile; in the table of times, of attention without a mask and of a product
 * of 8192^3. */
static int row_of(const struct csv *table, const char *kernel, const char *head_dim,
                  const char *column, const char *tile, const char *mask)
{
    for (int row = 0; row < table->rows; row++)
        if (strcmp(csv_text(table, row, "kernel"), kernel) == 0 &&
            strcmp(csv_text(table, row, "head_dim"), head_dim) == 0 &&
            strcmp(csv_text(table, row, column), tile) == 0 &&
            (!mask || (strcmp(csv_text(table, row, "mask"), mask) == 0 &&
                       (*head_dim || csv_int(table, row, "rows") == 8192))))
            return row;
    fail_msg("no row of %s, %s, %s", kernel, head_dim, tile);
    return -1;
}

static void test_tiles(void **state)
{
    static const struct {
        const char *kernel, *head_dim, *column, *tile, *mask;
    } tiles[] = {
        {"matmul_tiled", "", "tile", "16", ""},
        {"matmul_tiled", "", "tile", "64", ""},
        {"flash2_forward", "64", "block_q", "32", "none"},
        {"flash2_forward", "64", "block_q", "64", "none"},
    };
    static struct csv sizes, times;
    (void)state;
    csv_read(&sizes, SIZES);
    csv_read(&times, TIMES);
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const int size = row_of(&sizes, tiles[i].kernel, tiles[i].head_dim, tiles[i].column,
                                tiles[i].tile, NULL);
        const int time = row_of(&times, tiles[i].kernel, tiles[i].head_dim, tiles[i].column,
                                tiles[i].tile, tiles[i].mask);
        struct timed_tile tile;
        struct error error;
        if (occupancy_data_tile(&tile, &data, tiles[i].kernel, tiles[i].head_dim, tiles[i].tile,
                                &error))
            fail_msg("%s", error.text);
        assert_int_equal(tile.needs.threads, csv_int(&sizes, size, "threads"));
        assert_int_equal(tile.needs.registers, csv_int(&sizes, size, "registers"));
        assert_int_equal(tile.needs.shared_bytes, csv_int(&sizes, size, "static_shared") +
                                                      csv_int(&sizes, size, "dynamic_shared"));
        assert_int_equal(tile.occupancy.blocks, csv_int(&sizes, size, "blocks"));
        assert_near(tile.tflops, csv_double(&times, time, "tflops"), 1e-12);
    }
    csv_free(&sizes);
    csv_free(&times);
}

static void test_what_is_not_there_is_named(void **state)
{
    struct timed_tile tile;
    struct block_needs needs;
    struct error error;
    (void)state;
    assert_int_equal(occupancy_data_tile(&tile, &data, "flash2_forward", "64", "48", &error),
                     STATUS_BAD_FILE);
    assert_non_null(strstr(error.text, "h200_times.csv: no row of flash2_forward"));
    assert_int_equal(occupancy_data_needs(&needs, &data, "flash9", "", "", &error),
                     STATUS_BAD_FILE);
    assert_non_null(strstr(error.text, "h200_occupancy.csv: no row of flash9"));
}

/* Loads of 1 and 2 in flight, then one setting of FMAs. */
static const struct occupancy_data made_up = {
    .points = 5,
    .point = {{true, 1, 1.00, 64, 32768, 4.0, 4.0, 4.0},
              {true, 1, 0.25, 16, 8192, 1.0, 1.0, 0.9},
              {true, 2, 0.50, 32, 32768, 4.0, 4.0, 3.0},
              {true, 2, 0.25, 16, 16384, 2.0, 2.0, 3.9},
              {false, 1, 1.00, 64, 16, 20.0, 10.0, 9.0}},
};

static void test_shares_of_the_best(void **state)
{
    (void)state;
    assert_near(sweep_best(&made_up, true), 4, 1e-12);
    assert_near(sweep_best(&made_up, false), 9, 1e-12);
    assert_near(sweep_share(&made_up, true, 2, 32), 0.75, 1e-12);
    assert_true(sweep_share(&made_up, true, 4, 32) == 0);
}

static void test_deviations(void **state)
{
    (void)state;
    const struct deviation loads = sweep_deviation(&made_up, true, false);
    assert_int_equal(loads.settings, 4);
    assert_near(loads.highest, 0.95, 1e-12);
    assert_near(-loads.lowest, 0.25, 1e-12);
    const struct deviation fmas = sweep_deviation(&made_up, false, true);
    assert_int_equal(fmas.settings, 1);
    assert_near(-fmas.highest, 0.1, 1e-12);
    const struct spread spread = sweep_spread(&made_up, false);
    assert_int_equal(spread.pairs, 1);
    assert_near(spread.largest, 0.25, 1e-12);
    const struct spread occupancy = sweep_spread(&made_up, true);
    assert_int_equal(occupancy.pairs, 1);
    assert_near(occupancy.largest, 1 - 0.9 / 3.9, 1e-12);
}

/* One of the two settings of 32768 bytes reaches 75 % only, that of 16384 reaches 97 %. */
static void test_bytes_for_a_share_of_the_best(void **state)
{
    (void)state;
    assert_int_equal(sweep_in_flight_for(&made_up, 0.2), 8192);
    assert_int_equal(sweep_in_flight_for(&made_up, 0.7), 16384);
    assert_true(sweep_in_flight_for(&made_up, 0.9) == INT64_MAX);
}

/* 3.9 of few warps is 97 % of what full warps reach with loads; FMAs have no few warps. */
static void test_matches(void **state)
{
    (void)state;
    const struct sweep_matches m = sweep_matches(&made_up, 0.75, 0.25);
    assert_int_equal(m.settings, 2);
    assert_int_equal(m.matched, 1);
    assert_int_equal(sweep_matches(&made_up, 0.75, 0.20).matched, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_are_the_rows),
        cmocka_unit_test(test_blocks_are_the_drivers),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_what_is_not_there_is_named),
        cmocka_unit_test(test_shares_of_the_best),
        cmocka_unit_test(test_deviations),
        cmocka_unit_test(test_bytes_for_a_share_of_the_best),
        cmocka_unit_test(test_matches),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}
