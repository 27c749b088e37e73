/* Step 05: two tiles of 16 queries a warp.
 *
 * Idea: a warp of step 04 reads all of K and V from shared memory for its 16 queries: that,
 * not the tensor cores, is what bounds it. With 32 queries a warp each fragment of K and V
 * feeds two products. O and S take twice the registers, so Q goes back to shared memory where
 * it no longer fits. And blocks begin with the last queries, which have the most keys under a
 * causal mask, so that what begins last is short.
 *
 * Predicted: 178 million passes over the banks instead of 278, 0.69 ms; then the tensor cores
 * are the bound, 0.82 ms. With a causal mask, longest first keeps the last blocks short.
 * Measured: 1.51 ms, 364 TFLOP/s, 1.13 times step 04 and 1.09 times PyTorch's FA2. The tensor
 * cores are busy 60 % of the time (FA2: 55 %): two warps for each quarter of an SM do not
 * always have a product ready while the other is in its softmax.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/exp2.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/tile.h"

enum { LANES = 32 };

/* TILES of 16 queries a warp, BC keys a tile, BLOCKS thread blocks an SM; Q in registers or
 * read anew for every tile. */
template <int D_, int WARPS_, int TILES_, int BC_, int BLOCKS_, bool Q_STAYS_> struct shape {
    static constexpr int D = D_, WARPS = WARPS_, TILES = TILES_, Bc = BC_, BLOCKS = BLOCKS_,
                         ROWS = 16 * TILES, Br = ROWS * WARPS, THREADS = WARPS * LANES,
                         Q_BYTES = 2 * D * Br, TILE_BYTES = 2 * D * Bc,
                         SHARED = Q_BYTES + 4 * TILE_BYTES;
    static constexpr bool Q_STAYS = Q_STAYS_;
};

/* Begins to load the next Kj and Vj. */
template <class X, class T>
__device__ inline void load_next(char *Kj, struct rows<T> &K, struct rows<T> &V)
{
    tile_load_async<swizzled<X::D>, X::Bc, X::D, X::THREADS>(Kj, K);
    tile_load_async<swizzled<X::D>, X::Bc, X::D, X::THREADS>(Kj + X::TILE_BYTES, V);
    rows_advance(K, X::Bc);
    rows_advance(V, X::Bc);
}

/* The warp's Q, tile by tile, k by k. */
template <class X> struct fragments {
    uint32_t Q[X::Q_STAYS ? X::D / 16 : 1][X::TILES][4];
};

template <class X>
__device__ inline void load_fragments(uint32_t (&A)[X::TILES][4], uint32_t Q, int k)
{
#pragma unroll
    for (int i = 0; i < X::TILES; i++)
        ldmatrix(A[i], (Q ^ 32 * k) + 2 * X::D * 16 * i);
}

template <class T, class X>
__device__ inline void scores(float (&S)[X::TILES][X::Bc / 8][4], struct fragments<X> &q,
                              uint32_t Q, uint32_t K)
{
#pragma unroll
    for (int i = 0; i < X::TILES; i++)
        for (int n = 0; n < X::Bc / 8; n++)
            for (int e = 0; e < 4; e++)
                S[i][n][e] = 0;
#pragma unroll
    for (int k = 0; k < X::D / 16; k++) {
        uint32_t(&A)[X::TILES][4] = q.Q[X::Q_STAYS ? k : 0], B[4];
        if (!X::Q_STAYS)
            load_fragments<X>(A, Q, k);
        for (int n = 0; n < X::Bc / 16; n++) {
            ldmatrix(B, (K ^ 32 * k) + 2 * X::D * 16 * n);
            for (int i = 0; i < X::TILES; i++) {
                mma<T>(S[i][2 * n], A[i], B[0], B[1]);
                mma<T>(S[i][2 * n + 1], A[i], B[2], B[3]);
            }
        }
    }
}

