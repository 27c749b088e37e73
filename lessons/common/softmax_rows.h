/* The three softmaxes on the simulator: what they move, what they compute, and how far off.
 */
#ifndef FLASHLAB_LESSONS_SOFTMAX_ROWS_H
#define FLASHLAB_LESSONS_SOFTMAX_ROWS_H

#include <stdint.h>

#include "core/machine.h"
#include "core/status.h"
#include "core/traffic.h"

enum softmax_way { SOFTMAX_NAIVE, SOFTMAX_SAFE, SOFTMAX_ONLINE, SOFTMAX_WAYS };

const char *softmax_way_name(enum softmax_way way); /* "naive" */
int softmax_loads(enum softmax_way way);            /* of an element: 2, 3, 2 */

/* What the kernel moves and computes on rows x cols, by its closed form and counted. */
enum status softmax_count(struct account *predicted, struct account *simulated,
                          enum softmax_way way, int rows, int cols,
                          const struct machine *machine, struct error *error);

/* y <- softmax of each row of x, both [rows][cols]. */
enum status softmax_rows(float *y, const float *x, enum softmax_way way, int rows, int cols,
                         const struct machine *machine, struct error *error);

/* The largest error of y against float64, relative to y (of y below 2^-100: to 2^-100);
 * infinity if an element of y is NaN. */
double softmax_error(const float *y, const float *x, int rows, int cols);

/* The same of rows of random scores, uniform over [-2, 2] times scale, and how many elements
 * are NaN. */
enum status softmax_random_error(double *worst, int64_t *nan, enum softmax_way way, int rows,
                                 int cols, float scale, const struct machine *machine,
                                 struct error *error);

/* A row of count random scores in parts, merged first to last, last to first and as a binary
 * tree: the error of l against the definition, relative; infinity if m is not exact. parts <=
 * count. */
enum { MERGE_ORDERS = 3 };
enum status softmax_merge_errors(double worst[MERGE_ORDERS], int count, int parts,
                                 struct error *error);

#endif
