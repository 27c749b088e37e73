/* How traffic is shown: the table for people and the JSON for programs.
 *
 * Interface: report() takes a simulation that has run and compares its account with the closed
 * forms; the rest serves other output.
 */
#ifndef FLASHLAB_LESSONS_REPORT_H
#define FLASHLAB_LESSONS_REPORT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "kernels/attention_forward.h"
#include "models/l2_traffic.h"

/* Shows the run on stdout: the problem, bytes and sectors by tensor, FLOPs and on-chip memory,
 * each beside its prediction; or, if json, one object
 *   {"algorithm": ..., "options": {...}, "simulated": {...}, "predicted": {...}, "equal": ...}.
 * dram: the model that watched the run, finished; its launches are shown too ("dram": [...]).
 * NULL: there was none. Returns whether simulated and predicted are equal. */
bool report(const struct simulation *s, const struct l2_traffic *dram, bool json);

/* Adds the object "options" that describes the run. */
void report_add_options(cJSON *parent, const struct simulation *s);

/* Adds an integer exactly: a cJSON number is a double, good for 53 bits only. */
void report_add_integer(cJSON *object, const char *key, int64_t value);

/* Prints the JSON with a newline to stdout and deletes it. */
void report_write_json(cJSON *json);

/* 1234567 as "1,234,567", in a buffer of at least 32 bytes, which is returned. */
char *report_grouped(char *buffer, int64_t value);

#endif
