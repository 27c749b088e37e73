/* Step records kept: what a trace of the simulator, a GPU or a recording said, in order.
 *
 * Interface:
 *   struct step_log log = {0};
 *   struct trace trace = {step_log_add, &log};     as gpu->trace: records of the simulator
 *   step_log_add(&log, &record);                   or one by one
 *   step_log_free(&log);
 */
#ifndef FLASHLAB_CORE_STEP_LOG_H
#define FLASHLAB_CORE_STEP_LOG_H

#include "core/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

struct step_log {
    int64_t count, room;
    struct step_record *records; /* [count], owned with all that they point to */
};

/* Appends a copy of the record, its strings and its row statistics. step_log is a struct
 * step_log *: the function serves as struct trace.record. */
void step_log_add(void *step_log, const struct step_record *record);

void step_log_free(struct step_log *log);

#ifdef __cplusplus
}
#endif

#endif
