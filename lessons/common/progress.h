/* Progress of long launches: a line on stderr that is written over, if stderr is a terminal. */
#ifndef FLASHLAB_LESSONS_PROGRESS_H
#define FLASHLAB_LESSONS_PROGRESS_H

#include "kernels/attention_forward.h"

/* Makes the simulation's launches show their progress. */
void progress_show(struct simulation *s);

/* Says that a kernel runs on the CPU: how far it is, nobody knows. */
void progress_on_cpu(const char *kernel);

/* Wipes the line, if there is one, before other output. */
void progress_end(void);

#endif
