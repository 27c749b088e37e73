/* Figures: the data that a lesson writes, and gnuplot drawing them.
 *
 * Interface:
 *   FILE *csv = figure_csv_open(path, &error) ... figure_csv_close(csv, path, &error)
 *   figure_draw("traffic_vs_seqlen", csv_path, "out/08.png", "seqlen", &error)
 * A figure's script is plots/NAME.gp. It reads the variables csv, output_file,
 * is_svg and plots (the folder of the scripts).
 */
#ifndef FLASHLAB_LESSONS_FIGURE_H
#define FLASHLAB_LESSONS_FIGURE_H

#include <stdio.h>

#include "core/status.h"

/* Opens path.partial for writing; figure_csv_close() gives it its name, and
 * figure_csv_abandon() removes it. */
FILE *figure_csv_open(const char *path, struct error *error);
enum status figure_csv_close(FILE *file, const char *path, struct error *error);
void figure_csv_abandon(FILE *file, const char *path);

/* Draws plots/NAME.gp from the CSV into output with "-suffix" before its ending, and says where
 * on stderr. output ends in .png or .svg. */
enum status figure_draw(const char *name, const char *csv, const char *output,
                        const char *suffix, struct error *error);

#endif
