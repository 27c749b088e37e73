#include "common/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The whole file, NUL-terminated. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: cannot be opened; run the tests in the root of the source tree", path);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    assert_true(size > 0);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    text[size] = '\0';
    return text;
}

/* Cuts a line at its commas; returns how many fields it has. */
static int cut_line(const char *field[CSV_MAX_COLUMNS], char *line)
{
    int count = 0;
    for (char *next = line; next; count++) {
        assert_true(count < CSV_MAX_COLUMNS);
        field[count] = next;
        next = strchr(next, ',');
        if (next)
            *next++ = '\0';
    }
    return count;
}

void csv_read(struct csv *table, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", FLASHLAB_TEST_DATA, name);
    *table = (struct csv){.name = name, .text = read_text(path), .rows = -1};
    for (char *line = table->text, *end; *line; line = end) {
        end = line + strcspn(line, "\r\n");
        while (*end == '\r' || *end == '\n')
            *end++ = '\0';
        if (*line == '#')
            continue;
        if (table->rows < 0) {
            table->columns = cut_line(table->header, line);
        } else {
            assert_true(table->rows < CSV_MAX_ROWS);
            const int count = cut_line(table->field[table->rows], line);
            if (count != table->columns)
                fail_msg("%s: row %d has %d fields, the header %d", path, table->rows, count,
                         table->columns);
        }
        table->rows++;
    }
    if (table->rows < 1)
        fail_msg("%s: no rows", path);
}

void csv_free(struct csv *table)
{
    free(table->text);
    *table = (struct csv){0};
}

const char *csv_text(const struct csv *table, int row, const char *column)
{
    assert_in_range(row, 0, table->rows - 1);
    for (int i = 0; i < table->columns; i++)
        if (strcmp(table->header[i], column) == 0)
            return table->field[row][i];
    fail_msg("%s: no column %s", table->name, column);
    return NULL;
}

int64_t csv_int(const struct csv *table, int row, const char *column)
{
    const char *text = csv_text(table, row, column);
    char *end;
    const int64_t value = strtoll(text, &end, 10);
    if (end == text || *end)
        fail_msg("%s: row %d: %s '%s' is no whole number", table->name, row, column, text);
    return value;
}

double csv_double(const struct csv *table, int row, const char *column)
{
    const char *text = csv_text(table, row, column);
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end)
        fail_msg("%s: row %d: %s '%s' is no number", table->name, row, column, text);
    return value;
}
