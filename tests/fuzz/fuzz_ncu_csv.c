/* Fuzzer of ncu_csv_read(): any bytes are either refused with a message, or give launches of
 * our kernels with counters in range. Seeds are in tests/fuzz/corpus/ncu_csv.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/ncu_csv.h"

enum { MOST = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refused(int count, enum status status, const struct error *error,
                          const char *path)
{
    CHECK(status == STATUS_BAD_FILE, "status %d", (int)status);
    CHECK(error->status == status, "status %d in the error, %d returned", (int)error->status,
          (int)status);
    CHECK(strncmp(error->text, path, strlen(path)) == 0, "no path in \"%s\"", error->text);
    CHECK(count == 0, "%d launches of a refused file", count);
    /* Whatever was in the file, the message is one printable line. */
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~', "byte 0x%02x in the message", (unsigned char)*c);
}

static void check_accepted(const struct observed_launch *launches, int count)
{
    CHECK(count >= 1 && count <= MOST, "%d launches", count);
    for (int i = 0; i < count; i++) {
        CHECK(memchr(launches[i].kernel, '\0', KERNEL_NAME_LENGTH), "a name without end");
        CHECK(*launches[i].kernel, "no name");
        for (int c = 0; c < COUNTER_COUNT; c++) {
            const double value = launches[i].of[c];
            CHECK(value == -1 || (value >= 0 && value <= 0x1p53), "counter %g", value);
            CHECK(c == COUNTER_DURATION_NS || value == floor(value), "counter %g", value);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct observed_launch launches[MOST];
    struct error error;
    char path[64];
    int count = 99;
    const int file = memfd_create("csv", 0);
    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size, "no file in memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    const enum status status = ncu_csv_read(launches, MOST, &count, path, &error);
    close(file);
    if (status == STATUS_OK)
        check_accepted(launches, count);
    else
        check_refused(count, status, &error, path);
    return 0;
}
