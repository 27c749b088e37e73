/* The loop over a tile of queries' keys in which a warpgroup's softmax of one tile overlaps its
 * products with the tile before: the idea of step 10.
 *
 * Interface: X as in warpgroup_tile.h.
 *   struct rows_state<X>           O, m and l of a warpgroup's queries
 *   attend<T, X>(state, P, s, t, Q, a, first, Tc)  all Tc tiles, at least 1, but for the last
 *                                                  product; Q as scores() takes it, not read
 *                                                  after it
 *   attend_end<T, X>(state, P, s, t)               the last product; t counts on
 *
 *     tensor cores   S0    | P0 V0  S1         | P1 V1  S2         | ...
 *     warpgroup         P0 | wait for S1   P1  | wait for S2   P2  | ...
 */
#ifndef FLASHLAB_CUDA_LADDER_OVERLAP_H
#define FLASHLAB_CUDA_LADDER_OVERLAP_H

#include "cuda/ladder/block_memory.h"
#include "cuda/ladder/warpgroup_tile.h"

template <class X> struct rows_state {
    float O[X::D / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
};

template <class T, class X, class QUERIES>
__device__ inline void attend(struct rows_state<X> &r, uint32_t (&P)[X::Bc / 16][4],
                              const struct block_memory<X> &s, struct turn &t, QUERIES &Q,
                              const struct attention &a, int first, int Tc)
{
    const float c = exponent_scale(a.scale);
    float S[X::Bc / 8][4], factor[2];
    uint32_t K = ring_await(s.K, t);
    wgmma_begin(S);
    scores<T, X>(S, Q, K);
    wgmma_wait<0>(S);
    ring_release(s.K, t);
    softmax_tile<X>(factor, S, r.m, r.l, a, first, 0, c);
    scores_pack<T>(P, S);
    for (int j = 1; j < Tc; j++) {
        const struct turn before = t;
        turn_next<X::PLACES>(t);
        const uint32_t V = ring_await(s.V, before);
        K = ring_await(s.K, t);
        wgmma_begin(S, r.O, P);
        scores<T, X>(S, Q, K);
        add_product<T, X>(r.O, P, V);
        wgmma_wait<1>(S);
        ring_release(s.K, t);
        const bool moved = softmax_tile<X>(factor, S, r.m, r.l, a, first, j, c);
        wgmma_wait<0>(r.O, P);
        ring_release(s.V, before);
        if (moved)
            rows_scale(r.O, factor);
        scores_pack<T>(P, S);
    }
}

template <class T, class X>
__device__ inline void attend_end(struct rows_state<X> &r, uint32_t (&P)[X::Bc / 16][4],
                                  const struct block_memory<X> &s, struct turn &t)
{
    const uint32_t V = ring_await(s.V, t);
    wgmma_begin(r.O, P);
    add_product<T, X>(r.O, P, V);
    wgmma_wait<0>(r.O, P);
    ring_release(s.V, t);
    turn_next<X::PLACES>(t);
}

/* Gives back the tiles from the one numbered done on, of Tc, that this warpgroup does not need.
 */
template <class X>
__device__ inline void pass_over(const struct block_memory<X> &s, struct turn &t, int done,
                                 int Tc)
{
    for (int j = done; j < Tc; j++) {
        ring_await(s.K, t);
        ring_release(s.K, t);
        ring_await(s.V, t);
        ring_release(s.V, t);
        turn_next<X::PLACES>(t);
    }
}

#endif
