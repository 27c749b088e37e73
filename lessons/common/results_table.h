/* Results of our kernels on a GPU, as the programs of cuda/tests write them (cuda/results): CSV
 * without quotes. Two comment lines say which GPU, and when it was done by which command; then
 * the names of the columns, then the rows.
 *
 * Interface:
 *   struct results_table t;
 *   results_table_read(&t, FLASHLAB_ROOT "/cuda/results/h200_probes.csv", &error);
 *   for (int row = 0; row < t.rows; row++)
 *       use(results_table_text(&t, row, "access"), results_table_number(&x, &t, row, "bytes"));
 *   results_table_free(&t);
 */
#ifndef FLASHLAB_LESSONS_RESULTS_TABLE_H
#define FLASHLAB_LESSONS_RESULTS_TABLE_H

#include <stdbool.h>

#include "core/status.h"

struct results_table {
    char gpu[64];      /* "NVIDIA H200" */
    char software[64]; /* "driver 580.159.04, CUDA 13.0" */
    char date[16];     /* "2026-11-30" */
    int columns, rows;
    const char **cell; /* [1 + rows][columns]: the names first; owned, pointing into text */
    char *text;        /* owned */
};

/* STATUS_BAD_FILE if the file cannot be read, is no such table, or has no row; the message
 * begins with the path. */
enum status results_table_read(struct results_table *t, const char *path, struct error *error);
void results_table_free(struct results_table *t);

/* A field, "" where it is empty; NULL if the table has no such column. */
const char *results_table_text(const struct results_table *t, int row, const char *column);

/* False if there is no such column, or no number in the field; *number is -1 then. */
bool results_table_number(double *number, const struct results_table *t, int row,
                          const char *column);

#endif
