/* What the threads of a block wait for: who may go on when all lanes of a warp wait, or all
 * warps, and what is wrong if nobody may. */
#include <stdio.h>

#include "core/status.h"
#include "cuda/cpu/fibers.h"

static const char *text_of(const struct fiber *fiber)
{
    static __thread char text[256];
    if (fiber->wait == DONE)
        return "has ended";
    snprintf(text, sizeof text, "waits at %s at %s:%d",
             fiber->wait == AT_BARRIER        ? "__syncthreads()"
             : fiber->wait == AT_WARP_BARRIER ? "__syncwarp()"
                                              : "a shuffle or vote",
             cpu_path(fiber->file), fiber->line);
    return text;
}

/* Do two lanes of a warp wait for the same lanes, in the same way? */
static inline bool alike(const struct fiber *a, const struct fiber *b)
{
    return a->wait == b->wait && a->mask == b->mask && a->reduction == b->reduction;
}

/* Nobody of the warp can go on: one lane waits for another that does something else. */
static void stop_stuck(const struct fiber *warp, int lanes, int lane)
{
    const struct fiber *fiber = &warp[lane];
    cpu_now.thread = fiber->index;
    if (!(fiber->mask >> lane & 1))
        cpu_stop(fiber->file, fiber->line,
                 "waits for the lanes 0x%x of its warp, itself not one", fiber->mask);
    for (int other = 0; other < CPU_WARP; other++) {
        if (!(fiber->mask >> other & 1))
            continue;
        if (other >= lanes)
            cpu_stop(fiber->file, fiber->line,
                     "waits for lane %d of its warp, which does not exist", other);
        if (!alike(&warp[other], fiber))
            cpu_stop(fiber->file, fiber->line,
                     "waits for the lanes 0x%x of its warp, but lane %d %s", fiber->mask, other,
                     text_of(&warp[other]));
    }
    cpu_stop(fiber->file, fiber->line, "waits for the lanes 0x%x of its warp", fiber->mask);
}

/* All lanes that the lane waits for wait with it. */
static bool group_complete(const struct threads *threads, int lane)
{
    const struct fiber *warp = threads->warp, *fiber = &warp[lane];
    if (fiber->mask & threads->ready)
        return false;
    for (int other = 0; other < CPU_WARP; other++)
        if (fiber->mask >> other & 1 &&
            (other >= threads->lanes || !alike(&warp[other], fiber)))
            return false;
    return fiber->mask >> lane & 1;
}

/* The lanes of a complete group go on, those that wait with the fiber. */
static void release_group(struct threads *threads, const struct fiber *fiber)
{
    struct worker *worker = cpu_worker;
    const unsigned mask = fiber->mask;
    threads->ready |= mask;
    if (fiber->wait == AT_WARP_BARRIER) {
        worker->counts.warp_barriers++;
        cpu_shared_stretch(worker);
        return;
    }
    for (int lane = 0; lane < CPU_WARP; lane++) { /* orders no accesses to memory */
        const bool member = mask >> lane & 1;
        cpu_now.passed[lane] = member ? threads->passing[lane] : cpu_now.passed[lane];
        cpu_now.passed_mask[lane] = member ? mask : cpu_now.passed_mask[lane];
    }
    if (fiber->reduction)
        fiber->reduction->combine(cpu_now.passed);
    worker->counts.exchanges += fiber->reduction ? fiber->reduction->shuffles : 1;
}

/* What most warps do: all lanes wait for all lanes, or for the block. */
static bool all_together(const struct threads *threads)
{
    const struct fiber *warp = threads->warp;
    bool together = threads->lanes == CPU_WARP && warp[0].mask == 0xffffffff;
    for (int lane = 1; lane < CPU_WARP; lane++)
        together &= alike(&warp[lane], &warp[0]);
    return together && (warp[0].wait == AT_WARP_BARRIER || warp[0].wait == AT_EXCHANGE);
}

bool cpu_release_warp(struct threads *threads)
{
    const struct fiber *warp = threads->warp;
    int stuck = -1;
    if (all_together(threads)) {
        release_group(threads, &warp[0]);
        return true;
    }
    for (int lane = 0; lane < threads->lanes; lane++)
        if (warp[lane].wait == PAUSED)
            threads->ready |= 1u << lane;
    for (int lane = 0; lane < threads->lanes; lane++) {
        const enum wait wait = warp[lane].wait;
        if (threads->ready >> lane & 1 || (wait != AT_WARP_BARRIER && wait != AT_EXCHANGE))
            continue;
        if (group_complete(threads, lane))
            release_group(threads, &warp[lane]);
        else
            stuck = lane;
    }
    if (threads->ready == 0 && stuck >= 0)
        stop_stuck(warp, threads->lanes, stuck);
    return threads->ready != 0;
}

bool cpu_pass_barrier(const struct fiber *fibers, int threads)
{
    const struct fiber *first = NULL, *ended = NULL;
    for (int n = 0; n < threads; n++) {
        const struct fiber *fiber = &fibers[n];
        if (fiber->wait == DONE)
            ended = fiber;
        else if (!first)
            first = fiber;
    }
    if (!first)
        return false;
    cpu_now.thread = first->index;
    for (int n = 0; n < threads; n++) {
        const struct fiber *fiber = &fibers[n];
        if (ended || fiber->line != first->line || fiber->file != first->file) {
            const struct fiber *other = ended ? ended : fiber;
            cpu_stop(first->file, first->line,
                     "waits at __syncthreads() for all threads of the block, but thread (%u, "
                     "%u, %u) %s",
                     other->index.x, other->index.y, other->index.z, text_of(other));
        }
    }
    cpu_worker->counts.barriers += (threads + CPU_WARP - 1) / CPU_WARP;
    cpu_shared_barrier(cpu_worker);
    return true;
}
