/* The CUDA twins against their simulations: the counters that an NVIDIA H200 recorded while it
 * ran our own attention kernels (cuda/results/h200_counters.csv).
 *
 * Protects: load, store and reduction sectors of every recorded launch are what the simulator
 * counts and what the closed forms say, ragged tiles, masks, grouped heads and misaligned rows
 * included; no row is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "common/rows.h"
#include "kernels/attention_forward.h"
#include "models/io.h"

#define COUNTERS "../../cuda/results/h200_counters.csv" /* from tests/data */

static const struct twin {
    const char *kernel;
    enum algorithm algorithm;
} twins[] = {
    {"naive_attention", ALGORITHM_NAIVE},
    {"standard_attention", ALGORITHM_STANDARD},
    {"flash1_forward", ALGORITHM_FLASH1},
    {"flash2_forward", ALGORITHM_FLASH2},
};

/* Rows of each twin in the file. */
enum { TWINS = 4, ROWS_A_TWIN = 51 };

/* The row's problem, on the real tiles that the CUDA kernels have. */
static struct simulation simulation_of(const struct csv *table, int row,
                                       const struct twin *twin)
{
    struct simulation s = {.algorithm = twin->algorithm, .machine = machine_find("H200")};
    s.attention = attention_of_row(table, row);
    s.attention.tiled_gemm = twin->algorithm == ALGORITHM_STANDARD;
    return s;
}

static void check_row(const struct csv *table, int row, const struct twin *twin)
{
    static const char *const columns[] = {"measured_load", "measured_store", "measured_reduce"};
    struct simulation s = simulation_of(table, row, twin);
    struct error error;
    if (attention_count(&s, &error))
        fail_msg("row %d: %s", row, error.text);
    const struct account simulated = gpu_account(&s.gpu);
    const struct account predicted = io_predict(s.algorithm, &s.attention, false);
    const struct traffic counted = account_total(&simulated), said = account_total(&predicted);
    for (int way = 0; way < DIRECTION_COUNT; way++) {
        const int64_t measured = csv_int(table, row, columns[way]);
        if (counted.of[way].sectors != measured || said.of[way].sectors != measured)
            fail_msg("row %d, %s, %s: measured %" PRId64 ", simulated %" PRId64
                     ", predicted %" PRId64,
                     row, twin->kernel, columns[way], measured, counted.of[way].sectors,
                     said.of[way].sectors);
    }
}

static void test_twins_move_what_is_counted(void **state)
{
    static struct csv table;
    (void)state;
    csv_read(&table, COUNTERS);
    for (int k = 0; k < TWINS; k++) {
        int rows = 0;
        for (int row = 0; row < table.rows; row++) {
            if (strcmp(csv_text(&table, row, "kernel"), twins[k].kernel) != 0)
                continue;
            check_row(&table, row, &twins[k]);
            rows++;
        }
        assert_int_equal(rows, ROWS_A_TWIN);
    }
    csv_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twins_move_what_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
