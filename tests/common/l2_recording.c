#include "common/l2_recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 16 };

static bool is_wait(const struct csv *table, int row)
{
    return strcmp(csv_text(table, row, "kernel"), "wait") == 0;
}

struct idle_rates idle_rates_of(const struct csv *table)
{
    double read = 0, written = 0, nanoseconds = 0;
    for (int row = 0; row < table->rows; row++) {
        if (!is_wait(table, row))
            continue;
        read += csv_double(table, row, "dram_read_bytes");
        written += csv_double(table, row, "dram_write_bytes");
        nanoseconds += csv_double(table, row, "duration_ns");
    }
    assert_true(nanoseconds > 0);
    return (struct idle_rates){read / nanoseconds, written / nanoseconds};
}

bool row_is_first_of_run(const struct csv *table, int row)
{
    return !is_wait(table, row) && csv_int(table, row, "place") == 0;
}

/* All columns in front of the place are the run's. */
static bool same_run(const struct csv *table, int a, int b)
{
    for (int k = 0; strcmp(table->header[k], "place") != 0; k++)
        if (strcmp(table->field[a][k], table->field[b][k]) != 0)
            return false;
    return true;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(int64_t *bytes, size_t count)
{
    assert_true(count % 2 == 1);
    qsort(bytes, count, sizeof *bytes, compare);
    return (struct spread){bytes[0], bytes[count / 2], bytes[count - 1]};
}

struct spread spread_of_run(const struct csv *table, int row, const char *column,
                            double idle_rate)
{
    int64_t bytes[MOST_PLACES];
    size_t places = 0;
    for (int other = 0; other < table->rows; other++) {
        if (!same_run(table, row, other))
            continue;
        assert_true(places < MOST_PLACES);
        bytes[places++] = csv_int(table, other, column) -
                          llround(idle_rate * csv_double(table, other, "duration_ns"));
    }
    return spread_of(bytes, places);
}
