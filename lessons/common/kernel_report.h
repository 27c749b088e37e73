/* How a run of a kernel on the CPU is shown: its launches and the comparison, for people and as
 * JSON. */
#ifndef FLASHLAB_LESSONS_KERNEL_REPORT_H
#define FLASHLAB_LESSONS_KERNEL_REPORT_H

#include <cjson/cJSON.h>

#include "common/kernel_run.h"

/* What was run and where: two lines. */
void kernel_report_problem(const struct kernel_run *k);

/* HBM and shared memory, launch by launch. */
void kernel_report_launches(const struct kernel_run *k);

/* Sectors and results beside those of the simulator, each with its verdict. */
void kernel_report_verdicts(const struct kernel_run *k);

/* All of it as an object; the caller may add to it. */
cJSON *kernel_report_json(const struct kernel_run *k);

/* "load", "store", "reduce". */
const char *kernel_way_name(enum cpu_way way);

/* Bytes that lanes asked for, as a share in percent of the sectors that served them: 100 where
 * requests are coalesced, more where lanes share elements. 0 without sectors. */
double kernel_efficiency(const struct cpu_traffic *t);

/* Passes over the banks beyond the fewest. */
int64_t kernel_conflicts(const struct cpu_traffic *t);

/* Adds a traffic's figures to a JSON object: those of HBM, or of shared memory. */
void kernel_report_add_traffic(cJSON *object, const struct cpu_traffic *t, bool shared);

#endif
