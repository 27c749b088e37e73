/* Figures: the data that a lesson writes, and gnuplot drawing them.
 *
 * Interface:
 *   static const struct figure figures[] = {{"traffic_vs_seqlen", "seqlen"}};
 *   figure_make(&options, write_rows, figures, 1, &error);
 * A figure's script is plots/NAME.gp. It reads the variables csv, output_file,
 * is_svg and plots (the folder of the scripts).
 */
#ifndef FLASHLAB_LESSONS_FIGURE_H
#define FLASHLAB_LESSONS_FIGURE_H

#include <stdio.h>

#include "common/options.h"
#include "core/status.h"

/* plots/NAME.gp, drawn into the file of --plot with "-suffix" before its ending. */
struct figure {
    const char *name;
    const char *suffix;
};

/* Writes a lesson's data as CSV, column names first. */
typedef enum status figure_data(FILE *csv, const struct options *o, struct error *error);

/* Does what --csv and --plot ask for, nothing if neither was given. With --plot alone the data
 * go beside the pictures. Files appear under their names only when they are complete. Says on
 * stderr where the pictures are. */
enum status figure_make(const struct options *o, figure_data *data,
                        const struct figure *figures, int count, struct error *error);

#endif