/* O += P Vj, P = 2^(c S - c m) made as it is needed: see step 04. */
template <class T, class X>
__device__ inline void add_product(float (&O)[X::TILES][X::D / 8][4], float (&l)[X::TILES][2],
                                   const float (&S)[X::TILES][X::Bc / 8][4],
                                   const float (&m)[X::TILES][2], float c, uint32_t V)
{
#pragma unroll
    for (int k = 0; k < X::Bc / 16; k++) {
        uint32_t P[X::TILES][4], B[4];
        for (int i = 0; i < X::TILES; i++)
            softmax_slice<T>(P[i], l[i], S[i][2 * k], S[i][2 * k + 1], m[i], c);
        for (int n = 0; n < X::D / 16; n++) {
            ldmatrix_transposed(B, (V ^ 32 * n) + 2 * X::D * 16 * k);
            for (int i = 0; i < X::TILES; i++) {
                mma<T>(O[i][2 * n], P[i], B[0], B[1]);
                mma<T>(O[i][2 * n + 1], P[i], B[2], B[3]);
            }
        }
    }
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS,
                  X::BLOCKS) void two_tiles_step(const __grid_constant__ struct work w)
{
    constexpr int D = X::D, TILES = X::TILES, Bc = X::Bc, ROWS = X::ROWS;
    extern __shared__ __align__(1024) char shared[];
    char *Qi = shared, *stages = Qi + X::Q_BYTES;
    const uint32_t lane = lane_offset<D, DOWN_FIRST>(), lane_K = lane_offset<D, RIGHT_FIRST>();
    const struct place at = place_longest_first(w);
    if (at.plane < 0)
        return;
    const int first = at.row + warp_number() * ROWS; /* of the warp's queries */
    char *warp_Qi = Qi + 2 * D * (first - at.row);
    const float c = exponent_scale(w.a.scale);
    float O[TILES][D / 8][4] = {}, m[TILES][2], l[TILES][2], lse[TILES][2];
    struct fragments<X> q;

    const int Tc = visited_tiles(w.a, at.row / X::Br); /* causal: no tile past the diagonal */
    struct rows<const T> K = rows_of<const T>(w.t.K, at.batch, at.head_kv, 0, w.a.seqlen_k),
                         V = rows_of<const T>(w.t.V, at.batch, at.head_kv, 0, w.a.seqlen_k);
    tile_load_async<swizzled<D>, X::Br, D, X::THREADS>(
        Qi, rows_of<const T>(w.t.Q, at.batch, at.head_q, at.row, w.a.seqlen_q));
    if (Tc > 0)
        load_next<X>(stages, K, V);
    cp_async_commit();
#pragma unroll
    for (int i = 0; i < TILES; i++)
        for (int half = 0; half < 2; half++) {
            m[i][half] = -INFINITY;
            l[i][half] = 0;
        }
    for (int j = 0; j < Tc; j++) {
        const char *Kj = stages + j % 2 * (2 * X::TILE_BYTES), *Vj = Kj + X::TILE_BYTES;
        cp_async_wait<0>();
        __syncthreads(); /* Kj and Vj have arrived, and all have read the tiles before them */
        if (j + 1 < Tc)
            load_next<X>(stages + (j + 1) % 2 * (2 * X::TILE_BYTES), K, V);
        cp_async_commit();
        if (X::Q_STAYS && j == 0)
#pragma unroll
            for (int k = 0; k < D / 16; k++)
                load_fragments<X>(q.Q[X::Q_STAYS ? k : 0], shared_address(warp_Qi) + lane, k);

        float S[TILES][Bc / 8][4], now[TILES][2];
        scores<T, X>(S, q, shared_address(warp_Qi) + lane, shared_address(Kj) + lane_K);
        if (w.a.scale <= 0)
#pragma unroll
            for (int i = 0; i < TILES; i++)
                scores_sign(S[i], w.a.scale);
        if (!sees_all(w.a, at.row, (j + 1) * Bc))
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                const int row = first + 16 * i + lane_row();
                const int seen[2] = {visible_keys(w.a, row) - j * Bc,
                                     visible_keys(w.a, row + 8) - j * Bc};
                scores_mask(S[i], seen);
            }
        bool moved = false;
#pragma unroll
        for (int i = 0; i < TILES; i++)
            moved |= scores_max(now[i], S[i], m[i]);
        if (__any_sync(0xffffffff, moved))
#pragma unroll
            for (int i = 0; i < TILES; i++)
                softmax_rescale(O[i], m[i], l[i], now[i], c);
        add_product<T, X>(O, l, S, m, c, shared_address(Vj) + lane);
    }
#pragma unroll
    for (int i = 0; i < TILES; i++)
        softmax_finish(lse[i], O[i], m[i], l[i], c);
    const struct place out = place_longest_first(w);
    const int out_first = out.row + warp_number() * ROWS;
    char *out_tile = Qi + 2 * D * ROWS * warp_number();
    cp_async_wait<0>();
    __syncthreads(); /* Qi is there, also for a block that saw no key */
#pragma unroll
    for (int i = 0; i < TILES; i++)
        tile_store<swizzled<D>, D>(
            rows_of<T>(w.t.O, out.batch, out.head_q, out_first + 16 * i, w.a.seqlen_q),
            out_tile + 2 * D * 16 * i, O[i]);
    lse_store(w, out, out_first, lse);
}

/* The fastest of the shapes measured: docs/ladder.md. For d = 256 there are registers for one
 * tile of O only. */
template <int D> struct chosen;
template <> struct chosen<64> : shape<64, 4, 2, 64, 2, true> {
};
template <> struct chosen<128> : shape<128, 4, 2, 64, 2, false> {
};
template <> struct chosen<256> : shape<256, 8, 1, 64, 1, false> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)two_tiles_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(two_tiles, "05_two_tiles", LONGEST_FIRST)
