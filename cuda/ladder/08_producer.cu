/* Step 08: a warpgroup that loads, and others that compute.
 *
 * Idea: in step 07 one thread of those that compute also loads: when the place for the next
 * tile is not free yet its warpgroup waits, so that no warpgroup gets more than a tile ahead of
 * the other, and a tile is fetched only when somebody comes by. Here a warpgroup of its own
 * does nothing but fill places as they become free. It hands its registers to the others
 * (setmaxnreg), so that it costs 24 a thread instead of 168.
 *
 * Predicted: the bounds are those of step 07, and so is the way the products and the softmax
 * of two warpgroups meet. What goes is the waiting for each other: 1.00 to 1.05 times step 07.
 * Measured: 0.82 ms, 667 TFLOP/s, 1.04 times step 07 and 1.01 times cuDNN; for N = 16384 1.08
 * times step 07. Not so for the other head dimensions: 0.95 for d = 64, where four consumers
 * have registers for tiles of 80 keys only, and 0.98 for d = 256.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/producer.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/warpgroup_tile.h"

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
    for (int j = 0; j < Tc; j++) {
        const uint32_t K = ring_await(s.K, t);
        wgmma_begin(S);
        scores<T, X>(S, Q, K);
        wgmma_wait<0>(S);
        ring_release(s.K, t);
        if (softmax_tile<X>(factor, S, m, l, a, first, j, c))
            rows_scale(O, factor);
        scores_pack<T>(P, S);
        const uint32_t V = ring_await(s.V, t);
        wgmma_begin(O, P);
        add_product<T, X>(O, P, V);
        wgmma_wait<0>(O, P);
        ring_release(s.V, t);
        turn_next<X::PLACES>(t);
    }
    named_barrier_sync(1 + group, WARPGROUP_THREADS); /* all have read Qi */
    output_store<T, X>(w, at, first, shared + X::GROUP_BYTES * group, O, m, l);
    output_wait();
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS, 1) void producer_step(const __grid_constant__ struct tma_work w)
{
    extern __shared__ __align__(1024) char shared[];
    divide_roles<X>(w, shared, consume<T, X>);
}

/* The fastest of the shapes measured: docs/ladder.md. */
template <int D> struct chosen;
template <> struct chosen<64> : producer_shape<64, 4, 80, 2, 24, 112> {
};
template <> struct chosen<128> : producer_shape<128, 3, 128, 2, 32, 160> {
};
template <> struct chosen<256> : producer_shape<256, 2, 80, 2, 24, 240> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)producer_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(producer, "08_producer", LONGEST_FIRST | COPY_ENGINE)
