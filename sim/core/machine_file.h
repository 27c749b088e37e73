/* Files of machines: a block for each, a line for each figure.
 *
 *     # a comment
 *     [NAME]
 *     note = what a reader should know
 *     sms = 132                 # where the figure is from
 *     sram_per_block = 227 KiB  # units: core/machine_figures.h
 *
 * The order of the lines is free. A figure that is absent is unknown; some are required.
 */
#ifndef FLASHLAB_CORE_MACHINE_FILE_H
#define FLASHLAB_CORE_MACHINE_FILE_H

#include "core/machine.h"
#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of the program, sim/core/machines.txt: made by the build. */
extern const char machine_table_text[];

enum { MACHINE_MOST_LINE = 300 }; /* bytes of a line, without its end */

/* Reads the machines in text, NUL-terminated, into machines[most]; *count is how many there
 * are, at least 1. STATUS_BAD_FILE, with *count 0, if anything is wrong: a key that is unknown,
 * twice or missing, a value that is not what its key wants, figures that contradict each other,
 * a name twice. The message begins with name, the file's, and the line, and is one printable
 * line if name is. */
enum status machine_file_parse(struct machine *machines, int most, int *count, const char *text,
                               const char *name, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
