/* Step 03: cp.async and double buffering.
 *
 * Idea: in step 02 all warps wait while a K and a V tile come from memory. cp.async copies
 * without holding registers or the thread, so there are two places for each tile, and the next
 * tiles arrive while the warps compute on these.
 *
 * Predicted: no time in which only loads happen: towards the floor of shared memory, 1.5 ms.
 * Measured: 2.22 ms, 248 TFLOP/s, 1.61 times step 02. A billion instructions take 1.0 ms of it
 * at one a clock for each quarter of an SM.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/products.h"
#include "cuda/ladder/softmax.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/tile.h"

enum { WARPS = 4, LANES = 32, THREADS = WARPS * LANES, ROWS = 16, Br = WARPS * ROWS };

/* Two pairs of tiles, with Qi, must fit in 163 KB of shared memory; two blocks an SM are
 * better than one. */
__host__ __device__ constexpr int keys_of(int D)
{
    return D == 256 ? 32 : 64;
}

/* Begins to load Kj and Vj; their place is j % 2. */
template <class T, int D>
__device__ inline void load_keys(char *stages, const struct work &w, const struct place &at,
                                 int j)
{
    constexpr int Bc = keys_of(D);
    char *Kj = stages + j % 2 * (4 * D * Bc), *Vj = Kj + 2 * D * Bc;
    tile_load_async<swizzled<D>, Bc, D, THREADS>(
        Kj, rows_of<const T>(w.t.K, at.batch, at.head_kv, j * Bc, w.a.seqlen_k));
    tile_load_async<swizzled<D>, Bc, D, THREADS>(
        Vj, rows_of<const T>(w.t.V, at.batch, at.head_kv, j * Bc, w.a.seqlen_k));
    cp_async_commit();
}

template <class T, int D>
static __global__ __launch_bounds__(THREADS,
                                    1) void cp_async_step(const __grid_constant__ struct work w)
{
    constexpr int Bc = keys_of(D);
    extern __shared__ __align__(1024) char shared[];
    char *Qi = shared, *stages = Qi + 2 * D * Br;
    const uint32_t lane = lane_offset<D, DOWN_FIRST>(), lane_K = lane_offset<D, RIGHT_FIRST>();
    const struct place at = place_in_order(w);
    const int first = at.row + warp_number() * ROWS; /* of the warp's queries */
    char *warp_Qi = Qi + 2 * D * (first - at.row);
    float O[D / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0}, lse[1][2];

    const int Tc = visited_tiles(w.a, at.row / Br); /* causal: no tile past the diagonal */
    tile_load_async<swizzled<D>, Br, D, THREADS>(
        Qi, rows_of<const T>(w.t.Q, at.batch, at.head_q, at.row, w.a.seqlen_q));
    cp_async_commit();
    if (Tc > 0)
        load_keys<T, D>(stages, w, at, 0);
    for (int j = 0; j < Tc; j++) {
        const char *Kj = stages + j % 2 * (4 * D * Bc), *Vj = Kj + 2 * D * Bc;
        cp_async_wait<0>();
        __syncthreads(); /* Kj and Vj have arrived, and all have read the tiles before them */
        if (j + 1 < Tc)
            load_keys<T, D>(stages, w, at, j + 1);

        float S[Bc / 8][4];
        scores<T, D>(S, shared_address(warp_Qi) + lane, shared_address(Kj) + lane_K);
        const int seen[2] = {visible_keys(w.a, first + lane_row()) - j * Bc,
                             visible_keys(w.a, first + lane_row() + 8) - j * Bc};
        scores_finish(S, w.a.scale, seen);
        softmax_update(S, O, m, l);
        add_product<T, D>(O, S, shared_address(Vj) + lane);
    }
    softmax_end(lse[0], O, m, l);
    const struct place out = place_in_order(w);
    const int out_first = out.row + warp_number() * ROWS;
    cp_async_wait<0>();
    __syncthreads(); /* Qi is there, also for a block that saw no key */
    tile_store<swizzled<D>, D>(
        rows_of<T>(w.t.O, out.batch, out.head_q, out_first, w.a.seqlen_q), warp_Qi, O);
    lse_store(w, out, out_first, lse);
}

template <class T, int D> static struct kernel kernel_of()
{
    return {(const void *)cp_async_step<T, D>, THREADS, Br, keys_of(D),
            2 * D * (Br + 4 * keys_of(D))};
}

LADDER_STEP(cp_async, "03_cp_async", 0)
