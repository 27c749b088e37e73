/* What the threads of a block wait for: who may go on when all lanes of a warp wait, or all
 * warps, and what is wrong if nobody may. */
#include <stdio.h>

#include "core/status.h"
#include "cuda/cpu/fibers.h"

static const char *text_of(const struct cpu_waiting *waiting)
{
    static __thread char text[256];
    if (cpu_wait_of(waiting) == CPU_DONE)
        return "has ended";
    snprintf(text, sizeof text, "waits at %s at %s:%d",
             cpu_wait_of(waiting) == CPU_AT_BARRIER        ? "__syncthreads()"
             : cpu_wait_of(waiting) == CPU_AT_WARP_BARRIER ? "__syncwarp()"
                                                           : "a shuffle or vote",
             cpu_path(waiting->file), cpu_line_of(waiting));
    return text;
}

/* Do two lanes of a warp wait for the same lanes, in the same way? */
static bool alike(const struct cpu_waiting *a, const struct cpu_waiting *b)
{
    return cpu_wait_of(a) == cpu_wait_of(b) && a->mask == b->mask &&
           a->butterfly == b->butterfly;
}

static bool waits_for_lanes(const struct cpu_waiting *waiting)
{
    const enum cpu_wait wait = cpu_wait_of(waiting);
    return wait == CPU_AT_WARP_BARRIER || wait == CPU_AT_EXCHANGE || wait == CPU_AT_BUTTERFLY;
}

/* Nobody of the warp can go on: one lane waits for another that does something else. */
static void stop_stuck(struct cpu_fiber *warp, int lanes, int lane)
{
    const struct cpu_waiting *waiting = &warp[lane].waiting;
    cpu_now.running = &warp[lane];
    if (!(waiting->mask >> lane & 1))
        cpu_stop(waiting->file, cpu_line_of(waiting),
                 "waits for the lanes 0x%x of its warp, itself not one", waiting->mask);
    for (int other = 0; other < CPU_WARP; other++) {
        if (!(waiting->mask >> other & 1))
            continue;
        if (other >= lanes)
            cpu_stop(waiting->file, cpu_line_of(waiting),
                     "waits for lane %d of its warp, which does not exist", other);
        if (!alike(&warp[other].waiting, waiting))
            cpu_stop(waiting->file, cpu_line_of(waiting),
                     "waits for the lanes 0x%x of its warp, but lane %d %s", waiting->mask,
                     other, text_of(&warp[other].waiting));
    }
    cpu_stop(waiting->file, cpu_line_of(waiting), "waits for the lanes 0x%x of its warp",
             waiting->mask);
}

/* All lanes that the lane waits for wait with it. */
static bool group_complete(const struct threads *threads, int lane)
{
    const struct cpu_waiting *waiting = &threads->warp[lane].waiting;
    if (waiting->mask & threads->ready)
        return false;
    for (int other = 0; other < CPU_WARP; other++)
        if (waiting->mask >> other & 1 &&
            (other >= threads->lanes || !alike(&threads->warp[other].waiting, waiting)))
            return false;
    return waiting->mask >> lane & 1;
}

static void pass_values(unsigned mask)
{
    for (int lane = 0; lane < CPU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        cpu_now.passed[lane] = cpu_now.passing[lane];
        cpu_now.passed_mask[lane] = mask;
    }
}

/* The lanes of a complete group go on. An exchange orders no accesses to memory. */
static void release_group(struct threads *threads, const struct cpu_waiting *waiting)
{
    struct worker *worker = cpu_worker;
    threads->ready |= waiting->mask;
    if (cpu_wait_of(waiting) == CPU_AT_BUTTERFLY) {
        waiting->butterfly->combine(cpu_now.met);
        worker->counts.exchanges += waiting->butterfly->shuffles;
    } else if (cpu_wait_of(waiting) == CPU_AT_EXCHANGE) {
        pass_values(waiting->mask);
        worker->counts.exchanges++;
    } else {
        worker->counts.warp_barriers++;
        cpu_shared_stretch();
    }
}

/* Says of each fiber what cpu_now.waiting, or that of its warp, says of several. */
static void tell_fibers(struct cpu_fiber *first, int count, const struct cpu_waiting *waiting)
{
    for (int n = 0; n < count; n++)
        first[n].waiting = *waiting;
}

/* Lanes that do not all wait for the same. */
static bool release_some(struct threads *threads)
{
    struct cpu_fiber *warp = threads->warp;
    int stuck = -1;
    for (int lane = 0; lane < threads->lanes; lane++)
        if (cpu_wait_of(&warp[lane].waiting) == CPU_PAUSED)
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
    const struct cpu_waiting *waiting = &cpu_now.waiting;
    struct cpu_waiting *of_warp = &threads->of_warp[cpu_now.warp];
    if (cpu_now.alike == 0) {
        if (waiting->mask == 0xffffffff && threads->lanes == CPU_WARP) {
            release_group(threads, waiting);
            return true;
        }
        if (cpu_wait_of(waiting) == CPU_AT_BARRIER || cpu_wait_of(waiting) == CPU_DONE) {
            *of_warp = *waiting;
            return false;
        }
    }
    tell_fibers(threads->warp + cpu_now.alike, threads->lanes - cpu_now.alike, waiting);
    of_warp->what = CPU_PAUSED;
    return release_some(threads);
}

const struct cpu_waiting *cpu_waiting_of(const struct threads *threads, int lane)
{
    return lane < cpu_now.alike ? &threads->warp[lane].waiting : &cpu_now.waiting;
}

/* The same where warps do not all wait at one barrier, or have ended. */
static bool pass_mixed(struct threads *threads)
{
    struct cpu_fiber *first = NULL, *other = NULL;
    for (int n = 0; n < threads->count; n++) {
        struct cpu_fiber *fiber = cpu_fiber_of(threads, n);
        if (fiber->waiting.what == CPU_DONE)
            other = fiber;
        else if (!first)
            first = fiber;
    }
    if (!first)
        return false;
    const struct cpu_waiting *waiting = &first->waiting;
    for (int n = 0; n < threads->count && !other; n++) {
        struct cpu_fiber *fiber = cpu_fiber_of(threads, n);
        if (fiber->waiting.what != waiting->what || fiber->waiting.file != waiting->file)
            other = fiber;
    }
    cpu_now.running = first;
    if (other)
        cpu_stop(waiting->file, cpu_line_of(waiting),
                 "waits at __syncthreads() for all threads of the block, but thread (%u, %u, "
                 "%u) %s",
                 other->index.x, other->index.y, other->index.z, text_of(&other->waiting));
    return true;
}

bool cpu_pass_barrier(struct threads *threads)
{
    const struct cpu_waiting *all = threads->of_warp;
    const int warps = (threads->count + CPU_WARP - 1) / CPU_WARP;
    bool pass = cpu_wait_of(&all[0]) == CPU_AT_BARRIER, same = all[0].what != CPU_PAUSED;
    for (int warp = 1; warp < warps; warp++)
        same &= all[warp].what == all[0].what && all[warp].file == all[0].file;
    if (!same) {
        for (int warp = 0; warp < warps; warp++)
            if (all[warp].what != CPU_PAUSED)
                tell_fibers(cpu_first_lane(threads, warp), cpu_lanes_of(threads, warp),
                            &all[warp]);
        pass = pass_mixed(threads);
    }
    if (pass) {
        cpu_worker->counts.barriers += warps;
        cpu_shared_barrier();
    }
    return pass;
}
