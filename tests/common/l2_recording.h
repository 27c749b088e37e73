/* What cuda/results/h200_l2.csv says that DRAM moved: each run was counted in several places of
 * memory, and from each count is taken what DRAM moves in that time anyway.
 *
 * Interface:
 *   const struct idle_rates idle = idle_rates_of(&table);
 *   for (int row = 0; row < table.rows; row++)
 *       if (row_is_first_of_run(&table, row))
 *           spread_of_run(&table, row, "dram_read_bytes", idle.read).median
 */
#ifndef FLASHLAB_TESTS_L2_RECORDING_H
#define FLASHLAB_TESTS_L2_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/csv.h"

#define L2_RECORDING "../../cuda/results/h200_l2.csv" /* from tests/data */

/* Bytes a nanosecond between L2 and DRAM under a kernel that touches nothing: the mean of the
 * rows "wait". */
struct idle_rates {
    double read, write;
};
struct idle_rates idle_rates_of(const struct csv *table);

/* In bytes, over the places. */
struct spread {
    int64_t least, median, most;
};

/* Sorts the bytes; count is odd. */
struct spread spread_of(int64_t *bytes, size_t count);

/* Whether the row has the first place of a kernel's run. */
bool row_is_first_of_run(const struct csv *table, int row);

/* The column's values in all rows of the same run, each less idle_rate for the time it took. */
struct spread spread_of_run(const struct csv *table, int row, const char *column,
                            double idle_rate);

#endif
