/* The simulated twin of a kernel that runs on the CPU: the same inputs, its result and counts.
 */
#ifndef FLASHLAB_LESSONS_KERNEL_TWIN_H
#define FLASHLAB_LESSONS_KERNEL_TWIN_H

#include "core/machine.h"
#include "core/traffic.h"
#include "cuda/cpu/run.h"

struct kernel_twin {
    float *output, *lse; /* owned: the kernel's result; lse of attention only, else NULL */
    struct account predicted, simulated;
};

/* Runs the twin on the inputs that are in the run's arrays. */
enum status kernel_twin_run(struct kernel_twin *twin, const struct cpu_run *run,
                            const struct machine *machine, struct error *error);

/* Counts only, of a kernel that is not attention: the run need not be open. */
enum status kernel_twin_count(struct kernel_twin *twin, const struct cpu_run *run,
                              const struct machine *machine, struct error *error);

void kernel_twin_free(struct kernel_twin *twin);

#endif
