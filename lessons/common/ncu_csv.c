#include "common/ncu_csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_file.h"

enum { MOST_BYTES = 16 << 20, MOST_FIELDS = 64 };

/* The columns that are read. */
enum column {
    COLUMN_ID,
    COLUMN_KERNEL,
    COLUMN_METRIC,
    COLUMN_UNIT,
    COLUMN_VALUE,
    COLUMN_COUNT
};
static const char *const column_names[COLUMN_COUNT] = {
    [COLUMN_ID] = "ID",
    [COLUMN_KERNEL] = "Kernel Name",
    [COLUMN_METRIC] = "Metric Name",
    [COLUMN_UNIT] = "Metric Unit",
    [COLUMN_VALUE] = "Metric Value",
};

/* The launches of the simulator and of its CUDA twins; others are the driver's or a library's.
 */
static const char *const our_kernels[] = {"naive_attention",  "standard_scores",
                                          "standard_softmax", "standard_output",
                                          "flash1_forward",   "flash2_forward"};
#define OUR_KERNELS "naive_attention, standard_..., flash1_forward or flash2_forward"

/* What ncu counts in, and how much of the counter's own unit that is. */
enum kind { KIND_COUNT, KIND_BYTES, KIND_TIME };
static const struct {
    const char *name;
    enum kind kind;
    double factor;
} units[] = {
    {"", KIND_COUNT, 1},        {"sector", KIND_COUNT, 1},   {"inst", KIND_COUNT, 1},
    {"byte", KIND_BYTES, 1},    {"Kbyte", KIND_BYTES, 1e3},  {"Mbyte", KIND_BYTES, 1e6},
    {"Gbyte", KIND_BYTES, 1e9}, {"Tbyte", KIND_BYTES, 1e12}, {"ns", KIND_TIME, 1},
    {"nsecond", KIND_TIME, 1},  {"us", KIND_TIME, 1e3},      {"usecond", KIND_TIME, 1e3},
    {"ms", KIND_TIME, 1e6},     {"msecond", KIND_TIME, 1e6}, {"s", KIND_TIME, 1e9},
    {"second", KIND_TIME, 1e9},
};
static const char *const units_of_kind[] = {
    [KIND_COUNT] = "sector, inst or nothing",
    [KIND_BYTES] = "byte, Kbyte, Mbyte, Gbyte or Tbyte",
    [KIND_TIME] = "ns, us, ms, s or nsecond, usecond, msecond, second",
};

static enum kind kind_of(int counter)
{
    switch (counter) {
    case COUNTER_TMA_LOAD_BYTES:
    case COUNTER_TMA_STORE_BYTES:
    case COUNTER_DRAM_READ_BYTES:
    case COUNTER_DRAM_WRITE_BYTES:
        return KIND_BYTES;
    case COUNTER_DURATION_NS:
        return KIND_TIME;
    default:
        return KIND_COUNT;
    }
}

/* One line of the table: a counter of a launch of ours. */
struct row {
    int64_t id;
    int line;
    const char *kernel; /* into our_kernels */
    int counter;        /* COUNTER_COUNT: a metric that we do not know */
    double value;
};

struct table {
    const char *path;
    int line;
    int column[COLUMN_COUNT], columns; /* where they are, and how many there are in all */
    struct row *rows;                  /* [count], owned */
    size_t count, room;
    struct error *error;
};

/* "counters.csv: line 12: Metric Value "n/a": a number is needed". */
static enum status refuse(const struct table *t, enum column column, const char *found,
                          const char *needed)
{
    char text[QUOTED_LENGTH];
    return error_set(t->error, STATUS_BAD_FILE, "%s: line %d: %s %s: %s is needed", t->path,
                     t->line, column_names[column], text_quote(text, found), needed);
}

/* Cuts the line, in place, into its fields, without their quotes. Returns how many; -1 if it is
 * not a line of CSV or has too many. */
