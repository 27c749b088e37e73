/* Step 10: the softmax of one tile while the tensor cores work on the next.
 */
#include "cuda/ladder/block_memory.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/warpgroup_tile.h"

/* LESS and MORE: registers a thread of the producer and of the consumers. */
template <int D, int CONSUMERS, int BC, int PLACES, int LESS_, int MORE_>
struct shape : block_shape<D, CONSUMERS, BC, PLACES> {
    static constexpr int THREADS = WARPGROUP_THREADS * (1 + CONSUMERS), LESS = LESS_,
                         MORE = MORE_;
};

template <class X>
__device__ inline void produce(const struct tma_work &w, const struct place &at,
                               const struct block_memory<X> &s, int Tc)
{
    struct turn t = {};
    queries_load(s, w, at);
    for (int j = 0; j < Tc; j++) {
        ring_fill(s.K, t, &w.K, j * X::Bc, at.head_kv, at.batch);
        ring_fill(s.V, t, &w.V, j * X::Bc, at.head_kv, at.batch);
        turn_next<X::PLACES>(t);
    }
}

template <class T, class X>
__device__ inline void consume(const struct tma_work &w, const struct place &at,
                               const struct block_memory<X> &s, int Tc, char *shared)
{
    constexpr int D = X::D, Bc = X::Bc;
    const struct attention &a = w.work.a;
    const int group = warpgroup_number() - 1;
    const int first = at.row + WARPGROUP_ROWS * group + 16 * (warp_number() % 4);
    const float c = exponent_scale(a.scale);
    const uint64_t Q = tile_columns(s.Q + X::GROUP_BYTES * group);
    float O[D / 8][4] = {}, S[Bc / 8][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {}, factor[2];
    uint32_t P[Bc / 16][4];
    struct turn t = {};

    mbarrier_wait(s.Q_full, 0);
    if (Tc > 0) {
        uint32_t K = ring_await(s.K, t);
        wgmma_begin(S);
        scores<T, X>(S, Q, K);
        wgmma_wait<0>(S);
        ring_release(s.K, t);
        softmax_tile<X>(factor, S, m, l, a, first, 0, c);
        scores_pack<T>(P, S);
        for (int j = 1; j < Tc; j++) {
            const struct turn before = t;
            turn_next<X::PLACES>(t);
            const uint32_t V = ring_await(s.V, before);
            K = ring_await(s.K, t);
            wgmma_begin(S, O, P);
            scores<T, X>(S, Q, K);
            add_product<T, X>(O, P, V);
            wgmma_wait<1>(S);
            ring_release(s.K, t);
            softmax_tile<X>(factor, S, m, l, a, first, j, c);
            registers_settle(S); /* the compiler would leave the exponentials for later */
            wgmma_wait<0>(O, P);
            ring_release(s.V, before);
            rows_scale(O, factor);
            scores_pack<T>(P, S);
        }
        const uint32_t V = ring_await(s.V, t);
        wgmma_begin(O, P);
        add_product<T, X>(O, P, V);
        wgmma_wait<0>(O, P);
    }
    named_barrier_sync(1 + group, WARPGROUP_THREADS); /* all have read Qi */
    output_store<T, X>(w, at, first, shared + X::GROUP_BYTES * group, O, m, l, c);
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS, 1) void overlap_step(const __grid_constant__ struct tma_work w)
{
    extern __shared__ __align__(1024) char shared[];
    const struct block_memory<X> s = memory_at<X>(shared);
    const struct place at = place_longest_first(w.work);
    if (at.plane < 0)
        return;
    if (threadIdx.x == 0)
        memory_init(s, 4 * X::GROUPS);
    __syncthreads();
    const int Tc = visited_tiles(w.work.a, at.row / X::Br);
    if (warpgroup_number() == 0) {
        warpgroup_registers_less<X::LESS>();
        if (threadIdx.x == 0)
            produce<X>(w, at, s, Tc);
    } else {
        warpgroup_registers_more<X::MORE>();
        consume<T, X>(w, at, s, Tc, shared);
    }
}

template <int D> struct chosen;
template <> struct chosen<64> : shape<64, 3, 128, 2, 32, 160> {
};
template <> struct chosen<128> : shape<128, 2, 128, 2, 24, 240> {
};
template <> struct chosen<256> : shape<256, 2, 80, 2, 24, 240> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)overlap_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(overlap, "10_overlap", LONGEST_FIRST | COPY_ENGINE)
