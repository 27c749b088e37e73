/* Fuzzer of machine_file_parse(): any bytes are either refused with a message, or give machines
 * whose figures are in range, and which come back the same when they are written and read
 * again. Seeds are in tests/fuzz/corpus/machine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/machine_figures.h"
#include "core/machine_file.h"

enum { MOST = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refused(int count, enum status status, const struct error *error)
{
    CHECK(status == STATUS_BAD_FILE, "status %d", (int)status);
    CHECK(error->status == status, "status %d in the error, %d returned", (int)error->status,
          (int)status);
    CHECK(strncmp(error->text, "seed:", 5) == 0, "no name in \"%s\"", error->text);
    CHECK(count == 0, "%d machines of a refused file", count);
    /* Whatever was in the file, the message is one printable line. */
    for (const char *c = error->text; *c; c++)
        CHECK(*c >= ' ' && *c <= '~', "byte 0x%02x in the message", (unsigned char)*c);
}

static void check_figures(const struct machine *m)
{
    for (int f = 0; f < FIGURE_COUNT; f++) {
        const struct machine_figure_info *info = &machine_figures[f];
        const double value = machine_figure_get(m, (enum machine_figure)f);
        CHECK((value > 0 && value <= info->most) || (value == 0 && !info->required) ||
                  (value == MACHINE_NONE && info->may_be_none),
              "%s is %g", info->key, value);
        CHECK(memchr(m->source[f], '\0', MACHINE_SOURCE_SIZE), "a source without end");
    }
    CHECK(*m->name && memchr(m->name, '\0', MACHINE_NAME_SIZE), "no name");
    CHECK(memchr(m->note, '\0', MACHINE_NOTE_SIZE), "a note without end");
    CHECK(m->sram_bytes_per_block <= m->sram_bytes_per_sm, "a block has more than its SM");
}

static void check_written(const struct machine *m)
{
    char *text = NULL, value[FIGURE_TEXT_SIZE];
    size_t size;
    struct machine again;
    struct error error;
    int count;
    FILE *stream = open_memstream(&text, &size);
    CHECK(stream, "no stream");
    fprintf(stream, "[%s]\n", m->name);
    if (*m->note)
        fprintf(stream, "note = %s\n", m->note);
    for (int f = 0; f < FIGURE_COUNT; f++)
        if (machine_figure_get(m, (enum machine_figure)f) != 0)
            fprintf(stream, "%s = %s # %s\n", machine_figures[f].key,
                    machine_figure_format(value, m, (enum machine_figure)f), m->source[f]);
    CHECK(fclose(stream) == 0, "not written");
    CHECK(machine_file_parse(&again, 1, &count, text, "again", &error) == STATUS_OK, "%s",
          error.text);
    CHECK(strcmp(again.name, m->name) == 0 && strcmp(again.note, m->note) == 0, "of %s", text);
    for (int f = 0; f < FIGURE_COUNT; f++)
        CHECK(machine_figure_get(&again, (enum machine_figure)f) ==
                      machine_figure_get(m, (enum machine_figure)f) &&
                  strcmp(again.source[f], m->source[f]) == 0,
              "another %s comes back from %s", machine_figures[f].key, text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct machine machines[MOST];
    struct error error = {0};
    int count = 99;
    char *text = malloc(size + 1);
    CHECK(text, "no memory");
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    const enum status status = machine_file_parse(machines, MOST, &count, text, "seed", &error);
    free(text);
    if (status != STATUS_OK)
        check_refused(count, status, &error);
    else
        CHECK(count >= 1 && count <= MOST, "%d machines", count);
    for (int i = 0; i < count; i++) {
        check_figures(&machines[i]);
        check_written(&machines[i]);
    }
    return 0;
}
