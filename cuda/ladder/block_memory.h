/* Shared memory of a block that the copy engine fills: Qi, and a ring each for K and V.
 *
 * Interface:
 *   block_shape<D, GROUPS, BC, PLACES>  of a block with 64 GROUPS queries and tiles of BC keys;
 *                                       Br, sizes in bytes
 *   memory_at<X>(shared)                where things are
 *   memory_init(memory, warps)          one thread; warps: how many release a tile
 *   queries_load(memory, w, at)         one thread; arrives at memory.Q_full
 *   keys_load(memory, t, w, at, j)      one thread: Kj and Vj, in the turn t, which counts on
 *
 *     | Qi: GROUPS boxes of 64 rows | K: PLACES boxes of BC rows | V: the same | barriers |
 *     barriers: K's ring, V's ring, Q_full
 */
#ifndef FLASHLAB_CUDA_LADDER_BLOCK_MEMORY_H
#define FLASHLAB_CUDA_LADDER_BLOCK_MEMORY_H

#include "cuda/ladder/ldmatrix.h"
#include "cuda/ladder/place.h"
#include "cuda/ladder/ring.h"
#include "cuda/ladder/warpgroup.h"

/* What later steps turn on. */
struct plain_loop {
    static constexpr int SOFTWARE = 0, SLACK = 0;
    static constexpr bool Q_STAYS = false;
};

template <int D_, int GROUPS_, int BC_, int PLACES_> struct block_shape : plain_loop {
    static constexpr int D = D_, GROUPS = GROUPS_, Bc = BC_, PLACES = PLACES_,
                         Br = WARPGROUP_ROWS * GROUPS, Q_BYTES = 2 * D * Br,
                         GROUP_BYTES = 2 * D * WARPGROUP_ROWS, TILE_BYTES = 2 * D * Bc,
                         TILES_BYTES = Q_BYTES + 2 * PLACES * TILE_BYTES,
                         SHARED = TILES_BYTES + BARRIER_BYTES * (4 * PLACES + 1);
};

template <class X> struct block_memory {
    uint32_t Q, Q_full;
    struct ring<X::PLACES, X::TILE_BYTES> K, V;
};

template <class X> __device__ inline struct block_memory<X> memory_at(const char *shared) {
    const uint32_t Q = shared_address(shared), K = Q + X::Q_BYTES,
                   V = K + X::PLACES * X::TILE_BYTES, barriers = Q + X::TILES_BYTES;
    constexpr int RING_BYTES = BARRIER_BYTES * 2 * X::PLACES;
    return {Q, barriers + 2 * RING_BYTES, {K, barriers}, {V, barriers + RING_BYTES}};
}

template <class X>
__device__ inline void memory_init(const struct block_memory<X> &s, int warps)
{
    mbarrier_init(s.Q_full, 1);
    ring_init(s.K, warps);
    ring_init(s.V, warps);
    mbarrier_init_done();
}

template <class X>
__device__ inline void queries_load(const struct block_memory<X> &s, const struct tma_work &w,
                                    const struct place &at)
{
    mbarrier_expect(s.Q_full, X::Q_BYTES);
    for (int g = 0; g < X::GROUPS; g++)
        tma_load(s.Q + X::GROUP_BYTES * g, &w.Q, s.Q_full, at.row + WARPGROUP_ROWS * g,
                 at.head_q, at.batch);
}

template <class X>
__device__ inline void keys_load(const struct block_memory<X> &s, struct turn &t,
                                 const struct tma_work &w, const struct place &at, int j)
{
    ring_fill(s.K, t, &w.K, j * X::Bc, at.head_kv, at.batch);
    ring_fill(s.V, t, &w.V, j * X::Bc, at.head_kv, at.batch);
    turn_next<X::PLACES>(t);
}

#endif
