/* Rings of tiles in shared memory: one thread has the copy engine fill them in turn, warpgroups
 * use them in the same turn and give them back.
 *
 * Interface: a ring is PLACES tiles and two mbarriers a place.
 *   struct turn t = {};          the first tile; a thread counts for itself
 *   ring_fill(r, t, map, row, head, batch)   the producer: waits until the place is free
 *   ring_await(r, t)             a consumer: until the tile is there; its address
 *   ring_release(r, t)           a consumer's warp has done with it
 *   turn_next<PLACES>(t)
 *
 *     producer   fill 0   fill 1   wait for 0 to be released   fill 2 in place 0 ...
 *     consumers           await 0, use, release 0              await 1, ...
 *
 * In shared memory PLACES tiles of BYTES, at a multiple of 1024 bytes, and 2 PLACES barriers:
 *
 *     tiles      | 0 | 1 | ...         barriers   | full 0 | full 1 | ... | empty 0 | ...
 *
 * full completes a phase when the tile's bytes are there, empty when every consumer's warp has
 * released the place. A place's first fill waits for a phase of empty that never was: parity 1.
 */
#ifndef FLASHLAB_CUDA_LADDER_RING_H
#define FLASHLAB_CUDA_LADDER_RING_H

#include "cuda/ladder/lane.h"
#include "cuda/ladder/mbarrier.h"
#include "cuda/ladder/tma.h"

enum { BARRIER_BYTES = 8 };

struct turn {
    int place;
    uint32_t parity; /* of the phase in which the place is filled */
};

template <int PLACES> __device__ inline void turn_next(struct turn &t)
{
    t.place = t.place + 1 == PLACES ? 0 : t.place + 1;
    t.parity ^= t.place == 0;
}

/* Addresses in shared memory. */
template <int PLACES, int BYTES> struct ring {
    uint32_t tiles, barriers; /* full, then empty */
};

template <int PLACES, int BYTES>
__device__ inline void ring_init(const struct ring<PLACES, BYTES> &r, int consumer_warps)
{
    for (int i = 0; i < PLACES; i++) {
        mbarrier_init(r.barriers + BARRIER_BYTES * i, 1);
        mbarrier_init(r.barriers + BARRIER_BYTES * (PLACES + i), consumer_warps);
    }
}

template <int PLACES, int BYTES>
__device__ inline void ring_fill(const struct ring<PLACES, BYTES> &r, const struct turn &t,
                                 const CUtensorMap *map, int row, int head, int batch)
{
    const uint32_t full = r.barriers + BARRIER_BYTES * t.place;
    mbarrier_wait(full + BARRIER_BYTES * PLACES, t.parity ^ 1);
    mbarrier_expect(full, BYTES);
    tma_load(r.tiles + BYTES * t.place, map, full, row, head, batch);
}

template <int PLACES, int BYTES>
__device__ inline uint32_t ring_await(const struct ring<PLACES, BYTES> &r, const struct turn &t)
{
    mbarrier_wait(r.barriers + BARRIER_BYTES * t.place, t.parity);
    return r.tiles + BYTES * t.place;
}

template <int PLACES, int BYTES>
__device__ inline void ring_release(const struct ring<PLACES, BYTES> &r, const struct turn &t)
{
    __syncwarp();
    if (lane_number() == 0)
        mbarrier_arrive(r.barriers + BARRIER_BYTES * (PLACES + t.place));
}

#endif
