/* The measured side of the lesson on softmax: the three kernels at the lesson's shape, and, of
 * a recording, what caches leave of their accesses as rows grow. */
#ifndef FLASHLAB_LESSONS_SOFTMAX_COLUMN_H
#define FLASHLAB_LESSONS_SOFTMAX_COLUMN_H

#include <stdio.h>

#include "common/basic_column.h"
#include "common/softmax_rows.h"

/* The column of N x N scores, and of a few ragged rows with their results. */
enum status softmax_column_open(struct basic_column *k, const struct options *o, int N,
                                struct error *error);

/* One row length of the sweep: as many rows as make SWEEP_ELEMENTS. */
enum { SWEEP_ELEMENTS = 1 << 26, SWEEP_FIRST = 1 << 6, SWEEP_LAST = 1 << 22 };
struct softmax_length {
    int cols, rows;
    struct {
        double requested; /* accesses an element, by the sectors that the SMs requested */
        double of_dram;   /* and by the bytes of DRAM */
        double us;
    } way[SOFTMAX_WAYS];
};

/* Every length of the sweep as recorded, shortest first; STATUS_BAD_FILE if one is missing. */
enum { SWEEP_LENGTHS = 17 };
struct softmax_sweep {
    struct basic_column gpu; /* its name, software and date */
    struct softmax_length length[SWEEP_LENGTHS];
};
enum status softmax_sweep_read(struct softmax_sweep *s, struct error *error);

/* The largest distance of DRAM's accesses from 1 store and so many loads, as a share of them,
 * over kernels and lengths from first to last. loads 0: as many as the kernel has. */
double softmax_sweep_error(const struct softmax_sweep *s, int first, int last, int loads);

/* The shortest length from which on DRAM serves at least 0.95 of all accesses of the safe
 * softmax; 0 if there is none. */
int softmax_sweep_uncached(const struct softmax_sweep *s);

/* The length at which the rows that are worked on at once, one a block of 256 threads, fill L2.
 */
int softmax_fills_l2(const struct machine *m);

/* The sweep as CSV, a row a length and kernel. */
enum status softmax_sweep_write(FILE *csv, struct error *error);

#endif
