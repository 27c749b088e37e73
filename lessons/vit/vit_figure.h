/* The data of lesson 04's figures: the picture with the map, and the cost against N. */
#ifndef FLASHLAB_LESSONS_VIT_VIT_FIGURE_H
#define FLASHLAB_LESSONS_VIT_VIT_FIGURE_H

#include <stdio.h>

#include "common/options.h"

/* A figure_data function. Column "kind" says what a row is:
 *   pixel      row, column of the picture; red, green, blue from 0 to 255
 *   alike      row, column of a patch; percent of the chosen patch's attention, no training
 *   trained    the same of the trained model; no such rows without one
 *   head       the same of one head: the first six of the trained model, or of the others
 *   patch      row, column of the chosen patch
 *   cost       tokens N; FLOPs of the projections to Q, K and V, and of attention
 */
enum status vit_figure_write(FILE *csv, const struct options *o, struct error *error);

#endif
