/* Fuzzer of gpu_recording_read(): any bytes are either refused with a message, or give a
 * recording that comes back the same when it is written and read again. Seeds are in
 * tests/fuzz/corpus/recording.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/gpu_recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Reads the bytes as a file of that path, which lives in memory. */
static enum status read_bytes(struct gpu_recording *recording, const void *bytes, size_t size,
                              char path[64], struct error *error)
{
    const int file = memfd_create("recording", 0);
    CHECK(file >= 0 && write(file, bytes, size) == (ssize_t)size, "no file in memory");
    snprintf(path, 64, "/proc/self/fd/%d", file);
    const enum status status = gpu_recording_read(recording, path, error);
    close(file);
    return status;
}

static void check_refused(const struct gpu_recording *recording, enum status status,
                          const struct error *error, const char *path)
{
    CHECK(status == STATUS_BAD_FILE, "status %d", (int)status);
    CHECK(error->status == status, "status %d in the error, %d returned", (int)error->status,
          (int)status);
    CHECK(strncmp(error->text, path, strlen(path)) == 0, "no path in \"%s\"", error->text);
    CHECK(recording->seen.steps.count == 0 && !recording->seen.steps.records &&
              recording->seen.launches == 0 && *recording->date == '\0',
          "a refused recording");
    /* Whatever was in the file, the message is one printable line. */
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~', "byte 0x%02x in the message", (unsigned char)*c);
}

static char *written(const struct gpu_recording *recording, size_t *size)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, size);
    CHECK(stream && gpu_recording_write(recording, stream) && fclose(stream) == 0,
          "not written");
    return text;
}

static void check_accepted(const struct gpu_recording *recording)
{
    const struct observation *seen = &recording->seen;
    struct error error;
    CHECK(attention_check(&recording->attention, &error) == STATUS_OK, "%s", error.text);
    CHECK(seen->launches >= 0 && seen->launches <= MAX_OBSERVED_LAUNCHES, "%d launches",
          seen->launches);
    for (int i = 0; i < seen->launches; i++)
        for (int c = 0; c < COUNTER_COUNT; c++)
            CHECK(seen->launch[i].of[c] >= 0 || seen->launch[i].of[c] == -1, "counter %g",
                  seen->launch[i].of[c]);
    struct gpu_recording again;
    char path[64];
    size_t first_size, second_size;
    char *first = written(recording, &first_size);
    CHECK(read_bytes(&again, first, first_size, path, &error) == STATUS_OK, "%s", error.text);
    char *second = written(&again, &second_size);
    CHECK(first_size == second_size && memcmp(first, second, first_size) == 0,
          "written %s, and then %s", first, second);
    gpu_recording_free(&again);
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct gpu_recording recording;
    struct error error;
    char path[64];
    const enum status status = read_bytes(&recording, bytes, size, path, &error);
    if (status == STATUS_OK)
        check_accepted(&recording);
    else
        check_refused(&recording, status, &error, path);
    gpu_recording_free(&recording);
    return 0;
}
