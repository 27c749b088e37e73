#include "core/step_log.h"

#include <stdlib.h>
#include <string.h>

/* What a record points to, in one piece of memory: m, l and o_norm, then the two strings. */
static void *copy_contents(const struct step_record *record)
{
    const size_t row_bytes = (size_t)record->rows * sizeof(float);
    const size_t kernel = strlen(record->kernel) + 1, step = strlen(record->step) + 1;
    char *memory = malloc(3 * row_bytes + kernel + step);
    CHECK(memory, "no host memory for a step record");
    if (record->rows > 0) {
        memcpy(memory, record->m, row_bytes);
        memcpy(memory + row_bytes, record->l, row_bytes);
        memcpy(memory + 2 * row_bytes, record->o_norm, row_bytes);
    }
    memcpy(memory + 3 * row_bytes, record->kernel, kernel);
    memcpy(memory + 3 * row_bytes + kernel, record->step, step);
    return memory;
}

void step_log_add(void *step_log, const struct step_record *record)
{
    struct step_log *log = step_log;
    if (log->count == log->room) {
        log->room = log->room > 0 ? 2 * log->room : 64;
        log->records = realloc(log->records, (size_t)log->room * sizeof *log->records);
        CHECK(log->records, "no host memory for %lld step records", (long long)log->room);
    }
    struct step_record *copy = &log->records[log->count++];
    const size_t rows = (size_t)record->rows;
    *copy = *record;
    copy->m = copy_contents(record);
    copy->l = copy->m + rows;
    copy->o_norm = copy->m + 2 * rows;
    copy->kernel = (const char *)(copy->m + 3 * rows);
    copy->step = copy->kernel + strlen(copy->kernel) + 1;
}

void step_log_free(struct step_log *log)
{
    for (int64_t i = 0; i < log->count; i++)
        free(log->records[i].m);
    free(log->records);
    *log = (struct step_log){0};
}
