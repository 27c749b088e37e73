/* Step 07: the products of whole warpgroups.
 *
 * Idea: wgmma, the tensor cores' instruction of Hopper, multiplies 64 rows of four warps by up
 * to 256 columns. It reads K and V, and Q too, from shared memory by itself: once for 64
 * queries where a warp of step 06 reads them for 32, and without an instruction or a register
 * of the warps for it. It runs at the full rate, 4096 dense FLOP a clock an SM; mma.sync
 * reaches two thirds of that. A warpgroup begins the scores, waits, does its softmax, begins P
 * V, waits.
 *
 * Predicted, at 1.7 GHz: a tile of 64 queries and 128 keys has 1024 clocks of products and some
 * 750 of softmax, 512 of them for exp2. Two warpgroups that fill each other's gaps would leave
 * only the products, 0.60 ms; two in step wait for the tensor cores together, then for exp2
 * together: 2048 + 1100 clocks for both, 0.92 ms. Nothing makes them take turns, but they
 * drift: 0.85 to 0.95 ms, 580 to 650 TFLOP/s, 1.5 to 1.7 times step 05.
 * Measured: with two warpgroups 1.03 ms, 536 TFLOP/s, worse than in step. With three, for which
 * there are registers now, 0.86 ms, 639 TFLOP/s, 1.75 times step 05 and 0.97 times cuDNN. What
 * fills gaps is their number: for d = 64 four, in two blocks, reach 1.07 times cuDNN, three
 * 0.98.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/block_memory.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/warpgroup_tile.h"

/* BLOCKS thread blocks an SM. */
template <int D, int GROUPS, int BC, int PLACES, int BLOCKS_>
struct shape : block_shape<D, GROUPS, BC, PLACES> {
    static constexpr int THREADS = WARPGROUP_THREADS * GROUPS, BLOCKS = BLOCKS_;
};

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS,
                  X::BLOCKS) void wgmma_step(const __grid_constant__ struct tma_work w)
{
    constexpr int D = X::D, Bc = X::Bc;
    extern __shared__ __align__(1024) char shared[];
    const struct block_memory<X> s = memory_at<X>(shared);
    const struct attention &a = w.work.a;
    const struct place at = place_longest_first(w.work);
    if (at.plane < 0)
        return;
    const int group = warpgroup_number(), first = at.row + 16 * warp_number();
    const int Tc = visited_tiles(a, at.row / X::Br); /* causal: no tile past the diagonal */
    const uint64_t Q = tile_columns(s.Q + X::GROUP_BYTES * group);
    const float c = exponent_scale(a.scale);
    float O[D / 8][4] = {}, S[Bc / 8][4], m[2] = {-INFINITY, -INFINITY}, l[2] = {}, factor[2];
    uint32_t P[Bc / 16][4];
    struct turn t = {}, next = {}; /* the tile in use, and the one to load */

    if (threadIdx.x == 0) {
        memory_init(s, 4 * X::GROUPS);
        queries_load(s, w, at);
        if (Tc > 0)
            keys_load(s, next, w, at, 0);
    }
    __syncthreads(); /* the mbarriers are there */
    mbarrier_wait(s.Q_full, 0);
    for (int j = 0; j < Tc; j++) {
        if (threadIdx.x == 0 && j + 1 < Tc)
            keys_load(s, next, w, at, j + 1);
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

/* The fastest of the shapes measured: docs/ladder.md. */
template <int D> struct chosen;
template <> struct chosen<64> : shape<64, 2, 128, 2, 2> {
};
template <> struct chosen<128> : shape<128, 3, 128, 2, 1> {
};
template <> struct chosen<256> : shape<256, 2, 80, 2, 1> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)wgmma_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(wgmma, "07_wgmma", LONGEST_FIRST | COPY_ENGINE)
