#include "common/own_machine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_file.h"
#include "core/machine_file.h"

enum { MOST_BYTES = 64 * 1024 };

static bool is_file(const char *name)
{
    static const char ending[] = ".machine";
    const size_t length = strlen(name), end = sizeof ending - 1;
    return strchr(name, '/') || (length > end && strcmp(name + length - end, ending) == 0);
}

static enum status read_own(struct machine *own, const char *path, struct error *error)
{
    char *text;
    int count;
    if (text_file_read(&text, path, MOST_BYTES, error))
        return error->status;
    const enum status status = machine_file_parse(own, 1, &count, text, path, error);
    free(text);
    if (status != STATUS_OK)
        return status;
    if (machine_find(own->name))
        return error_set(error, STATUS_BAD_FILE,
                         "%s: [%s]: must be a name that `flashlab machines` does not list",
                         path, own->name);
    return STATUS_OK;
}

enum status machine_open(const struct machine **machine, struct machine *own, const char *name,
                         struct error *error)
{
    const struct machine *found = machine_find(name);
    if (is_file(name)) {
        if (read_own(own, name, error))
            return error->status;
        found = own;
    }
    if (!found)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%.100s: must be a name that `flashlab machines` lists, or a file: a "
                         "path with / or ending in .machine",
                         *name ? name : "''");
    *machine = found;
    return STATUS_OK;
}
