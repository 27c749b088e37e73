/* The model of L2 against hardware: DRAM bytes of two production implementations on an NVIDIA
 * H200 (lessons/recordings/h200_counters.csv), every row, forward and backward. Caches were
 * cold.
 *
 * Protects: reads within 5 % in all rows but two, writes within 10 % in all but three, and no
 * row worse than those. tests/make_l2_tables.py makes a table of the rows that are printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>

#include "common/l2_recording.h"
#include "common/production.h"

#define COUNTERS "../../lessons/recordings/h200_counters.csv" /* from tests/data */

enum { ROWS = 42 };

/* Reads: causal FlashAttention-2 at d = 128, whose blocks drift further apart than the model's.
 * Writes: cuDNN's conversion of dQ, which stores each sector in two halves; FlashAttention-2 at
 * d = 64, whose spilled registers are not known. */
enum { READS_NEAR = 40, WRITES_NEAR = 39 };
static const double WORST_READ = 0.125, WORST_WRITE = 0.20;

static double error_of(int64_t predicted, int64_t measured)
{
    return (double)predicted / (double)measured - 1;
}

/* The counted bytes, less what DRAM moves in that time anyway. */
static int64_t measured(const struct csv *table, int row, const char *column, double idle_rate)
{
    return csv_int(table, row, column) -
           llround(idle_rate * csv_double(table, row, "duration_ns"));
}

static void print_row(const struct csv *table, int row, int64_t read, int64_t written,
                      const struct l2_launch *launch)
{
    print_message("row; %s; %s, %s x %s x %s x %s%s; %" PRId64 "; %" PRId64 "; %" PRId64
                  "; %" PRId64 "\n",
                  csv_text(table, row, "implementation"), csv_text(table, row, "phase"),
                  csv_text(table, row, "batch"), csv_text(table, row, "heads"),
                  csv_text(table, row, "seqlen"), csv_text(table, row, "head_dim"),
                  csv_int(table, row, "causal") ? " causal" : "", read, launch->dram_read_bytes,
                  written, launch->dram_written_bytes);
}

static struct idle_rates recorded_idle_rates(void)
{
    static struct csv table;
    csv_read(&table, L2_RECORDING);
    const struct idle_rates idle = idle_rates_of(&table);
    csv_free(&table);
    return idle;
}

static void test_dram_bytes_are_those_measured(void **state)
{
    static struct csv table;
    const struct idle_rates idle = recorded_idle_rates();
    int reads_near = 0, writes_near = 0;
    (void)state;
    csv_read(&table, COUNTERS);
    assert_int_equal(table.rows, ROWS);
    for (int row = 0; row < table.rows; row++) {
        const struct production p = production_of(&table, row);
        const struct l2_launch launch = production_replay(&p, 0);
        const int64_t read = measured(&table, row, "dram_bytes_read", idle.read);
        const int64_t written = measured(&table, row, "dram_bytes_written", idle.write);
        const double read_error = error_of(launch.dram_read_bytes, read);
        const double write_error = error_of(launch.dram_written_bytes, written);
        print_row(&table, row, read, written, &launch);
        if (!(fabs(read_error) <= WORST_READ) || !(fabs(write_error) <= WORST_WRITE))
            fail_msg("row %d is worse than the worst", row);
        reads_near += fabs(read_error) <= 0.05;
        writes_near += fabs(write_error) <= 0.10;
    }
    csv_free(&table);
    print_message("of %d rows: reads within 5 %%: %d, writes within 10 %%: %d\n", ROWS,
                  reads_near, writes_near);
    assert_true(reads_near >= READS_NEAR);
    assert_true(writes_near >= WRITES_NEAR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dram_bytes_are_those_measured),
    };
    return cmocka_run_group_tests_name("L2 and DRAM of an H200", tests, NULL, NULL);
}
