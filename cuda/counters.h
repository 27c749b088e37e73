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
 * between) for as many passes as the counters need. One struct counters may be open at a time.
 * Reading counters is a privilege on many systems: the message of a refusal says how to get it.
 */
#ifndef FLASHLAB_CUDA_COUNTERS_H
#define FLASHLAB_CUDA_COUNTERS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum counter {
    COUNTER_LOAD_SECTORS,   /* sectors of global loads that the SMs requested */
    COUNTER_STORE_SECTORS,  /* of global stores */
    COUNTER_REDUCE_SECTORS, /* of atomics without a result */
    COUNTER_L2_SECTORS,     /* sectors that L2 served, whoever asked */
    COUNTER_DRAM_READ_BYTES,
    COUNTER_DRAM_WRITE_BYTES,
    COUNTER_SHARED_LOAD_CONFLICTS, /* extra passes over shared memory's banks */
    COUNTER_SHARED_STORE_CONFLICTS,
    COUNTER_DURATION_NS,
    COUNTER_COUNT,
};

/* The profiler's name: "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum". */
const char *counter_metric(enum counter counter);

/* Of one launch. All but the duration are whole numbers. */
struct counter_values {
    double of[COUNTER_COUNT];
};

struct counters;

enum status counters_open(struct counters **counters, struct error *error);

/* Runs work() once and stores the counters of its launches, in order: at most most of them,
 * *launches of them. */
enum status counters_measure(struct counter_values *values, int most, int *launches,
                             struct counters *counters, device_work *work, void *context,
                             struct error *error);

void counters_close(struct counters *counters); /* NULL: nothing happens */

#ifdef __cplusplus
}
#endif

#endif
