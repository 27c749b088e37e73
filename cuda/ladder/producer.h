/* Blocks of one warpgroup that produces and of others that consume: the idea of step 08.
 *
 * Interface:
 *   producer_shape<D, CONSUMERS, BC, PLACES, LESS, MORE>   see block_memory.h; LESS and MORE:
 *                                  registers a thread of the producer and of the consumers
 *   produce<X>(s, w, at, Tc)       one thread of the producer: Qi, then Kj and Vj of all tiles
 *
 * 65536 registers of an SM are given out in equal parts when a block starts: of 3 warpgroups
 * each thread gets 168. The producer gives back what it does not need, and the consumers wait
 * for it:
 *
 *     128 LESS + 128 CONSUMERS MORE <= 65536       24 and 240: 3072 + 61440 = 64512
 */
#ifndef FLASHLAB_CUDA_LADDER_PRODUCER_H
#define FLASHLAB_CUDA_LADDER_PRODUCER_H

#include "cuda/ladder/block_memory.h"

template <int D, int CONSUMERS, int BC, int PLACES, int LESS_, int MORE_>
struct producer_shape : block_shape<D, CONSUMERS, BC, PLACES> {
    static constexpr int THREADS = WARPGROUP_THREADS * (1 + CONSUMERS), LESS = LESS_,
                         MORE = MORE_;
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
