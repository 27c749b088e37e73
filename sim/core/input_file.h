/* Files that a user names, read in pieces or whole.
 *
 * Interface:
 *   int file;
 *   size_t size;
 *   if (input_file_open(&file, &size, path, &error))
 *       return error.status;
 *   unsigned char *bytes;
 *   status = input_file_read(&bytes, file, size, path, &error);
 *   ...
 *   free(bytes);
 *   close(file);
 */
#ifndef FLASHLAB_CORE_INPUT_FILE_H
#define FLASHLAB_CORE_INPUT_FILE_H

#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a regular file; size: its bytes. Anything else is STATUS_BAD_FILE, said at once: a pipe
 * is not waited for. The caller closes the descriptor; after a failure there is none. */
enum status input_file_open(int *file, size_t *size, const char *path, struct error *error);

/* *bytes <- the next size bytes of the file, owned by the caller (free()), even on failure. */
enum status input_file_read(unsigned char **bytes, int file, size_t size, const char *path,
                            struct error *error);

#ifdef __cplusplus
}
#endif

#endif
