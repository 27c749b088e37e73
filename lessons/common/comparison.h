/* One run on the simulator held against the same run of the CUDA kernel, on a GPU, live or
 * recorded, or on the CPU: traffic to the sector, results and steps within rounding.
 *
 * Interface:
 *   struct comparison c;
 *   comparison_live(&c, &simulation, &plan, &error);                runs both
 *   comparison_recorded(&c, &simulation, &recording, &error);       runs the simulator only
 *   comparison_equal(&c);
 *   comparison_free(&c);
 */
#ifndef FLASHLAB_LESSONS_COMPARISON_H
#define FLASHLAB_LESSONS_COMPARISON_H

#include "common/gpu.h"
#include "common/gpu_recording.h"
#include "kernels/attention_forward.h"

/* Sectors by direction: read, written, reduced. */
struct compared_launch {
    char kernel[KERNEL_NAME_LENGTH];
    int64_t simulated[DIRECTION_COUNT], measured[DIRECTION_COUNT];
    bool equal;
};

/* The first step where both sides differ beyond tolerance. */
struct step_difference {
    bool found;
    struct step_record record; /* the simulator's, or the kernel's where the simulator has none;
                                  points into the comparison */
    const char *what;          /* "m", "l", "norm of O", "bytes read", "step", "missing", ... */
    int row;                   /* of the tile; -1: not of a row */
    double simulated, measured;
};

struct comparison {
    int launches; /* 0: the kernel's counters are not known; seen.uncounted says why */
    struct compared_launch launch[MAX_OBSERVED_LAUNCHES];
    int64_t predicted[DIRECTION_COUNT]; /* of the whole run, from the closed form */
    int64_t simulated[DIRECTION_COUNT], measured[DIRECTION_COUNT]; /* the sums */
    bool traffic_equal; /* predicted = simulated, and measured too if launches > 0 */

    int64_t steps_compared;      /* 0: the kernel's steps are not known */
    int64_t rows_compared;       /* of all steps: rows with m and l, a norm of O or both */
    double largest_difference;   /* of m, l and norms, as a share of the tolerance */
    struct step_difference step; /* the first beyond tolerance */

    double o_difference, lse_difference; /* as shares of the tolerance */
    bool results_equal;

    struct step_log simulated_steps; /* owned */
    struct observation seen;         /* owned */
};

/* Runs both sides; with plan->steps both trace. */
enum status comparison_live(struct comparison *c, struct simulation *simulation,
                            const struct gpu_plan *plan, struct error *error);

/* Runs the simulator on the recording's problem; *simulation gives the machine and is filled
 * with the rest. What the recording has seen moves into the comparison. */
enum status comparison_recorded(struct comparison *c, struct simulation *simulation,
                                struct gpu_recording *recording, struct error *error);

/* Traffic, steps and results, as far as they are known. */
bool comparison_equal(const struct comparison *c);

void comparison_free(struct comparison *c);

#endif
