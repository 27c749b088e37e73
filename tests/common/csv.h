/* CSV files of tests/data: a line of column names, then rows of as many fields, no quotes.
 * Lines that begin with # are comments.
 *
 * Interface:
 *   struct csv table;
 *   csv_read(&table, "h200_counters.csv");
 *   for (int row = 0; row < table.rows; row++)
 *       use(csv_text(&table, row, "phase"), csv_int(&table, row, "seqlen"));
 *   csv_free(&table);
 * A file that is missing or malformed, an unknown column and a field that is no number fail the
 * running test with the file's name: nothing is skipped.
 */
#ifndef FLASHLAB_TESTS_CSV_H
#define FLASHLAB_TESTS_CSV_H

#include <stdint.h>

/* Where the test data lie, relative to the folder that the tests run in. */
#ifndef FLASHLAB_TEST_DATA
#define FLASHLAB_TEST_DATA "tests/data"
#endif

enum { CSV_MAX_ROWS = 2048, CSV_MAX_COLUMNS = 48 };

struct csv {
    const char *name; /* not owned */
    char *text;       /* the file, its separators replaced by NUL; owned */
    int columns, rows;
    const char *header[CSV_MAX_COLUMNS];
    const char *field[CSV_MAX_ROWS][CSV_MAX_COLUMNS];
};

/* Reads a file of FLASHLAB_TEST_DATA. name is kept, not copied. */
void csv_read(struct csv *table, const char *name);
void csv_free(struct csv *table);

/* A field by row and column name; the text lives as long as the table. */
const char *csv_text(const struct csv *table, int row, const char *column);
int64_t csv_int(const struct csv *table, int row, const char *column);
double csv_double(const struct csv *table, int row, const char *column);

#endif
