/* Rows of the tables of cuda/results: what was run. */
#ifndef FLASHLAB_TESTS_ROWS_H
#define FLASHLAB_TESTS_ROWS_H

#include "common/csv.h"
#include "core/attention.h"

/* The attention problem of a row: fp32, scale 1 / sqrt(head_dim). */
struct attention attention_of_row(const struct csv *table, int row);

#endif
