/* Our kernels behind the model of L2: a row of cuda/results/h200_l2.csv run by the simulator,
 * without data, with as many blocks on an SM as the CUDA twin has.
 */
#ifndef FLASHLAB_TESTS_TWINS_H
#define FLASHLAB_TESTS_TWINS_H

#include "common/csv.h"
#include "models/l2_traffic.h"

/* The row's launches added up. L2 is empty before the first; the later ones find in it what
 * those before have left. place: 0 to 63, of the arrays in memory. */
struct l2_launch twin_replay(const struct csv *table, int row, int place);

/* "16 heads, N 4096, d 64, causal" or "8192 x 1024", in a static buffer. */
const char *twin_shape(const struct csv *table, int row);

#endif
