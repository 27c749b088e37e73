/* What was seen of one run of a kernel on a GPU: the GPU, results, hardware counters, time and
 * step records; or of its source on the CPU. Plain data: a live run fills it
 * (cuda/observe.h, cuda/cpu/observe.h), a recording too.
 */
#ifndef FLASHLAB_CUDA_OBSERVATION_H
#define FLASHLAB_CUDA_OBSERVATION_H

#include <stdbool.h>

#include "core/step_log.h"
#include "cuda/counter_names.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MAX_OBSERVED_LAUNCHES = 8, KERNEL_NAME_LENGTH = 48 };

/* One launch, with the hardware's counters. */
struct observed_launch {
    char kernel[KERNEL_NAME_LENGTH]; /* "flash2_forward" */
    double of[COUNTER_COUNT]; /* all but the duration are whole numbers; -1: not counted */
};

struct observation {
    char gpu[128];                    /* "NVIDIA H200" */
    bool on_cpu;                      /* no GPU: what describes one is empty */
    char driver[32];                  /* "580.159.04" */
    int compute_major, compute_minor; /* 9, 0 */
    int cuda_version;                 /* of the runtime: 1000 major + 10 minor */
    int launches;                     /* 0: nothing was counted */
    struct observed_launch launch[MAX_OBSERVED_LAUNCHES]; /* in launch order */
    char uncounted[512];   /* why nothing was counted; empty if something was */
    double median_us;      /* of a run that nothing watches; 0: not timed */
    struct step_log steps; /* in the simulator's order; empty if not asked for */
    float *o, *lse;        /* as attention_simulate() gives them, owned; NULL from a
                              recording */
};

/* Frees what it owns; *x is all zeros then. */
void observation_free(struct observation *x);

#ifdef __cplusplus
}
#endif

#endif
