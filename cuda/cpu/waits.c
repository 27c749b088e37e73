/* What the threads of a block wait for: who may go on when all lanes of a warp wait, or all
 * warps, and what is wrong if nobody may. */
#include <stdio.h>

#include "core/status.h"
#include "cuda/cpu/fibers.h"

static const char *text_of(const struct waiting *waiting)
{
    static __thread char text[256];
    if (waiting->wait == DONE)
        return "has ended";
    snprintf(text, sizeof text, "waits at %s at %s:%d",
             waiting->wait == AT_BARRIER        ? "__syncthreads()"
             : waiting->wait == AT_WARP_BARRIER ? "__syncwarp()"
                                                : "a shuffle or vote",
             cpu_path(waiting->file), waiting->line);
    return text;
}

/* Do two lanes of a warp wait for the same lanes, in the same way? */
static bool alike(const struct waiting *a, const struct waiting *b)
{
    return a->wait == b->wait && a->mask == b->mask && a->butterfly == b->butterfly;
}

static bool waits_for_lanes(const struct waiting *waiting)
{
    return waiting->wait == AT_WARP_BARRIER || waiting->wait == AT_EXCHANGE ||
           waiting->wait == AT_BUTTERFLY;
}

/* Nobody of the warp can go on: one lane waits for another that does something else. */
static void stop_stuck(const struct fiber *warp, int lanes, int lane)
{
    const struct waiting *waiting = &warp[lane].waiting;
    cpu_now.thread = warp[lane].index;
    if (!(waiting->mask >> lane & 1))
        cpu_stop(waiting->file, waiting->line,
                 "waits for the lanes 0x%x of its warp, itself not one", waiting->mask);
    for (int other = 0; other < CPU_WARP; other++) {
        if (!(waiting->mask >> other & 1))
            continue;
        if (other >= lanes)
            cpu_stop(waiting->file, waiting->line,
                     "waits for lane %d of its warp, which does not exist", other);
        if (!alike(&warp[other].waiting, waiting))
            cpu_stop(waiting->file, waiting->line,
                     "waits for the lanes 0x%x of its warp, but lane %d %s", waiting->mask,
                     other, text_of(&warp[other].waiting));
    }
    cpu_stop(waiting->file, waiting->line, "waits for the lanes 0x%x of its warp",
             waiting->mask);
}

/* All lanes that the lane waits for wait with it. */
static bool group_complete(const struct threads *threads, int lane)
{
    const struct waiting *waiting = &threads->warp[lane].waiting;
    if (waiting->mask & threads->ready)
        return false;
    for (int other = 0; other < CPU_WARP; other++)
        if (waiting->mask >> other & 1 &&
            (other >= threads->lanes || !alike(&threads->warp[other].waiting, waiting)))
            return false;
    return waiting->mask >> lane & 1;
}

static void pass_values(const struct threads *threads, unsigned mask)
{
    for (int lane = 0; lane < CPU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        cpu_now.passed[lane] = threads->passing[lane];
        cpu_now.passed_mask[lane] = mask;
    }
}

/* The lanes of a complete group go on. An exchange orders no accesses to memory. */
static void release_group(struct threads *threads, const struct waiting *waiting)
{
    struct worker *worker = cpu_worker;
    threads->ready |= waiting->mask;
    if (waiting->wait == AT_BUTTERFLY) {
        waiting->butterfly->combine(cpu_now.met);
        worker->counts.exchanges += waiting->butterfly->shuffles;
    } else if (waiting->wait == AT_EXCHANGE) {
        pass_values(threads, waiting->mask);
        worker->counts.exchanges++;
    } else {
        worker->counts.warp_barriers++;
        cpu_shared_stretch(worker);
    }
}

/* Says of each fiber what threads->waiting, or that of its warp, says of several. */
static void tell_fibers(struct fiber *first, int count, const struct waiting *waiting)
{
    for (int n = 0; n < count; n++)
        first[n].waiting = *waiting;
}

/* Lanes that do not all wait for the same. */
static bool release_some(struct threads *threads)
{
    const struct fiber *warp = threads->warp;
    int stuck = -1;
    for (int lane = 0; lane < threads->lanes; lane++)
        if (warp[lane].waiting.wait == PAUSED)
            threads->ready |= 1u << lane;
    for (int lane = 0; lane < threads->lanes; lane++) {
        if (threads->ready >> lane & 1 || !waits_for_lanes(&warp[lane].waiting))
            continue;
        if (group_complete(threads, lane))
            release_group(threads, &warp[lane].waiting);
        else
            stuck = lane;
    }
    if (threads->ready == 0 && stuck >= 0)
        stop_stuck(warp, threads->lanes, stuck);
    return threads->ready != 0;
}

bool cpu_release_warp(struct threads *threads)
{
    const struct waiting *waiting = &threads->waiting;
    struct waiting *of_warp = &threads->of_warp[cpu_now.warp];
    if (threads->alike == threads->lanes) {
        if (waiting->mask == 0xffffffff && threads->lanes == CPU_WARP) {
            release_group(threads, waiting);
            return true;
        }
        if (waiting->wait == AT_BARRIER || waiting->wait == DONE) {
            *of_warp = *waiting;
            return false;
        }
    }
    tell_fibers(threads->warp + threads->lanes - threads->alike, threads->alike, waiting);
    of_warp->wait = PAUSED;
    return release_some(threads);
}

/* The same where warps do not all wait at one barrier, or have ended. */
static bool pass_mixed(struct fiber *fibers, int count)
{
    const struct fiber *first = NULL, *other = NULL;
    for (int n = 0; n < count; n++) {
        if (fibers[n].waiting.wait == DONE)
            other = &fibers[n];
        else if (!first)
            first = &fibers[n];
    }
    if (!first)
        return false;
    const struct waiting *waiting = &first->waiting;
    for (int n = 0; n < count && !other; n++)
        if (fibers[n].waiting.line != waiting->line || fibers[n].waiting.file != waiting->file)
            other = &fibers[n];
    cpu_now.thread = first->index;
    if (other)
        cpu_stop(waiting->file, waiting->line,
                 "waits at __syncthreads() for all threads of the block, but thread (%u, %u, "
                 "%u) %s",
                 other->index.x, other->index.y, other->index.z, text_of(&other->waiting));
    return true;
}

bool cpu_pass_barrier(struct threads *threads, int count)
{
    const struct waiting *all = threads->of_warp;
    const int warps = (count + CPU_WARP - 1) / CPU_WARP;
    bool pass = all[0].wait == AT_BARRIER, same = all[0].wait != PAUSED;
    for (int warp = 1; warp < warps; warp++)
        same &= all[warp].wait == all[0].wait && all[warp].line == all[0].line &&
                all[warp].file == all[0].file;
    if (!same) {
        for (int warp = 0; warp < warps; warp++) {
            const int first = warp * CPU_WARP, left = count - first;
            if (all[warp].wait != PAUSED)
                tell_fibers(&threads->fiber[first], left < CPU_WARP ? left : CPU_WARP,
                            &all[warp]);
        }
        pass = pass_mixed(threads->fiber, count);
    }
    if (pass) {
        cpu_worker->counts.barriers += warps;
        cpu_shared_barrier(cpu_worker);
    }
    return pass;
}
