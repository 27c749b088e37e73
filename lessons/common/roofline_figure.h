/* The data of rooflines: ceilings of a machine, and kernels as points. Drawn by
 * plots/roofline_*.gp.
 *
 * Columns: panel ("fp32", "fp16"), series ("ceiling" or "kernel"), label, then
 *   ceiling   flop_per_byte, tflops: two points a ceiling
 *   kernel    flop_per_byte (HBM), l2_flop_per_byte, tflops (the model's), measured_tflops
 * with nothing where a number is not known.
 */
#ifndef FLASHLAB_LESSONS_ROOFLINE_FIGURE_H
#define FLASHLAB_LESSONS_ROOFLINE_FIGURE_H

#include <stdio.h>

#include "models/roofline.h"

void roofline_figure_header(FILE *csv);

/* From 0.05 to 5000 FLOPs a byte; a level whose bandwidth is not known has no line. */
void roofline_figure_ceilings(FILE *csv, const struct machine *machine,
                              enum roofline_unit unit);

/* seconds by the model; measured: 0 if it was not. */
void roofline_figure_kernel(FILE *csv, const char *label, const struct roofline_point *point,
                            double seconds, double measured);

#endif