static int split(char *line, char **fields)
{
    char *from = line, *to = line;
    for (int count = 0; count < MOST_FIELDS;) {
        const bool quoted = *from == '"';
        fields[count++] = to;
        from += quoted;
        while (*from && (quoted ? *from != '"' || from[1] == '"' : *from != ',')) {
            from += quoted && *from == '"'; /* the first of two, which mean one */
            *to++ = *from++;
        }
        if (quoted && *from++ != '"')
            return -1;
        const char after = *from++;
        *to++ = '\0';
        if (after == '\0')
            return count;
        if (after != ',')
            return -1;
    }
    return -1;
}

/* The next line of *text, without its end, or NULL. */
static char *next_line(struct table *t, char **text)
{
    char *line = *text;
    if (*line == '\0')
        return NULL;
    t->line++;
    const size_t length = strcspn(line, "\n");
    *text = line + length + (line[length] != '\0');
    line[length] = '\0';
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    return line;
}

static enum status read_header(struct table *t, char **text)
{
    char *line, *fields[MOST_FIELDS];
    do
        line = next_line(t, text);
    while (line && strncmp(line, "\"ID\"", 4) != 0);
    if (!line)
        return error_set(t->error, STATUS_BAD_FILE,
                         "%s: no line begins with \"ID\": what `ncu --csv` prints is needed",
                         t->path);
    t->columns = split(line, fields);
    for (int c = 0; c < COLUMN_COUNT; c++) {
        int at = 0;
        while (at < t->columns && strcmp(fields[at], column_names[c]) != 0)
            at++;
        if (at >= t->columns)
            return error_set(t->error, STATUS_BAD_FILE,
                             "%s: line %d: no column \"%s\": what `ncu --csv` prints, without "
                             "--page raw, is needed",
                             t->path, t->line, column_names[c]);
        t->column[c] = at;
    }
    return STATUS_OK;
}

/* "void flash2_forward<64, 64>(attention, ...)" is our flash2_forward. NULL: not ours. */
static const char *our_kernel(const char *name)
{
    if (strncmp(name, "void ", 5) == 0)
        name += 5;
    const size_t length = strcspn(name, "<(");
    for (size_t i = 0; i < sizeof our_kernels / sizeof our_kernels[0]; i++)
        if (strlen(our_kernels[i]) == length && memcmp(our_kernels[i], name, length) == 0)
            return our_kernels[i];
    return NULL;
}

/* Digits, perhaps with a point and with commas between thousands; -1 if it is anything else. */
static double number_of(const char *text)
{
    char digits[32], *end;
    size_t length = 0;
    if (*text < '0' || *text > '9' || text[strspn(text, "0123456789.,")] != '\0')
        return -1;
    for (; *text; text++)
        if (*text != ',' && length < sizeof digits - 1)
            digits[length++] = *text;
    digits[length] = '\0';
    const double value = strtod(digits, &end);
    return *end == '\0' && length < sizeof digits - 1 ? value : -1;
}

/* The row's value, in the counter's unit. */
static enum status read_value(struct table *t, struct row *row, char *const *fields)
{
    const char *unit = fields[t->column[COLUMN_UNIT]], *text = fields[t->column[COLUMN_VALUE]];
    const double most = 9007199254740992.0; /* 2^53: beyond it a double is not every number */
    const enum kind kind = kind_of(row->counter);
    size_t u = 0;
    while (u < sizeof units / sizeof units[0] &&
           (units[u].kind != kind || strcmp(units[u].name, unit) != 0))
        u++;
    if (u == sizeof units / sizeof units[0])
        return refuse(t, COLUMN_UNIT, unit, units_of_kind[kind]);
    const double number = number_of(text);
    row->value = number * units[u].factor;
    if (number < 0 || row->value > most)
        return refuse(t, COLUMN_VALUE, text, "a number from 0 to 2^53");
    if (kind != KIND_TIME) /* 1.001 * 1e3 is not quite 1001 */
        row->value = round(row->value);
    return STATUS_OK;
}

