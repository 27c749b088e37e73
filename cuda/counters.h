/* Hardware counters of kernel launches, read in this process by CUPTI's range profiler.
 *
 * Interface:
 *   struct counters *counters;
 *   counters_open(&counters, &error);
 *   struct counter_values values[3];
 *   int launches;
 *   counters_measure(values, 3, &launches, counters, work, context, &error);
 *   values[0].of[COUNTER_LOAD_SECTORS]            of the first kernel that work() launched
 *   counters_close(counters);
 *
 * Each launch is a range of its own, and the driver runs it again (with memory restored in
 * between) for as many passes as the counters need. Caches are then warm. Where that matters:
 *   counters_open_metrics(&counters, metrics, 2, &error);
 *   counters_measure_range(values, counters, before, work, context, &error);
 * counts all of work() together, after before() has prepared each pass.
 *
 * One struct counters may be open at a time.
 * Reading counters is a privilege on many systems: the message of a refusal says how to get it.
 */
#ifndef FLASHLAB_CUDA_COUNTERS_H
#define FLASHLAB_CUDA_COUNTERS_H

#include "cuda/counter_names.h"
#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one launch. All but the duration are whole numbers; -1: this GPU does not have it. */
struct counter_values {
    double of[COUNTER_COUNT];
};

struct counters;

enum status counters_open(struct counters **counters, struct error *error);

/* Metrics by the profiler's names, which must live as long as *counters. */
enum status counters_open_metrics(struct counters **counters, const char *const *metrics,
                                  int count, struct error *error);

/* Runs work() once and stores the counters of its launches, in order: at most most of them,
 * *launches of them. */
enum status counters_measure(struct counter_values *values, int most, int *launches,
                             struct counters *counters, device_work *work, void *context,
                             struct error *error);

/* For each pass: before(), then, when that has ended on the default stream, work(), counted up
 * to its end there. values: [count] of counters_open_metrics(), in its order; -1: this GPU does
 * not have it. */
enum status counters_measure_range(double *values, struct counters *counters,
                                   device_work *before, device_work *work, void *context,
                                   struct error *error);

void counters_close(struct counters *counters); /* NULL: nothing happens */

/* Fills *error as the functions above do when the call of CUPTI at a line of counters.cpp
 * returns cupti_result, and returns its status. */
enum status counters_failed(struct error *error, int cupti_result, const char *call, int line);

#ifdef __cplusplus
}
#endif

#endif
