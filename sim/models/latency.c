#include "models/latency.h"

#include <stddef.h>

#include "core/status.h"

int64_t latency_in_flight_needed(const struct latency_unit *unit)
{
    return (unit->latency + unit->interval - 1) / unit->interval;
}

double latency_rate(const struct latency_unit *unit, int64_t in_flight)
{
    const double most = 1.0 / (double)unit->interval;
    const double waiting = (double)in_flight / (double)unit->latency;
    return waiting < most ? waiting : most;
}

/* A warp: what it began last, and when the results of those came or will come. */
struct warp {
    int64_t begun; /* operations */
    int64_t ready; /* the earliest that the next one may begin */
    int64_t result[LATENCY_MOST_INDEPENDENT];
};

static void begin_operation(struct warp *w, int64_t now, const struct latency_unit *unit,
                            const struct latency_warps *warps)
{
    const int slot = (int)(w->begun % warps->independent);
    w->result[slot] = now + unit->latency;
    w->begun++;
    const int next = (slot + 1) % warps->independent;
    if (!warps->in_rounds)
        w->ready = w->begun < warps->independent ? now : w->result[next];
    else
        w->ready = next == 0 ? w->result[slot] : now;
}

/* The warp that begins next, from now on, or NULL when none has operations left. Oldest first:
 * all that are ready by now are alike. */
static struct warp *next_warp(struct warp *all, const struct latency_warps *warps, int64_t now)
{
    struct warp *best = NULL;
    for (int i = 0; i < warps->warps; i++) {
        if (all[i].begun == warps->operations)
            continue;
        if (!best ||
            (all[i].ready < best->ready && !(warps->oldest_first && best->ready <= now)))
            best = &all[i];
    }
    return best;
}

double latency_simulate(const struct latency_unit *unit, const struct latency_warps *warps)
{
    struct warp all[LATENCY_MOST_WARPS] = {0};
    struct warp *w;
    int64_t free = 0, end = 0;
    CHECK(warps->warps >= 1 && warps->warps <= LATENCY_MOST_WARPS, "%d warps", warps->warps);
    CHECK(warps->independent >= 1 && warps->independent <= LATENCY_MOST_INDEPENDENT,
          "%d independent operations", warps->independent);
    while ((w = next_warp(all, warps, free))) {
        const int64_t now = w->ready > free ? w->ready : free;
        begin_operation(w, now, unit, warps);
        free = now + unit->interval;
        end = now + unit->latency;
    }
    return (double)(warps->warps * warps->operations) / (double)end;
}
