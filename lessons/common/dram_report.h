/* How the model's DRAM traffic is shown, launch by launch. */
#ifndef FLASHLAB_LESSONS_DRAM_REPORT_H
#define FLASHLAB_LESSONS_DRAM_REPORT_H

#include <cjson/cJSON.h>

#include "models/l2_traffic.h"

/* A table on stdout: bytes between L2 and DRAM, bytes that are dirty in L2 when the launch
 * ends, and which part of the sectors that were read was found in L2. */
void dram_print(const struct l2_traffic *l2);

/* Adds "dram", an array of
 *   {"launch": ..., "read_bytes": ..., "written_bytes": ..., "dirty_bytes": ...,
 *    "l2_hit_rate": ...}. */
void dram_add_json(cJSON *parent, const struct l2_traffic *l2);

#endif
