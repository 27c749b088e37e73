/* How long a launch takes: from what it asks of each unit, one after the other or all at once.
 *
 * Interface:
 *   struct time_work work = kernel_work_matmul_tiled(&shape, 64, machine);   or made by hand
 *   const struct time_estimate t = time_of(machine, &work);
 *   t.estimate, between t.overlapped and t.in_turn; t.unit[TIME_HBM]; t.longest
 *
 * The model:
 *   Each unit has a rate, and needs amount / rate if it never waits. With perfect overlap the
 *   launch takes as long as its busiest unit (overlapped). If the units of an SM take turns it
 *   takes the sum of theirs, while L2 and HBM work beside them (in_turn). Which of the two is
 *   nearer depends on how the kernel is written, see enum time_overlap.
 *   Neither holds where an SM has too few warps to hide latency: a block alone needs a number
 *   of clocks a step for what it waits for, and ALONE times its own work, since each of its
 *   warps has nobody to take its place (alone). The launch takes as many rounds of that as the
 *   resident blocks need.
 * docs/times.md says what of this was measured, what was fitted, and how it does against 258
 * recorded times.
 *
 * Source: the roofline's units taken apart, as in Williams et al. 2009, section "ceilings";
 * rounds of waiting warps: Hong and Kim 2009.
 */
#ifndef FLASHLAB_MODELS_TIME_H
#define FLASHLAB_MODELS_TIME_H

#include <stdint.h>

#include "core/machine.h"
#include "models/roofline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a launch needs, and in which amounts. */
enum time_unit {
    TIME_TENSOR, /* FLOPs of the tensor cores */
    TIME_ISSUE,  /* instructions of lanes: a fused multiply-add is one, so is an address */
    TIME_EXP2,   /* results of the special function units */
    TIME_L1,     /* passes of warps over shared memory and L1, 128 bytes each */
    TIME_L2,     /* bytes that the SMs ask for */
    TIME_HBM,    /* bytes between L2 and DRAM */
    TIME_UNITS,
};

enum time_overlap {
    OVERLAP_FULL, /* all at once: nothing but independent loads and stores */
    OVERLAP_NONE, /* in turn: few warps, in phases between barriers */
    OVERLAP_HALF, /* half-way: many warps an SM, or roles of their own for some */
};

struct time_work {
    const char *name;
    enum time_overlap overlap;
    double amount[TIME_UNITS];
    enum roofline_unit tensor; /* the type of TIME_TENSOR */
    double blocks;
    int blocks_per_sm;  /* resident at once, from 1 on */
    double steps;       /* of all blocks, one after the other in each */
    double most_steps;  /* of the block that has most */
    double step_clocks; /* that a block alone waits in a step; 0: not known, never alone */
};

/* In seconds. */
struct time_estimate {
    double unit[TIME_UNITS]; /* each unit for itself; 0 where its rate is not known */
    enum time_unit longest;  /* of these */
    double overlapped, in_turn, alone;
    double estimate; /* with the launch */
};

/* What a launch of nothing takes on an H200, as recorded: h200_counters.csv, 1.6 to 1.8 us. */
extern const double time_launch_seconds;

/* "tensor", "issue", "exp2", "L1", "L2", "HBM". */
const char *time_unit_name(enum time_unit unit);

/* A unit's rate, in its amounts a second; 0: not known. */
double time_rate(const struct machine *machine, enum time_unit unit, enum roofline_unit tensor);

struct time_estimate time_of(const struct machine *machine, const struct time_work *work);

#ifdef __cplusplus
}
#endif

#endif
