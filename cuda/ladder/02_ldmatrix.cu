/* Step 02: ldmatrix and swizzled shared memory.
 *
 * Idea: step 01 reads its operands from shared memory one register at a time, and all eight
 * rows of a fragment lie in the same banks. ldmatrix (products.h) brings four registers of a
 * fragment at once, transposed where V needs it, and the swizzle (swizzle.h) lays its eight
 * rows in different banks.
 *
 * Predicted: 288 passes over the banks a tile of a warp instead of 2304, and 64 to store the
 * tiles: 1.5 ms, if nothing else took time; but all warps wait for every tile to arrive.
 * Measured: 3.57 ms, 154 TFLOP/s, 3.44 times step 01; no bank conflicts.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/products.h"
#include "cuda/ladder/softmax.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/tile.h"

enum { WARPS = 4, LANES = 32, THREADS = WARPS * LANES, ROWS = 16, Br = WARPS * ROWS, Bc = 64 };

template <class T, int D>
static __global__ __launch_bounds__(THREADS,
                                    1) void ldmatrix_step(const __grid_constant__ struct work w)
{
    extern __shared__ __align__(1024) char shared[];
    char *Qi = shared, *Kj = Qi + 2 * D * Br, *Vj = Kj + 2 * D * Bc;
    const uint32_t lane = lane_offset<D, DOWN_FIRST>(), lane_K = lane_offset<D, RIGHT_FIRST>();
    const struct place at = place_in_order(w);
    const int first = at.row + warp_number() * ROWS; /* of the warp's queries */
    char *warp_Qi = Qi + 2 * D * (first - at.row);
    float O[D / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0}, lse[1][2];

    tile_load<swizzled<D>, Br, D, THREADS>(
        Qi, rows_of<const T>(w.t.Q, at.batch, at.head_q, at.row, w.a.seqlen_q));

    const int Tc = visited_tiles(w.a, at.row / Br); /* causal: no tile past the diagonal */
    for (int j = 0; j < Tc; j++) {
        __syncthreads(); /* all have read the previous Kj and Vj */
        tile_load<swizzled<D>, Bc, D, THREADS>(
            Kj, rows_of<const T>(w.t.K, at.batch, at.head_kv, j * Bc, w.a.seqlen_k));
        tile_load<swizzled<D>, Bc, D, THREADS>(
            Vj, rows_of<const T>(w.t.V, at.batch, at.head_kv, j * Bc, w.a.seqlen_k));
        __syncthreads();

        float S[Bc / 8][4];
        scores<T, D>(S, shared_address(warp_Qi) + lane, shared_address(Kj) + lane_K);
        const int seen[2] = {visible_keys(w.a, first + lane_row()) - j * Bc,
                             visible_keys(w.a, first + lane_row() + 8) - j * Bc};
        scores_finish(S, w.a.scale, seen);
        softmax_update(S, O, m, l);
        add_product<T, D>(O, S, shared_address(Vj) + lane);
    }
    softmax_end(lse[0], O, m, l);
    __syncthreads(); /* Qi is there, also for a block that saw no key */
    const struct place out = place_in_order(w);
    const int out_first = out.row + warp_number() * ROWS;
    tile_store<swizzled<D>, D>(
        rows_of<T>(w.t.O, out.batch, out.head_q, out_first, w.a.seqlen_q), warp_Qi, O);
    lse_store(w, out, out_first, lse);
}

template <class T, int D> static struct kernel kernel_of()
{
    return {(const void *)ldmatrix_step<T, D>, THREADS, Br, Bc, 2 * D * (Br + 2 * Bc)};
}

LADDER_STEP(ldmatrix, "02_ldmatrix", 0)
