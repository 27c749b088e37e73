/* Standard attention (Dao et al. 2022, Algorithm 0): S and P go through HBM, three launches.
 *
 * Operands are loaded again for every tile that needs them, and the softmax reads S twice.
 * Masks hide nothing from HBM: all of S and P is written. They act in the softmax.
 *
 * Twin of sim/kernels/standard_attention.c with tiled_gemm. Br and Bc are run-time, up to TILE
 * rows, which is compiled for 16, 32 and 64; head_dim_v is run-time, up to DV, compiled for 64,
 * 128 and 256.
 */
#include "cuda/attention.h"
#include "cuda/launch.h"
#include "cuda/mask.h"
#include "cuda/steps.h"

/* S = scale Q K^T, one tile of S a block. Grid: Tc x Tr x planes.
 * Shared memory: Qi and Kj (TILE x d each), Sij (TILE x TILE, to be copied row by row). */
template <int TILE>
static __global__
__launch_bounds__(THREADS, 1) void standard_scores(struct attention a, Global<const float> Q,
                                                   Global<const float> K, Global<float> S)
{
    extern __shared__ __align__(16) float shared[];
    const int Br = a.block_q, Bc = a.block_k, d = a.head_dim, pitch = odd_pitch(d);
    const int j = (int)blockIdx.x, i = (int)blockIdx.y, plane = (int)blockIdx.z;
    const int rows = min(Br, a.seqlen_q - i * Br), cols = min(Bc, a.seqlen_k - j * Bc);
    Shared<float> Qi = shared, Kj = Qi + TILE * pitch, sSij = Kj + TILE * pitch;
    const int64_t q_row = (int64_t)plane * a.seqlen_q + i * Br;
    const int64_t kv_row = (int64_t)kv_plane_of(a, plane) * a.seqlen_k + j * Bc;
    float Sij[TILE / ROW_THREADS][TILE / COL_THREADS], scale[TILE / ROW_THREADS];
    STEPS_BEGIN(j, i, plane);

    tile_load(Qi, pitch, Q + q_row * d, d, rows, d, TILE, d);
    tile_load(Kj, pitch, K + kv_row * d, d, cols, d, TILE, d);
    __syncthreads();
    tile_scores(Sij, Qi, Kj, pitch, d);
    tile_fill(scale, a.scale);
    tile_scale_rows(Sij, scale);
    tile_put(sSij, wide_pitch(TILE), Sij);
    __syncthreads();
    tile_store(S + q_row * a.seqlen_k + j * Bc, a.seqlen_k, sSij, wide_pitch(TILE), rows, cols);
    STEP("Sij = scale Qi KjT", i, j);
}

/* P = softmax(S), two passes over the tiles of Br rows: one for m and l, one for P.
 * Grid: Tr x planes. Shared memory: Sij (TILE x TILE) and Li. */
template <int TILE>
static __global__
__launch_bounds__(THREADS, 1) void standard_softmax(struct attention a, Global<const float> S,
                                                    Global<float> P, Global<float> LSE)
{
    constexpr int R = TILE / ROW_THREADS, PITCH = wide_pitch(TILE);
    extern __shared__ __align__(16) float shared[];
    const int Br = a.block_q, Bc = a.block_k, i = (int)blockIdx.x, plane = (int)blockIdx.y;
    const int rows = min(Br, a.seqlen_q - i * Br), Tc = (a.seqlen_k + Bc - 1) / Bc;
    const int64_t q_row = (int64_t)plane * a.seqlen_q + i * Br;
    Shared<float> sSij = shared, sLi = sSij + TILE * PITCH;
    float Sij[R][TILE / COL_THREADS], m[R], l[R], c[R], Li[R];
    STEPS_BEGIN(i, 0, plane);
    tile_fill(m, -INFINITY);
    tile_fill(l, 0.0f);
    for (int j = 0; j < Tc; j++) {
        const int cols = min(Bc, a.seqlen_k - j * Bc);
        __syncthreads(); /* all have read the previous tile */
        tile_load(sSij, PITCH, S + q_row * a.seqlen_k + j * Bc, a.seqlen_k, rows, cols, TILE,
                  TILE);
        __syncthreads();
        tile_get(Sij, sSij, PITCH);
        tile_scale_and_mask(Sij, a, 1.0f, i * Br, j * Bc, rows, cols);
        online_softmax(Sij, m, l, c);
        STEP_STATISTICS("m, l of Sij", i, j, rows, m, l);
    }
    for (int j = 0; j < Tc; j++) {
        const int cols = min(Bc, a.seqlen_k - j * Bc);
        __syncthreads(); /* the previous tile has been stored */
        tile_load(sSij, PITCH, S + q_row * a.seqlen_k + j * Bc, a.seqlen_k, rows, cols, TILE,
                  TILE);
        __syncthreads();
        tile_get(Sij, sSij, PITCH);
        tile_scale_and_mask(Sij, a, 1.0f, i * Br, j * Bc, rows, cols);
        for (int r = 0; r < R; r++)
            for (int k = 0; k < TILE / COL_THREADS; k++)
                Sij[r][k] = expf(Sij[r][k] - shift_of(m[r]));
        tile_divide_rows(Sij, l);
        tile_put(sSij, PITCH, Sij); /* every thread back to where it read */
        __syncthreads();
        tile_store(P + q_row * a.seqlen_k + j * Bc, a.seqlen_k, sSij, PITCH, rows, cols);
        STEP("Pij = diag(l)^-1 exp(Sij - m)", i, j);
    }
    tile_log_sum_exp(Li, m, l);
    tile_put_rows(sLi, Li);
    __syncthreads();
    tile_store(LSE + q_row, 1, sLi, 1, rows, 1);
    STEP("store Li", i, -1);
}