static enum status read_row(struct table *t, char *line)
{
    char *fields[MOST_FIELDS];
    const int count = split(line, fields);
    if (count != t->columns)
        return error_set(t->error, STATUS_BAD_FILE,
                         "%s: line %d: a row of %d quoted fields is needed", t->path, t->line,
                         t->columns);
    struct row row = {.line = t->line, .kernel = our_kernel(fields[t->column[COLUMN_KERNEL]])};
    const char *id = fields[t->column[COLUMN_ID]];
    if (strspn(id, "0123456789") != strlen(id) || strlen(id) < 1 || strlen(id) > 15)
        return refuse(t, COLUMN_ID, id, "a whole number from 0");
    row.id = strtoll(id, NULL, 10);
    if (!row.kernel)
        return STATUS_OK;
    const char *metric = fields[t->column[COLUMN_METRIC]];
    while (row.counter < COUNTER_COUNT &&
           strcmp(metric, counter_metric((enum counter)row.counter)) != 0)
        row.counter++;
    if (row.counter < COUNTER_COUNT && read_value(t, &row, fields))
        return t->error->status;
    if (t->count == t->room) {
        t->room = t->room > 0 ? 2 * t->room : 64;
        t->rows = realloc(t->rows, t->room * sizeof *t->rows);
        CHECK(t->rows, "no host memory for %zu rows", t->room);
    }
    t->rows[t->count++] = row;
    return STATUS_OK;
}

/* By ID, rows of a launch as they come in the file. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static enum status check_launches(const struct table *t, int most)
{
    int launches = 0;
    for (size_t i = 0; i < t->count; i++)
        launches += i == 0 || t->rows[i].id != t->rows[i - 1].id;
    if (launches == 0)
        return error_set(t->error, STATUS_BAD_FILE,
                         "%s: no launch of " OUR_KERNELS " is in it: one run of one algorithm "
                         "is needed",
                         t->path);
    if (launches > most)
        return error_set(t->error, STATUS_BAD_FILE,
                         "%s: %d launches: one run of one algorithm, at most %d, is needed",
                         t->path, launches, most);
    return STATUS_OK;
}

/* The rows, sorted, into the launches that they are of. */
static enum status fill_launches(struct table *t, struct observed_launch *launches, int *count)
{
    int filled = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct row *row = &t->rows[i];
        if (i == 0 || row->id != row[-1].id) {
            struct observed_launch *fresh = &launches[filled++];
            *fresh = (struct observed_launch){0};
            strcpy(fresh->kernel, row->kernel);
            for (int c = 0; c < COUNTER_COUNT; c++)
                fresh->of[c] = -1;
        }
        struct observed_launch *launch = &launches[filled - 1];
        t->line = row->line;
        if (strcmp(launch->kernel, row->kernel) != 0)
            return refuse(t, COLUMN_KERNEL, row->kernel, "the kernel that this ID had before");
        if (row->counter == COUNTER_COUNT)
            continue;
        if (launch->of[row->counter] >= 0)
            return refuse(t, COLUMN_METRIC, counter_metric((enum counter)row->counter),
                          "each metric once an ID, of one process,");
        launch->of[row->counter] = row->value;
    }
    *count = filled;
    return STATUS_OK;
}

/* Reads all rows, sorts them and makes launches of them. */
static enum status read_table(struct table *t, char *text, struct observed_launch *launches,
                              int most, int *count)
{
    char *line;
    if (read_header(t, &text))
        return t->error->status;
    while ((line = next_line(t, &text)))
        if (*line && strncmp(line, "==", 2) != 0 && read_row(t, line)) /* ==WARNING== */
            return t->error->status;
    if (t->count > 0)
        qsort(t->rows, t->count, sizeof *t->rows, compare_rows);
    if (check_launches(t, most))
        return t->error->status;
    return fill_launches(t, launches, count);
}

enum status ncu_csv_read(struct observed_launch *launches, int most, int *count,
                         const char *path, struct error *error)
{
    char *text;
    *count = 0;
    if (text_file_read(&text, path, MOST_BYTES, error))
        return error->status;
    struct table table = {.path = path, .error = error};
    const enum status status = read_table(&table, text, launches, most, count);
    free(table.rows);
    free(text);
    return status;
}
