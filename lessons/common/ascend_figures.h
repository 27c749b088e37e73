/* The data behind the figures of the Ascend's lesson: what moves on each way, and what each
 * design moves between GM and the cores.
 */
#ifndef FLASHLAB_LESSONS_ASCEND_FIGURES_H
#define FLASHLAB_LESSONS_ASCEND_FIGURES_H

#include <stdio.h>

#include "common/options.h"

/* A figure_data function. Columns: figure ("ways" or "designs"), bar, label, the problem, and
 * bytes of Q, K, V, O and LSE, of S and P, and of Oij. Designs whose tiles do not fit are left
 * out. */
enum status ascend_figures_write(FILE *csv, const struct options *o, struct error *error);

#endif
