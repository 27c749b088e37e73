/* Times that were recorded on an H200, each beside the model's estimate.
 *
 * Interface:
 *   struct time_rows rows;
 *   time_rows_read(&rows, &error);
 *   rows.row[i].measured, rows.row[i].estimate of rows.row[i].kind, for i < rows.count
 *   time_rows_errors(&rows, TIME_KIND_FULL).median ...
 *   time_rows_free(&rows);
 *
 * Read are cuda/results/h200_times.csv (our kernels by events), cuda/results/h200_counters.csv
 * (our kernels under the profiler) and lessons/recordings/h200_counters.csv (FlashAttention-2
 * and cuDNN, forward, under the profiler). Runs shorter than TIME_LEAST_US, which are launch
 * and start-up more than work, are left out.
 */
#ifndef FLASHLAB_LESSONS_TIME_ROWS_H
#define FLASHLAB_LESSONS_TIME_ROWS_H

#include <stdbool.h>

#include "core/status.h"
#include "models/time.h"

enum { TIME_LEAST_US = 15 };

/* Kernels that the model is right or wrong about for the same reason. */
enum time_kind {
    TIME_KIND_STREAM,  /* vector_add, the softmaxes: a pass or three over much data */
    TIME_KIND_ELEMENT, /* matmul_naive: a thread an element, everything through L1 */
    TIME_KIND_FULL,    /* tiled kernels with at least as many blocks as SMs */
    TIME_KIND_THIN,    /* tiled kernels with fewer */
    TIME_KIND_ROW,     /* naive_attention: a warp a row */
    TIME_KIND_FA2,     /* FlashAttention-2, as PyTorch has it */
    TIME_KIND_CUDNN,
    TIME_KINDS,
};

struct time_row {
    enum time_kind kind;
    char kernel[32], shape[64];
    int seqlen, head_dim, tile; /* 0: it has none; of attention the rows of a Q tile */
    bool causal;
    bool profiled;       /* under the profiler, not by events */
    double measured;     /* seconds, as the three below */
    double estimate;     /* of all launches, and what bounds it: */
    double overlapped;   /* every unit at once */
    double in_turn;      /* one after the other */
    const char *longest; /* unit of the launch that takes longest; "latency" if none has to */
    struct roofline_point work; /* of the whole run */
};

struct time_rows {
    int count;
    struct time_row *row; /* [count], owned */
};

/* What is missing or malformed is named. */
enum status time_rows_read(struct time_rows *rows, struct error *error);
void time_rows_free(struct time_rows *rows);

/* "tiled, all SMs busy" */
const char *time_kind_name(enum time_kind kind);

/* (estimate - measured) / measured of the kind's rows; TIME_KINDS: of all rows. */
struct time_errors {
    int rows;
    double median, worst;         /* absolute; worst with its sign */
    const struct time_row *where; /* the worst; NULL without rows */
    int within_quarter;           /* rows with an error of at most 25 % */
    int between;                  /* rows measured between the two bounds, or at them */
};
double time_row_error(const struct time_row *row);
struct time_errors time_rows_errors(const struct time_rows *rows, enum time_kind kind);

#endif
