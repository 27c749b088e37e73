/* The files of results: CSV with the machine in comment lines at the top.
 *
 * Interface:
 *   results_machine(file, "make gpu-bench", &error);     # GPU, driver, date, command
 *   results_counters_header(file);
 *   results_counters_row(file, &run, &gpu, values, launches);  a run: its launches added up
 * A NULL file: nothing happens.
 */
#ifndef FLASHLAB_CUDA_TESTS_RESULTS_H
#define FLASHLAB_CUDA_TESTS_RESULTS_H

#include <stdio.h>

#include "cuda/counters.h"
#include "run.h"

enum status results_machine(FILE *file, const char *command, struct error *error);

void results_counters_header(FILE *file);
void results_counters_row(FILE *file, const struct run *run, const struct gpu *simulated,
                          const struct counter_values *values, int launches);

/* kernel, then the shape's columns; those that a kernel does not have are empty. */
void results_shape_columns(FILE *file);
void results_shape(FILE *file, const struct run *run);

#endif
