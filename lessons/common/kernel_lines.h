/* A kernel's source with what each line moved: the source page of a profiler. */
#ifndef FLASHLAB_LESSONS_KERNEL_LINES_H
#define FLASHLAB_LESSONS_KERNEL_LINES_H

#include <cjson/cJSON.h>

#include "common/kernel_run.h"

struct kernel_lines {
    char file[64]; /* "cuda/kernels/flash2_forward.cu" */
    char *source;  /* owned */
    int count;
    struct cpu_line line[CPU_MAX_LINES]; /* of all launches, sorted by file and line */
};

/* Reads the source below root, and adds up what was counted line by line. */
enum status kernel_lines_make(struct kernel_lines *k, const struct kernel_run *run,
                              const char *root, struct error *error);

/* The source; below each line that touches memory, a row for each array and direction. Then
 * what happened through lines of other files. Up to 110 columns. */
void kernel_lines_print(const struct kernel_lines *k);

/* An array of objects, one a row. */
cJSON *kernel_lines_json(const struct kernel_lines *k);

void kernel_lines_free(struct kernel_lines *k);

#endif
