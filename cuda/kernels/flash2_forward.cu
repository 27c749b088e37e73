/* FlashAttention-2, forward (Dao 2023, Algorithm 1): one thread block a Q tile.
 *
 * The block keeps its Q tile, and O un-scaled, on chip, and passes once over the K/V tiles that
 * its rows may see; O is divided by l only at the end. Line 10 of the printed algorithm has an
 * inverse on the rescaling factor that must not be there: the factor is exp(m_old - m_new).
 *
 * Twin of sim/kernels/flash2_forward.c. Br and Bc are run-time, up to TILE rows, which is
 * compiled for 16, 32 and 64; head_dim_v is run-time, up to DV, compiled for 64, 128 and 256.
 */
#include "cuda/attention.h"
#include "cuda/launch.h"
#include "cuda/mask.h"
#include "cuda/steps.h"

/* Shared memory: Qi (TILE x d), Vj (TILE x DV), and Kj (TILE x d), whose place Pij (TILE x
 * TILE) takes when the scores are done. Rows past the edge and columns of Vj past head_dim_v
 * are zeros; what they add up to is never stored. */
template <int TILE> __host__ __device__ static int kj_floats(int d)
{
    return TILE * (odd_pitch(d) > wide_pitch(TILE) ? odd_pitch(d) : wide_pitch(TILE));
}
template <int TILE, int DV> static int64_t shared_floats(int d)
{
    return TILE * (odd_pitch(d) + wide_pitch(DV)) + kj_floats<TILE>(d);
}

template <int TILE, int DV>
static __global__
__launch_bounds__(THREADS, 1) void flash2_forward(struct attention a, Global<const float> Q,
                                                  Global<const float> K, Global<const float> V,
                                                  Global<float> O, Global<float> LSE)
{
    constexpr int R = TILE / ROW_THREADS, V_PITCH = wide_pitch(DV), P_PITCH = wide_pitch(TILE);
    extern __shared__ __align__(16) float shared[];
    const int Br = a.block_q, Bc = a.block_k, d = a.head_dim, dv = a.head_dim_v;
    const int i = (int)blockIdx.x, plane = (int)blockIdx.y, pitch = odd_pitch(d);
    const int rows = min(Br, a.seqlen_q - i * Br);
    Shared<float> Qi = shared, Kj = Qi + TILE * pitch, Pij = Kj, Vj = Kj + kj_floats<TILE>(d);
    const int64_t kv_row = (int64_t)kv_plane_of(a, plane) * a.seqlen_k;
    const int64_t q_row = (int64_t)plane * a.seqlen_q + i * Br;
    float Oi[R][DV / COL_THREADS], m[R], l[R], Li[R];
    STEPS_BEGIN(i, 0, plane);

    tile_load(Qi, pitch, Q + q_row * d, d, rows, d, TILE, d);
    tile_fill(Oi, 0.0f);
    tile_fill(m, -INFINITY);
    tile_fill(l, 0.0f);
    STEP("load Qi", i, -1);

    const int Tc = visited_tiles(a, i); /* causal: no tile past the diagonal */
    for (int j = 0; j < Tc; j++) {
        const int cols = min(Bc, a.seqlen_k - j * Bc);
        __syncthreads(); /* all have read the previous Pij and Vj */
        tile_load(Kj, pitch, K + (kv_row + j * Bc) * d, d, cols, d, TILE, d);
        tile_load(Vj, V_PITCH, V + (kv_row + j * Bc) * dv, dv, cols, dv, TILE, DV);
        __syncthreads();
        STEP("load Kj, Vj", i, j);

        float Sij[R][TILE / COL_THREADS], c[R];
        tile_scores(Sij, Qi, Kj, pitch, d);
        tile_scale_and_mask(Sij, a, a.scale, i * Br, j * Bc, rows, cols);
        STEP("Sij = scale Qi KjT", i, j);

        online_softmax(Sij, m, l, c);
        STEP("online softmax", i, j);

        __syncthreads(); /* all have read Kj */
        tile_put(Pij, P_PITCH, Sij);
        __syncwarp(); /* a row of Pij is written and read by one half warp only */
        tile_scale_rows(Oi, c);
        tile_add_product(Oi, Pij, P_PITCH, Vj, V_PITCH, cols);
        STEP_ROWS("Oi = diag(c) Oi + Pij Vj", i, j, rows, m, l, Oi, dv);
    }
    tile_divide_rows(Oi, l);
    __syncthreads(); /* Vj and Pij are free: Oi and Li leave through them, row by row */
    tile_put(Vj, V_PITCH, Oi);
    tile_log_sum_exp(Li, m, l);
    tile_put_rows(Pij, Li);
    __syncthreads();
    tile_store(O + q_row * dv, dv, Vj, V_PITCH, rows, dv);
    tile_store(LSE + q_row, 1, Pij, 1, rows, 1);
    STEP("store Oi, Li", i, -1);
}

template <int TILE, int DV>
static enum status launch(const struct attention *a, const struct device_tensors *t,
                          struct error *error)
{
    const struct launch_shape shape = {"flash2_forward",
                                       {attention_tiles_q(a), attention_planes_q(a), 1},
                                       THREADS,
                                       4 * shared_floats<TILE, DV>(a->head_dim)};
    if (launch_prepare((const void *)flash2_forward<TILE, DV>, &shape, error))
        return error->status;
    flash2_forward<TILE, DV>
        <<<launch_grid(&shape), THREADS, (size_t)shape.shared_bytes, launch_stream(t)>>>(
            *a, t->Q, t->K, t->V, t->O, t->LSE);
    return launch_check(&shape, error);
}

TILED_LAUNCHER(flash2_forward)
