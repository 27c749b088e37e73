/* Counters of a run that `ncu --csv` profiled, for machines where a program may not read them
 * itself but the profiler may:
 *
 *   ncu --csv --print-units base --metrics M,... build/flashlab ... >counters.csv
 *
 * with the metrics of counter_names.h. --print-units base keeps every digit, without it a
 * number of bytes or nanoseconds comes rounded. What the profiled program and ncu printed
 * before the table is skipped, as are launches of kernels that are not ours.
 */
#ifndef FLASHLAB_LESSONS_NCU_CSV_H
#define FLASHLAB_LESSONS_NCU_CSV_H

#include "core/status.h"
#include "cuda/observation.h"

/* Fills launches[*count] in the order of ncu's IDs; counters that the file lacks are -1, bytes
 * are in bytes and times in nanoseconds. STATUS_BAD_FILE if the file cannot be read, is no such
 * table, or has no launch of ours or more than most; the message begins with the path, and
 * *count is 0. */
enum status ncu_csv_read(struct observed_launch *launches, int most, int *count,
                         const char *path, struct error *error);

#endif
