/* Blocks of one warpgroup that produces and of others that consume: the idea of step 08.
 *
 * Interface:
 *   producer_shape<D, CONSUMERS, BC, PLACES, LESS, MORE>   see block_memory.h; LESS and MORE:
 *                                  registers a thread of the producer and of the consumers
 *   produce<X>(s, w, at, Tc)       one thread of the producer: Qi, then Kj and Vj of all tiles
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

#endif
