/* Text files that programs write: complete under their name, or not there at all.
 *
 * Interface:
 *   struct output_file csv;
 *   output_open(&csv, "--csv", path, &error)     opens path.partial
 *   fprintf(csv.stream, ...)
 *   output_commit(&csv, &error)                  gives it its name
 *   output_abandon(&csv)                         ... or removes it
 * A path that exists must be a regular file: devices and pipes are refused, not replaced.
 */
#ifndef FLASHLAB_LESSONS_OUTPUT_FILE_H
#define FLASHLAB_LESSONS_OUTPUT_FILE_H

#include <stdio.h>

#include "core/status.h"

enum { OUTPUT_PATH_LENGTH = 4096 };

struct output_file {
    FILE *stream;
    const char *option; /* for messages; not owned */
    const char *path;   /* not owned */
    char partial[OUTPUT_PATH_LENGTH];
};

enum status output_open(struct output_file *file, const char *option, const char *path,
                        struct error *error);

/* Closes the file. On failure nothing is left. */
enum status output_commit(struct output_file *file, struct error *error);
void output_abandon(struct output_file *file);

#endif
