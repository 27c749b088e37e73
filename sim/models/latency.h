/* Hiding latency: what a unit reaches when few or many operations are in flight.
 *
 * Interface:
 *   const struct latency_unit fma = {.latency = 4, .interval = 1};
 *   latency_in_flight_needed(&fma)          4: operations that keep it busy
 *   latency_rate(&fma, 2)                   0.5 operations a unit of time
 *   latency_simulate(&fma, &warps)          the same, by playing it through to the end
 *
 * Little's law: operations in flight = rate * latency; and the unit begins no more than one in
 * each interval. Times are whole numbers of whatever unit the caller chooses.
 * Source: Little, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9
 * (1961).
 */
#ifndef FLASHLAB_MODELS_LATENCY_H
#define FLASHLAB_MODELS_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct latency_unit {
    int64_t latency;  /* from an operation's beginning to its result; at least 1 */
    int64_t interval; /* from one operation's beginning to the next one's; at least 1 */
};

/* Operations in flight that suffice to begin one in each interval. */
int64_t latency_in_flight_needed(const struct latency_unit *unit);

/* Operations a unit of time, with so many in flight all the time. */
double latency_rate(const struct latency_unit *unit, int64_t in_flight);

enum { LATENCY_MOST_WARPS = 64, LATENCY_MOST_INDEPENDENT = 16 };

struct latency_warps {
    int warps;       /* 1 to LATENCY_MOST_WARPS */
    int independent; /* operations of a warp in flight, 1 to LATENCY_MOST_INDEPENDENT */
    bool in_rounds;  /* the next ones wait for all of them; or each for the one that it needs */
    /* Who begins next: the first of the warps that are ready, or the longest ready. */
    bool oldest_first;
    int64_t operations; /* of each warp: a multiple of independent */
};

/* Operations a unit of time, from the first one's beginning to the last one's result, when
 * each warp begins its own in order. */
double latency_simulate(const struct latency_unit *unit, const struct latency_warps *warps);

#ifdef __cplusplus
}
#endif

#endif
