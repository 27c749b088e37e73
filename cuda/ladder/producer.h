/* Blocks of one warpgroup that produces and of others that consume: the idea of step 08.
 *
 * Interface:
 *   producer_shape<D, CONSUMERS, BC, PLACES, LESS, MORE>   see block_memory.h; LESS and MORE:
 *                                  registers a thread of the producer and of the consumers
 *   produce<X>(s, w, at, Tc)       one thread of the producer: Qi, then Kj and Vj of all tiles
 *   divide_roles<X>(w, shared, consume)   a kernel: the block's first warpgroup produces, the
 *                                  others call consume(w, at, memory, Tc, shared)
 *
 * All threads of a block start with equally many registers, a multiple of 8: of the SM's 65536
 * each has 168 in a block of 3 warpgroups, 128 of 4, 96 of 5. The producer gives back what it
 * does not need; the consumers wait for what they take, for ever if it is more than that:
 *
 *     LESS + CONSUMERS MORE <= all warpgroups' at the start       24 + 2 * 240 = 3 * 168
 */
#ifndef FLASHLAB_CUDA_LADDER_PRODUCER_H
#define FLASHLAB_CUDA_LADDER_PRODUCER_H

#include "cuda/ladder/block_memory.h"

enum { SM_REGISTERS = 65536 };

template <int D, int CONSUMERS, int BC, int PLACES, int LESS_, int MORE_>
struct producer_shape : block_shape<D, CONSUMERS, BC, PLACES> {
    static constexpr int THREADS = WARPGROUP_THREADS * (1 + CONSUMERS), LESS = LESS_,
                         MORE = MORE_, START = SM_REGISTERS / THREADS / 8 * 8;
    static_assert(LESS + CONSUMERS * MORE <= (1 + CONSUMERS) * START, "or consumers hang");
};

template <class X>
__device__ inline void produce(const struct block_memory<X> &s, const struct tma_work &w,
                               const struct place &at, int Tc)
{
    struct turn t = {};
    queries_load(s, w, at);
    for (int j = 0; j < Tc; j++)
        keys_load(s, t, w, at, j);
}

template <class X, class CONSUME>
__device__ inline void divide_roles(const struct tma_work &w, char *shared, CONSUME consume)
{
    const struct block_memory<X> s = memory_at<X>(shared);
    const struct place at = place_longest_first(w.work);
    if (at.plane < 0)
        return;
    if (threadIdx.x == 0)
        memory_init(s, 4 * X::GROUPS);
    __syncthreads();                                        /* the mbarriers are there */
    const int Tc = visited_tiles(w.work.a, at.row / X::Br); /* causal: none past the diagonal */
    if (warpgroup_number() == 0) {
        warpgroup_registers_less<X::LESS>();
        if (threadIdx.x == 0)
            produce<X>(s, w, at, Tc);
    } else {
        warpgroup_registers_more<X::MORE>();
        consume(w, at, s, Tc, shared);
    }
}

#endif
