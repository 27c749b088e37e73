/* Fuzzer of results_table_read(): any bytes are either refused with a message of one line, or
 * give a table whose fields are all there. Seeds are in tests/fuzz/corpus/results_table.
 */
#define _GNU_SOURCE /* memfd_create */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/results_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refused(const struct results_table *t, enum status status,
                          const struct error *error, const char *path)
{
    CHECK(status == STATUS_BAD_FILE && error->status == status, "status %d", (int)status);
    CHECK(strncmp(error->text, path, strlen(path)) == 0, "no path in \"%s\"", error->text);
    CHECK(!t->cell && !t->text, "a refused table owns memory");
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~', "byte 0x%02x in the message", (unsigned char)*c);
}

static void check_accepted(const struct results_table *t)
{
    CHECK(t->rows >= 1 && t->columns >= 2, "%d rows, %d columns", t->rows, t->columns);
    CHECK(*t->gpu && *t->software && *t->date, "a machine without a name");
    for (int row = 0; row < t->rows; row++) {
        for (int n = 0; n < t->columns; n++) {
            double x;
            const char *text = results_table_text(t, row, t->cell[n]);
            CHECK(text && !strpbrk(text, ",\n"), "row %d, column %d", row, n);
            CHECK(results_table_number(&x, t, row, t->cell[n]) ? isfinite(x) : x == -1,
                  "number %g", x);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct results_table t;
    struct error error;
    char path[64];
    const int file = memfd_create("csv", 0);
    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size, "no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const enum status status = results_table_read(&t, path, &error);
    close(file);
    if (status == STATUS_OK)
        check_accepted(&t);
    else
        check_refused(&t, status, &error, path);
    results_table_free(&t);
    return 0;
}
