/* Text files that a user names, read whole, and pieces of them in messages. */
#ifndef FLASHLAB_LESSONS_TEXT_FILE_H
#define FLASHLAB_LESSONS_TEXT_FILE_H

#include <stddef.h>

#include "core/status.h"

/* Reads the file into *text, NUL-terminated, owned by the caller (free()); NULL after a
 * failure. STATUS_BAD_FILE if it cannot be read, is empty, has more than most bytes or one that
 * is NUL; the message begins with the path. */
enum status text_file_read(char **text, const char *path, size_t most, struct error *error);

enum { QUOTED_LENGTH = 70 };

/* Quotes found for a message: cut where it is long, '?' for each byte that does not print, so
 * that a message is one line. Returns buffer. */
char *text_quote(char buffer[QUOTED_LENGTH], const char *found);

#endif
