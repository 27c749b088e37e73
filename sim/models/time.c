#include "models/time.h"

#include <math.h>

const double time_launch_seconds = 1.7e-6;

/* Of the peak of the tensor cores, 989 TFLOP/s on an H200: products of 8192^3 by cuBLAS reach
 * 796 in a short run, 693 after a hundred (cuda/results/h200_rates.csv). Power is short. */
static const double SUSTAINED = 0.8;

/* How much longer the work of a block takes when no other block is on its SM. */
static const double ALONE = 1.75;

const char *time_unit_name(enum time_unit unit)
{
    static const char *const names[TIME_UNITS] = {"tensor", "issue", "exp2", "L1", "L2", "HBM"};
    return names[unit];
}

double time_rate(const struct machine *machine, enum time_unit unit, enum roofline_unit tensor)
{
    switch (unit) {
    case TIME_TENSOR:
        return SUSTAINED * roofline_peak(machine, tensor);
    case TIME_ISSUE: /* the fp32 units take what is issued, and an FMA is two FLOPs */
        return machine->fp32_flops / 2;
    case TIME_EXP2:
        return machine->exp2_f32_per_second;
    case TIME_L1: /* 128 bytes a clock: 32 banks of 4 */
        return machine->sms * machine->clock_hz;
    case TIME_L2:
        return roofline_bandwidth(machine, ROOFLINE_L2);
    default:
        return roofline_bandwidth(machine, ROOFLINE_HBM);
    }
}

/* How much later the last SM is done than the average one, if all blocks start at once. */
static double imbalance(const struct machine *machine, const struct time_work *work)
{
    const double share = work->blocks / machine->sms;
    return share > work->blocks_per_sm ? 1 : ceil(share) / share;
}

/* Rounds of blocks that wait for their own latencies, on all SMs. */
static double alone(const struct machine *machine, const struct time_work *work,
                    double sm_seconds)
{
    const double slots = (double)machine->sms * work->blocks_per_sm;
    const double step =
        work->step_clocks / machine->clock_hz + ALONE * sm_seconds * machine->sms / work->steps;
    return step * fmax(work->most_steps, work->steps / slots);
}

struct time_estimate time_of(const struct machine *machine, const struct time_work *work)
{
    struct time_estimate t = {0};
    double sm_sum = 0, sm_most = 0;
    for (int i = 0; i < TIME_UNITS; i++) {
        const double rate = time_rate(machine, (enum time_unit)i, work->tensor);
        t.unit[i] = rate > 0 ? work->amount[i] / rate : 0;
        if (t.unit[i] > t.unit[t.longest])
            t.longest = (enum time_unit)i;
        if (i < TIME_L2) {
            sm_sum += t.unit[i];
            sm_most = fmax(sm_most, t.unit[i]);
        }
    }
    const double uneven = imbalance(machine, work);
    const double memory = fmax(t.unit[TIME_L2], t.unit[TIME_HBM]);
    t.overlapped = fmax(sm_most * uneven, memory);
    t.in_turn = fmax(sm_sum * uneven, memory);
    if (work->step_clocks > 0 && machine->clock_hz > 0)
        t.alone = alone(machine, work, sm_sum);
    t.estimate = work->overlap == OVERLAP_FULL   ? t.overlapped
                 : work->overlap == OVERLAP_NONE ? t.in_turn
                                                 : (t.overlapped + t.in_turn) / 2;
    t.estimate = fmax(t.estimate, t.alone) + time_launch_seconds;
    return t;
}