/* O = P V by tiles. Grid: Tr x planes.
 * Shared memory: Pij (TILE x TILE), Vj (TILE x DV), through which Oi leaves. */
template <int TILE, int DV>
static __global__
__launch_bounds__(THREADS, 1) void standard_output(struct attention a, Global<const float> P,
                                                   Global<const float> V, Global<float> O)
{
    constexpr int P_PITCH = wide_pitch(TILE), V_PITCH = wide_pitch(DV);
    extern __shared__ __align__(16) float shared[];
    const int Br = a.block_q, Bc = a.block_k, dv = a.head_dim_v;
    const int i = (int)blockIdx.x, plane = (int)blockIdx.y;
    const int rows = min(Br, a.seqlen_q - i * Br), Tc = (a.seqlen_k + Bc - 1) / Bc;
    const int64_t q_row = (int64_t)plane * a.seqlen_q + i * Br;
    const int64_t kv_row = (int64_t)kv_plane_of(a, plane) * a.seqlen_k;
    Shared<float> Pij = shared, Vj = Pij + TILE * P_PITCH;
    float Oi[TILE / ROW_THREADS][DV / COL_THREADS];
    STEPS_BEGIN(i, 0, plane);
    tile_fill(Oi, 0.0f);
    for (int j = 0; j < Tc; j++) {
        const int cols = min(Bc, a.seqlen_k - j * Bc);
        __syncthreads(); /* all have read the previous Pij and Vj */
        tile_load(Pij, P_PITCH, P + q_row * a.seqlen_k + j * Bc, a.seqlen_k, rows, cols, TILE,
                  TILE);
        tile_load(Vj, V_PITCH, V + (kv_row + j * Bc) * dv, dv, cols, dv, TILE, DV);
        __syncthreads();
        tile_add_product(Oi, Pij, P_PITCH, Vj, V_PITCH, cols);
        STEP_NORMS("Oi = Oi + Pij Vj", i, j, rows, Oi, dv);
    }
    __syncthreads();
    tile_put(Vj, V_PITCH, Oi);
    __syncthreads();
    tile_store(O + q_row * dv, dv, Vj, V_PITCH, rows, dv);
    STEP("store Oi", i, -1);
}

template <int TILE, int DV>
static enum status launch(const struct attention *a, const struct device_tensors *t,
                          struct error *error)
{
    const int Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    const int planes = attention_planes_q(a), qk_bytes = 4 * TILE * odd_pitch(a->head_dim);
    const int s_bytes = 4 * TILE * wide_pitch(TILE), v_bytes = 4 * TILE * wide_pitch(DV);
    const struct launch_shape scores = {
        "standard_scores", {Tc, Tr, planes}, THREADS, 2 * qk_bytes + s_bytes};
    const struct launch_shape softmax = {
        "standard_softmax", {Tr, planes, 1}, THREADS, s_bytes + 4 * TILE};
    const struct launch_shape output = {
        "standard_output", {Tr, planes, 1}, THREADS, s_bytes + v_bytes};
    if (launch_prepare((const void *)standard_scores<TILE>, &scores, error) ||
        launch_prepare((const void *)standard_softmax<TILE>, &softmax, error) ||
        launch_prepare((const void *)standard_output<TILE, DV>, &output, error))
        return error->status;
    standard_scores<TILE>
        <<<launch_grid(&scores), THREADS, (size_t)scores.shared_bytes, launch_stream(t)>>>(
            *a, t->Q, t->K, t->S);
    if (launch_check(&scores, error))
        return error->status;
    standard_softmax<TILE>
        <<<launch_grid(&softmax), THREADS, (size_t)softmax.shared_bytes, launch_stream(t)>>>(
            *a, t->S, t->P, t->LSE);
    if (launch_check(&softmax, error))
        return error->status;
    standard_output<TILE, DV>
        <<<launch_grid(&output), THREADS, (size_t)output.shared_bytes, launch_stream(t)>>>(
            *a, t->P, t->V, t->O);
    return launch_check(&output, error);
}

TILED_LAUNCHER(standard_attention)
