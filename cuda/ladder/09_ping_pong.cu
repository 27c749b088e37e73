/* Step 09: warpgroups take turns.
 *
 * Idea: FlashAttention-3's ping-pong. Two warpgroups of step 08 that happen to begin their
 * products together share the tensor cores, end together, and then both do their softmax while
 * the tensor cores wait. Here a warpgroup waits for its turn before it begins its products, and
 * passes the turn on once they have begun: then it is in its softmax while the other's run. The
 * products of a turn are P V of one tile and the scores of the next, so that there is one
 * softmax between two turns:
 *
 *     tensor cores   S0 of 0 | S0 of 1 | P0 V0, S1 of 0 | P0 V0, S1 of 1 | P1 V1, S2 of 0 ...
 *     warpgroup 0            | softmax of S0            |     softmax of S1      |
 *     warpgroup 1                      | softmax of S0                   | softmax of S1
 *
 * Predicted: the products' 0.60 ms at 1.7 GHz, if a softmax (some 750 clocks of a tile) fits
 * into the other's products (1024) and passing the turn costs nothing. It costs the time from
 * the end of one product to the beginning of the next, some 100 to 150 clocks of 1024:
 * 0.66 to 0.70 ms, 790 to 830 TFLOP/s, were there power for it; what cuBLAS gets from 700 W,
 * some 740, is the more likely bound. For d = 64 exp2 takes as long as the products, and three
 * warpgroups have two others' products for their softmax.
 * Measured: two warpgroups with tiles of 128 keys gain what FlashAttention-3 reports, 584
 * TFLOP/s, 1.05 times the same without turns. Three of step 08 do not: they have registers for
 * tiles of 80 keys only, as P and the next S are there together, and reach 613 TFLOP/s, 0.92
 * times step 08, with one softmax in the gaps of two others anyway. For d = 256, with two, 1.12
 * times step 08 and 1.02 times cuDNN; for d = 64 0.98 times step 08.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/producer.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/warpgroup_tile.h"

enum { PAIR_THREADS = 2 * WARPGROUP_THREADS };

/* A named barrier each for the groups' turns, beside those of output. A turn begins when the
 * group before has passed it on. */
template <class X> __device__ inline void turn_begin(int group)
{
    named_barrier_sync(1 + X::GROUPS + group, PAIR_THREADS);
}

template <class X> __device__ inline void turn_pass(int group)
{
    named_barrier_arrive(1 + X::GROUPS + (group + 1) % X::GROUPS, PAIR_THREADS);
}

template <class T, class X>
__device__ inline void consume(const struct tma_work &w, const struct place &at,
                               const struct block_memory<X> &s, int Tc, char *shared)
{
    constexpr int D = X::D, Bc = X::Bc;
    const struct attention &a = w.work.a;
    const int group = warpgroup_number() - 1;
    const int first = at.row + WARPGROUP_ROWS * group + 16 * (warp_number() % 4);
    const uint64_t Q = tile_columns(s.Q + X::GROUP_BYTES * group);
    const float c = exponent_scale(a.scale);
    float O[D / 8][4] = {}, S[Bc / 8][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {}, factor[2];
    uint32_t P[Bc / 16][4];
    struct turn t = {};

    mbarrier_wait(s.Q_full, 0);
    if (Tc > 0) {
        if (group == X::GROUPS - 1)
            turn_pass<X>(group); /* the first turn is that of group 0 */
        uint32_t K = ring_await(s.K, t);
        turn_begin<X>(group);
        wgmma_begin(S);
        scores<T, X>(S, Q, K);
        turn_pass<X>(group);
        wgmma_wait<0>(S);
        ring_release(s.K, t);
        softmax_tile<X>(factor, S, m, l, a, first, 0, c);
        scores_pack<T>(P, S);
        for (int j = 1; j < Tc; j++) {
            const struct turn before = t;
            turn_next<X::PLACES>(t);
            const uint32_t V = ring_await(s.V, before);
            K = ring_await(s.K, t);
            turn_begin<X>(group);
            wgmma_begin(S, O, P);
            add_product<T, X>(O, P, V);
            scores<T, X>(S, Q, K);
            turn_pass<X>(group);
            wgmma_wait<0>(S, O, P);
            ring_release(s.V, before);
            ring_release(s.K, t);
            factor[0] = factor[1] = 1;
            softmax_tile<X>(factor, S, m, l, a, first, j, c);
            rows_scale(O, factor); /* a branch over it was slower */
            scores_pack<T>(P, S);
        }
        const uint32_t V = ring_await(s.V, t);
        turn_begin<X>(group);
        wgmma_begin(O, P);
        add_product<T, X>(O, P, V);
        wgmma_wait<0>(O, P);
        if (group < X::GROUPS - 1)
            turn_pass<X>(group); /* after the last there is none */
    }
    named_barrier_sync(1 + group, WARPGROUP_THREADS); /* all have read Qi */
    output_store<T, X>(w, at, first, shared + X::GROUP_BYTES * group, O, m, l);
    output_wait();
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS, 1) void ping_pong_step(const __grid_constant__ struct tma_work w)
{
    extern __shared__ __align__(1024) char shared[];
    divide_roles<X>(w, shared, consume<T, X>);
}

/* The fastest of the shapes measured: docs/ladder.md. */
template <int D> struct chosen;
template <> struct chosen<64> : producer_shape<64, 3, 128, 2, 32, 160> {
};
template <> struct chosen<128> : producer_shape<128, 3, 80, 2, 32, 160> {
};
template <> struct chosen<256> : producer_shape<256, 2, 80, 2, 24, 240> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)ping_pong_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(ping_pong, "09_ping_pong", LONGEST_FIRST | COPY_ENGINE)
