/* FlashAttention, forward (Dao et al. 2022, Algorithm 1): one thread block a head.
 *
 * K/V tiles outside, Q tiles inside: each K/V tile is loaded once, and for each of them every
 * Q tile's O, l and m are read from HBM, updated and written back. O is kept normalised. In the
 * first pass there is nothing to read yet: O, l and m start as 0, 0 and -inf on chip. One block
 * a head leaves most of a GPU idle unless there are hundreds of heads; FlashAttention-2 turns
 * the loops round for that reason too.
 *
 * Twin of sim/kernels/flash1_forward.c. Br and Bc are run-time, up to TILE rows, which is
 * compiled for 16, 32 and 64; head_dim_v is run-time, up to DV, compiled for 64, 128 and 256.
 */
#include "cuda/attention.h"
#include "cuda/launch.h"
#include "cuda/mask.h"
#include "cuda/steps.h"

/* Floats of shared memory: Qi, Kj (TILE x d each), Vj and Oi (TILE x DV each), Pij (TILE x
 * TILE), l, m. Oi is there to be copied row by row; rows past the edge and columns past
 * head_dim_v are zeros, and what they add up to is never stored. */
template <int TILE, int DV> static int64_t shared_floats(int d)
{
    return TILE * (2 * odd_pitch(d) + 2 * wide_pitch(DV) + wide_pitch(TILE) + 2);
}

template <int TILE, int DV>
static __global__ __launch_bounds__(THREADS, 1) void flash1_forward(
    struct attention a, Global<const float> Q, Global<const float> K, Global<const float> V,
    Global<float> O, Global<float> l_hbm, Global<float> m_hbm)
{
    constexpr int R = TILE / ROW_THREADS, V_PITCH = wide_pitch(DV), P_PITCH = wide_pitch(TILE);
    extern __shared__ __align__(16) float shared[];
    const int Br = a.block_q, Bc = a.block_k, d = a.head_dim, dv = a.head_dim_v;
    const int plane = (int)blockIdx.x, pitch = odd_pitch(d);
    Shared<float> Qi = shared, Kj = Qi + TILE * pitch, Vj = Kj + TILE * pitch,
                  sOi = Vj + TILE * V_PITCH, Pij = sOi + TILE * V_PITCH,
                  sl = Pij + TILE * P_PITCH, sm = sl + TILE;
    const int64_t kv_row = (int64_t)kv_plane_of(a, plane) * a.seqlen_k;
    STEPS_BEGIN(0, 0, plane);

    /* Causal: a Q tile meets only tiles that it may see; the first pass meets all of them, to
     * write O and the statistics of rows without keys too. The twin starts at the first such i;
     * a register for that is one too many here. */
    const int Tr = (a.seqlen_q + Br - 1) / Br, Tc = visited_tiles(a, Tr - 1);
    for (int j = 0; j == 0 || j < Tc; j++) {
        const int cols = min(Bc, a.seqlen_k - j * Bc);
        __syncthreads(); /* all have read the previous Kj and Vj */
        tile_load(Kj, pitch, K + (kv_row + j * Bc) * d, d, cols, d, TILE, d);
        tile_load(Vj, V_PITCH, V + (kv_row + j * Bc) * dv, dv, cols, dv, TILE, DV);
        STEP("load Kj, Vj", -1, j);
        for (int i = 0; i < Tr; i++) {
            if (j > 0 && visited_tiles(a, i) <= j)
                continue;
            const int rows = min(Br, a.seqlen_q - i * Br);
            const int64_t q_row = (int64_t)plane * a.seqlen_q + i * Br;
            float Oi[R][DV / COL_THREADS], Sij[R][TILE / COL_THREADS], m[R], l[R], c[R];
            __syncthreads(); /* the previous Qi, Oi, l and m have been read and stored */
            tile_load(Qi, pitch, Q + q_row * d, d, rows, d, TILE, d);
            if (j > 0) {
                tile_load(sOi, V_PITCH, O + q_row * dv, dv, rows, dv, TILE, DV);
                tile_load(sl, 1, l_hbm + q_row, 1, rows, 1, TILE, 1);
                tile_load(sm, 1, m_hbm + q_row, 1, rows, 1, TILE, 1);
            }
            __syncthreads();
            STEP("load Qi, Oi, l, m", i, j);

            tile_scores(Sij, Qi, Kj, pitch, d);
            tile_scale_and_mask(Sij, a, a.scale, i * Br, j * Bc, rows, cols);
            STEP("Sij = scale Qi KjT", i, j);

            tile_fill(Oi, 0.0f);
            tile_fill(l, 0.0f);
            tile_fill(m, -INFINITY);
            if (j > 0) {
                tile_get_rows(l, sl);
                tile_get_rows(m, sm);
                tile_get(Oi, sOi, V_PITCH);
                tile_scale_rows(Oi, l); /* undo the normalisation of earlier passes */
            }
            online_softmax(Sij, m, l, c);
            STEP("online softmax", i, j);

            tile_put(Pij, P_PITCH, Sij);
            __syncwarp(); /* a row of Pij and of m is written and read by one half warp only */
            tile_put_rows(sm, m); /* now: registers are short in what follows */
            tile_scale_rows(Oi, c);
            tile_add_product(Oi, Pij, P_PITCH, Vj, V_PITCH, cols);
            tile_divide_rows(Oi, l);
            STEP_ROWS("Oi = diag(l)^-1 (diag(l c) Oi + Pij Vj)", i, j, rows, m, l, Oi, dv);

            __syncwarp(); /* so are the statistics, and an element of Oi by one thread */
            tile_put(sOi, V_PITCH, Oi);
            tile_put_rows(sl, l);
            __syncthreads();
            tile_store(O + q_row * dv, dv, sOi, V_PITCH, rows, dv);
            tile_store(l_hbm + q_row, 1, sl, 1, rows, 1);
            tile_store(m_hbm + q_row, 1, sm, 1, rows, 1);
            STEP("store Oi, l, m", i, j);
        }
    }
}

template <int TILE, int DV>
static enum status launch(const struct attention *a, const struct device_tensors *t,
                          struct error *error)
{
    const struct launch_shape shape = {"flash1_forward",
                                       {attention_planes_q(a), 1, 1},
                                       THREADS,
                                       4 * shared_floats<TILE, DV>(a->head_dim)};
    if (launch_prepare((const void *)flash1_forward<TILE, DV>, &shape, error))
        return error->status;
    flash1_forward<TILE, DV>
        <<<launch_grid(&shape), THREADS, (size_t)shape.shared_bytes, launch_stream(t)>>>(
            *a, t->Q, t->K, t->V, t->O, t->l, t->m);
    return launch_check(&shape, error);
}

TILED_LAUNCHER(flash1_forward)
