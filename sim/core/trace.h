/* Step records: what a thread block had done after each step of its algorithm.
 *
 * Interface:
 *   A kernel calls block_step() at the end of each step, and block_step_rows() at the end of a
 *   K/V block, with what it has of the row statistics: NULL for tiles that the step does not
 *   know, NaN in the record. Without gpu->trace both return at once. Records reach
 *   the trace's function in block order when the block has ended, so that a trace does not
 *   depend on the number of cores. trace_write_json() is such a function: one JSON object a
 *   line.
 */
#ifndef FLASHLAB_CORE_TRACE_H
#define FLASHLAB_CORE_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "core/launch.h"
#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

struct step_record {
    const char *kernel;
    int block[3]; /* x, y, z of the thread block */
    int i, j;     /* Q tile and K/V tile; -1: not in that loop */
    const char *step;
    int64_t read_bytes, written_bytes, reduced_bytes; /* by this block so far */
    int rows;                                         /* 0: no row statistics */
    float *m, *l, *o_norm; /* [rows] each: row maximum, row sum, 2-norm of the row of the O
                              accumulator; all NaN: the step does not know them. Valid
                              during the call. */
};

struct trace {
    void (*record)(void *context, const struct step_record *record);
    void *context;
};

/* Records a step without row statistics. step is static. */
void block_step(struct thread_block *b, const char *step, int i, int j);

/* Records a step with the first rows rows of m, l (rows x 1 tiles) and O's row norms. m and l,
 * or O, may be NULL: not known. */
void block_step_rows(struct thread_block *b, const char *step, int i, int j, int rows,
                     const struct tile *m, const struct tile *l, const struct tile *O);

/* struct trace.record for JSON Lines; context is a FILE *. Infinities and NaN, which JSON
 * numbers lack, are the strings "-inf", "inf" and "nan". */
void trace_write_json(void *context, const struct step_record *record);

/* Core only: hands the block's records to the trace and frees them. */
void step_list_flush(struct thread_block *b);

#ifdef __cplusplus
}
#endif

#endif
