#include "common/results_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_file.h"

enum { MOST_BYTES = 16 << 20, MOST_COLUMNS = 64 };

/* A file while it is read. */
struct source {
    const char *path;
    char *rest; /* lines to come */
    int line;   /* number of the last one */
    struct error *error;
};

/* The next line, without its end, or NULL. */
static char *next_line(struct source *s)
{
    char *line = s->rest;
    if (*line == '\0')
        return NULL;
    const size_t length = strcspn(line, "\n");
    s->rest = line + length + (line[length] != '\0');
    line[length] = '\0';
    s->line++;
    return line;
}

static enum status refuse(const struct source *s, const char *found, const char *needed)
{
    char text[QUOTED_LENGTH];
    return error_set(s->error, STATUS_BAD_FILE, "%s: line %d: %s: %s is needed", s->path,
                     s->line, text_quote(text, found ? found : ""), needed);
}

/* Copies what lies between two places; false if it is empty, too long or does not print. */
static bool take(char *to, size_t size, const char *from, const char *end)
{
    const size_t length = (size_t)(end - from);
    if (length == 0 || length >= size)
        return false;
    for (size_t i = 0; i < length; i++)
        if (from[i] < ' ' || from[i] > '~')
            return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

/* "# NVIDIA H200, ...; driver 580.159.04, CUDA 13.0" and "# 2026-11-30: command" */
static enum status read_comments(struct results_table *t, struct source *s)
{
    const char *line = next_line(s);
    const char *software = line ? strstr(line, "; ") : NULL;
    if (!software || strncmp(line, "# ", 2) != 0 ||
        !take(t->gpu, sizeof t->gpu, line + 2, line + strcspn(line, ",;")) ||
        !take(t->software, sizeof t->software, software + 2, line + strlen(line)))
        return refuse(s, line, "\"# GPU, ...; driver ..., CUDA ...\"");
    line = next_line(s);
    const char *colon = line ? strchr(line, ':') : NULL;
    if (!colon || strncmp(line, "# ", 2) != 0 ||
        !take(t->date, sizeof t->date, line + 2, colon))
        return refuse(s, line, "\"# date: command\"");
    return STATUS_OK;
}

/* Cuts the line into its fields, in place; returns how many, more than MOST_COLUMNS if too
 * many. */
static int split(const char **field, char *line)
{
    int count = 0;
    while (count < MOST_COLUMNS) {
        char *comma = strchr(line, ',');
        field[count++] = line;
        if (!comma)
            return count;
        *comma = '\0';
        line = comma + 1;
    }
    return MOST_COLUMNS + 1;
}

static enum status read_names(struct results_table *t, struct source *s)
{
    const char *field[MOST_COLUMNS];
    char *line = next_line(s);
    t->columns = line ? split(field, line) : 0;
    if (t->columns < 2 || t->columns > MOST_COLUMNS)
        return refuse(s, line, "a line of 2 to 64 names of columns");
    t->cell = calloc((size_t)t->columns, sizeof *t->cell);
    if (!t->cell)
        return error_set(s->error, STATUS_OUT_OF_MEMORY, "%s: no memory for it", s->path);
    memcpy(t->cell, field, (size_t)t->columns * sizeof *field);
    return STATUS_OK;
}

static enum status read_row(struct results_table *t, struct source *s, char *line)
{
    const char *field[MOST_COLUMNS];
    const size_t columns = (size_t)t->columns, filled = (size_t)(t->rows + 1) * columns;
    if (split(field, line) != t->columns)
        return refuse(s, line, "a row of as many fields as there are names");
    const char **grown = realloc(t->cell, (filled + columns) * sizeof *grown);
    if (!grown)
        return error_set(s->error, STATUS_OUT_OF_MEMORY, "%s: no memory for it", s->path);
    t->cell = grown;
    memcpy(t->cell + filled, field, columns * sizeof *field);
    t->rows++;
    return STATUS_OK;
}

static enum status read_table(struct results_table *t, struct source *s)
{
    char *line;
    if (read_comments(t, s) || read_names(t, s))
        return s->error->status;
    while ((line = next_line(s)))
        if (read_row(t, s, line))
            return s->error->status;
    return t->rows > 0 ? STATUS_OK : refuse(s, NULL, "a row");
}

enum status results_table_read(struct results_table *t, const char *path, struct error *error)
{
    *t = (struct results_table){0};
    if (text_file_read(&t->text, path, MOST_BYTES, error))
        return error->status;
    struct source source = {.path = path, .rest = t->text, .error = error};
    if (read_table(t, &source)) {
        results_table_free(t);
        return error->status;
    }
    return STATUS_OK;
}

void results_table_free(struct results_table *t)
{
    free(t->cell);
    free(t->text);
    *t = (struct results_table){0};
}

const char *results_table_text(const struct results_table *t, int row, const char *column)
{
    CHECK(row >= 0 && row < t->rows, "row %d of %d", row, t->rows);
    for (int n = 0; n < t->columns; n++)
        if (strcmp(t->cell[n], column) == 0)
            return t->cell[(row + 1) * t->columns + n];
    return NULL;
}

bool results_table_number(double *number, const struct results_table *t, int row,
                          const char *column)
{
    const char *text = results_table_text(t, row, column);
    char *end = NULL;
    const double value = text && *text ? strtod(text, &end) : NAN;
    const bool is_number = end && *end == '\0' && isfinite(value);
    *number = is_number ? value : -1;
    return is_number;
}
