#include "common/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Grows by what is there, not by what a size says: pipes and /dev/zero have none. */
static enum status read_all(char **text, size_t *size, FILE *file, size_t most,
                            const char *path, struct error *error)
{
    size_t room = 4096;
    do {
        room *= 2;
        char *grown = realloc(*text, room);
        if (!grown)
            return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for its text", path);
        *text = grown;
        *size += fread(*text + *size, 1, room - 1 - *size, file);
    } while (*size == room - 1 && *size <= most);
    if (ferror(file))
        return error_set(error, STATUS_BAD_FILE, "%s: cannot read: %s", path, strerror(errno));
    if (*size > most)
        return error_set(error, STATUS_BAD_FILE, "%s: more than %zu bytes, the most allowed",
                         path, most);
    if (*size == 0)
        return error_set(error, STATUS_BAD_FILE, "%s: the file is empty", path);
    (*text)[*size] = '\0';
    if (strlen(*text) != *size)
        return error_set(error, STATUS_BAD_FILE, "%s: byte %zu is NUL: not a text file", path,
                         strlen(*text));
    return STATUS_OK;
}

enum status text_file_read(char **text, const char *path, size_t most, struct error *error)
{
    size_t size = 0;
    *text = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, STATUS_BAD_FILE, "%s: %s", path, strerror(errno));
    const enum status status = read_all(text, &size, file, most, path, error);
    fclose(file);
    if (status != STATUS_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

char *text_quote(char buffer[QUOTED_LENGTH], const char *found)
{
    const size_t length = strlen(found), most = QUOTED_LENGTH - 6; /* two quotes, ..., NUL */
    char *out = buffer;
    *out++ = '"';
    for (size_t i = 0; i < length && i < most; i++)
        *out++ = found[i] >= ' ' && found[i] <= '~' ? found[i] : '?';
    strcpy(out, length > most ? "\"..." : "\"");
    return buffer;
}
