/* Step 06: the copy engine moves the tiles.
 *
 * Idea: a thread of step 05 computes addresses and issues a cp.async for every 16 bytes, and
 * all warps meet at a barrier for every tile. Here one thread names a box, and TMA fetches it,
 * swizzles it, fills up with zeros past the last row and counts its bytes at an mbarrier. Warps
 * wait for the tile that they need and give each back by itself, K after the scores already,
 * so that one may be most of a tile ahead of another. O leaves the same way.
 *
 * Predicted: the bounds are those of step 05, 0.82 ms for the products. What goes is the
 * instructions that load, 80 of some 950 a tile, and some of the waiting: 1.03 to 1.08 times
 * step 05.
 * Measured: 1.06 times step 05 for d = 128, 1.14 for d = 256 and 1.00 for d = 64, where the
 * tiles are half as large and their instructions with them.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/block_memory.h"
#include "cuda/ladder/exp2.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/tile.h"

enum { LANES = 32, TILE_ROWS = 16, TILE_ROWS_BYTES = TILE_ROWS * 128 };

/* TILES of 16 queries a warp, BLOCKS thread blocks an SM; Q in registers or read anew for every
 * tile. */
template <int D, int WARPS_, int TILES_, int BC, int PLACES, int BLOCKS_, bool Q_STAYS_>
struct shape : block_shape<D, WARPS_ * TILES_ * TILE_ROWS / WARPGROUP_ROWS, BC, PLACES> {
    static constexpr int WARPS = WARPS_, TILES = TILES_, BLOCKS = BLOCKS_,
                         ROWS = TILE_ROWS * TILES, THREADS = WARPS * LANES;
    static constexpr bool Q_STAYS = Q_STAYS_;
};

/* Begins to load Kj and Vj, in the turn after t. */
template <class X>
__device__ inline void load_next(const struct block_memory<X> &s, struct turn t,
                                 const struct tma_work &w, const struct place &at, int j)
{
    turn_next<X::PLACES>(t);
    keys_load(s, t, w, at, j);
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
        ldmatrix(A[i], box_right<WARPGROUP_ROWS>(Q, k) + TILE_ROWS_BYTES * i);
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
            ldmatrix(B, box_right<X::Bc>(K, k) + TILE_ROWS_BYTES * n);
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
            ldmatrix_transposed(B, box_right<X::Bc>(V, n) + TILE_ROWS_BYTES * k);
            for (int i = 0; i < X::TILES; i++) {
                mma<T>(O[i][2 * n], P[i], B[0], B[1]);
                mma<T>(O[i][2 * n + 1], P[i], B[2], B[3]);
            }
        }
    }
}

/* A warp's rows of O, to HBM by way of a part of shared memory that is the warp's own. */
template <class T, class X>
__device__ inline void output_store(const struct tma_work &w, const struct place &at, int first,
                                    char *part, const float (&O)[X::TILES][X::D / 8][4])
{
    constexpr int BYTES = 2 * X::D * TILE_ROWS;
#pragma unroll
    for (int i = 0; i < X::TILES; i++)
        tile_stage<boxes<TILE_ROWS>, X::D, T>(part + BYTES * i, O[i]);
    tma_fence();
    __syncwarp();
    if (lane_number() == 0) {
        for (int i = 0; i < X::TILES; i++)
            tma_store(&w.O, shared_address(part) + BYTES * i, first + TILE_ROWS * i, at.head_q,
                      at.batch);
        tma_store_commit();
        tma_store_wait();
    }
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS,
                  X::BLOCKS) void tma_step(const __grid_constant__ struct tma_work w)
{
    constexpr int D = X::D, TILES = X::TILES, Bc = X::Bc, ROWS = X::ROWS;
    extern __shared__ __align__(1024) char shared[];
    const struct block_memory<X> s = memory_at<X>(shared);
    const struct attention &a = w.work.a;
    const struct place at = place_longest_first(w.work);
    if (at.plane < 0)
        return;
    const int warp_row = warp_number() * ROWS;
    const uint32_t lane = lane_offset<64, DOWN_FIRST>(),
                   lane_K = lane_offset<64, RIGHT_FIRST>(),
                   warp_Q = s.Q + X::GROUP_BYTES * (warp_row / WARPGROUP_ROWS) +
                            128 * (warp_row % WARPGROUP_ROWS);
    const float c = exponent_scale(a.scale);
    const int Tc = visited_tiles(a, at.row / X::Br); /* causal: no tile past the diagonal */
    float O[TILES][D / 8][4] = {}, m[TILES][2], l[TILES][2], lse[TILES][2];
    struct fragments<X> q;
    struct turn t = {};

    if (threadIdx.x == 0) {
        memory_init(s, X::WARPS);
        queries_load(s, w, at);
        if (Tc > 0) {
            struct turn first_tile = t;
            keys_load(s, first_tile, w, at, 0);
        }
    }
    __syncthreads(); /* the mbarriers are there */
#pragma unroll
    for (int i = 0; i < TILES; i++)
        for (int half = 0; half < 2; half++) {
            m[i][half] = -INFINITY;
            l[i][half] = 0;
        }
    mbarrier_wait(s.Q_full, 0);
    if (X::Q_STAYS)
#pragma unroll
        for (int k = 0; k < D / 16; k++)
            load_fragments<X>(q.Q[X::Q_STAYS ? k : 0], warp_Q + lane, k);
    for (int j = 0; j < Tc; j++) {
        float S[TILES][Bc / 8][4], now[TILES][2];
        scores<T, X>(S, q, warp_Q + lane, ring_await(s.K, t) + lane_K);
        ring_release(s.K, t);
        if (threadIdx.x == 0 && j + 1 < Tc)
            load_next(s, t, w, at, j + 1);
        if (a.scale <= 0)
#pragma unroll
            for (int i = 0; i < TILES; i++)
                scores_sign(S[i], a.scale);
        if (!sees_all(a, at.row, (j + 1) * Bc))
#pragma unroll
            for (int i = 0; i < TILES; i++) {
                const int row = at.row + warp_number() * ROWS + TILE_ROWS * i + lane_row();
                const int seen[2] = {visible_keys(a, row) - j * Bc,
                                     visible_keys(a, row + 8) - j * Bc};
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
        add_product<T, X>(O, l, S, m, c, ring_await(s.V, t) + lane);
        ring_release(s.V, t);
        turn_next<X::PLACES>(t);
    }
#pragma unroll
    for (int i = 0; i < TILES; i++)
        softmax_finish(lse[i], O[i], m[i], l[i], c);
    const struct place out = place_longest_first(w.work);
    const int out_row = warp_number() * ROWS, out_first = out.row + out_row;
    __syncthreads(); /* all have read Qi */
    output_store<T, X>(w, out, out_first, shared + 2 * D * out_row, O);
    lse_store(w.work, out, out_first, lse);
}

/* The fastest of the shapes measured: docs/ladder.md. */
template <int D> struct chosen;
template <> struct chosen<64> : shape<64, 4, 2, 64, 2, 2, true> {
};
template <> struct chosen<128> : shape<128, 4, 2, 64, 2, 2, false> {
};
template <> struct chosen<256> : shape<256, 8, 1, 64, 2, 1, false> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)tma_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(tma, "06_tma", LONGEST_FIRST | COPY_ENGINE)
