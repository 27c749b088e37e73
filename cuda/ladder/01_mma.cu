/* Step 01: tensor cores by mma.sync; everything else as simple as it goes.
 *
 * Idea: FlashAttention-2's loop with its two products on the tensor cores. Each of four warps
 * has 16 queries of the block's 64; S and O stay in the layout in which mma leaves them, and P
 * becomes an operand without leaving the registers. Tiles lie row by row in shared memory and
 * each operand is read from there element by element.
 *
 * Predicted: shared memory bounds it. A fragment's eight rows lie in the same banks: a warp's
 * tile costs 2304 passes over them, and its 128 products a twelfth of that time: 9.9 ms for d
 * 128, N 4096, 64 heads (docs/ladder.md has the floors of all steps).
 * Measured: 12.31 ms, 45 TFLOP/s.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/softmax.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/tile.h"

enum { WARPS = 4, LANES = 32, THREADS = WARPS * LANES, ROWS = 16, Br = WARPS * ROWS, Bc = 64 };

/* Two neighbours of a row of a tile: what A of mma needs, and B where its columns are rows. */
template <int D> __device__ inline uint32_t pair_in_row(const char *tile, int row, int col)
{
    return *(const uint32_t *)(tile + plain<D>::at(row, 0) + 2 * col);
}

/* Two neighbours of a column, from two rows: what B needs otherwise. */
template <int D> __device__ inline uint32_t pair_in_col(const char *tile, int row, int col)
{
    const uint32_t low = *(const uint16_t *)(tile + plain<D>::at(row, 0) + 2 * col);
    const uint32_t high = *(const uint16_t *)(tile + plain<D>::at(row + 1, 0) + 2 * col);
    return low | high << 16;
}

/* S = Qi KjT for the warp's 16 rows of Qi. */
template <class T, int D>
__device__ inline void scores(float (&S)[Bc / 8][4], const char *Qi, const char *Kj)
{
    const int g = lane_row(), t2 = lane_col();
#pragma unroll
    for (int n = 0; n < Bc / 8; n++)
        for (int e = 0; e < 4; e++)
            S[n][e] = 0;
#pragma unroll
    for (int k = 0; k < D; k += 16) {
        const uint32_t Q[4] = {pair_in_row<D>(Qi, g, k + t2), pair_in_row<D>(Qi, g + 8, k + t2),
                               pair_in_row<D>(Qi, g, k + t2 + 8),
                               pair_in_row<D>(Qi, g + 8, k + t2 + 8)};
        for (int n = 0; n < Bc / 8; n++)
            mma<T>(S[n], Q, pair_in_row<D>(Kj, 8 * n + g, k + t2),
                   pair_in_row<D>(Kj, 8 * n + g, k + t2 + 8));
    }
}

/* O += P Vj; P is what the scores have become. */
template <class T, int D>
__device__ inline void add_product(float (&O)[D / 8][4], const float (&P)[Bc / 8][4],
                                   const char *Vj)
{
    const int g = lane_row(), t2 = lane_col();
#pragma unroll
    for (int k = 0; k < Bc / 16; k++) {
        const float(&left)[4] = P[2 * k], (&right)[4] = P[2 * k + 1];
        const uint32_t A[4] = {pack<T>(left[0], left[1]), pack<T>(left[2], left[3]),
                               pack<T>(right[0], right[1]), pack<T>(right[2], right[3])};
        for (int n = 0; n < D / 8; n++)
            mma<T>(O[n], A, pair_in_col<D>(Vj, 16 * k + t2, 8 * n + g),
                   pair_in_col<D>(Vj, 16 * k + t2 + 8, 8 * n + g));
    }
}

template <class T, int D>
static __global__ __launch_bounds__(THREADS,
                                    1) void mma_step(const __grid_constant__ struct work w)
{
    extern __shared__ __align__(1024) char shared[];
    char *Qi = shared, *Kj = Qi + 2 * D * Br, *Vj = Kj + 2 * D * Bc;
    const struct place at = place_in_order(w);
    const int first = at.row + warp_number() * ROWS; /* of the warp's queries */
    char *warp_Qi = Qi + plain<D>::at(first - at.row, 0);
    float O[D / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0}, lse[1][2];

    tile_load<plain<D>, Br, D, THREADS>(
        Qi, rows_of<const T>(w.t.Q, at.batch, at.head_q, at.row, w.a.seqlen_q));

    const int Tc = visited_tiles(w.a, at.row / Br); /* causal: no tile past the diagonal */
    for (int j = 0; j < Tc; j++) {
        __syncthreads(); /* all have read the previous Kj and Vj */
        tile_load<plain<D>, Bc, D, THREADS>(
            Kj, rows_of<const T>(w.t.K, at.batch, at.head_kv, j * Bc, w.a.seqlen_k));
        tile_load<plain<D>, Bc, D, THREADS>(
            Vj, rows_of<const T>(w.t.V, at.batch, at.head_kv, j * Bc, w.a.seqlen_k));
        __syncthreads();

        float S[Bc / 8][4];
        scores<T, D>(S, warp_Qi, Kj);
        const int seen[2] = {visible_keys(w.a, first + lane_row()) - j * Bc,
                             visible_keys(w.a, first + lane_row() + 8) - j * Bc};
        scores_finish(S, w.a.scale, seen);
        softmax_update(S, O, m, l);
        add_product<T, D>(O, S, Vj);
    }
    softmax_end(lse[0], O, m, l);
    __syncthreads(); /* Qi is there, also for a block that saw no key */
    const struct place out = place_in_order(w);
    const int out_first = out.row + warp_number() * ROWS;
    tile_store<plain<D>, D>(rows_of<T>(w.t.O, out.batch, out.head_q, out_first, w.a.seqlen_q),
                            warp_Qi, O);
    lse_store(w, out, out_first, lse);
}

template <class T, int D> static struct kernel kernel_of()
{
    return {(const void *)mma_step<T, D>, THREADS, Br, Bc, 2 * D * (Br + 2 * Bc)};
}

LADDER_STEP(mma, "01_mma", 0)
