/* Naive attention: one warp a query row, one key at a time, every operand from HBM.
 *
 * For each key the warp loads the query row and the key row again, 32 elements a request, and
 * adds up their products; then it loads the value row and adds it to its output row, with the
 * softmax kept online. Nothing but the running row (m, l, O) stays on chip, so K and V are
 * passed over once for every query: N passes.
 *
 * Twin of sim/kernels/naive_attention.c. Lane k of the warp has columns k, k + 32, ... of the
 * row; the four warps of a thread block work on four rows and know nothing of each other.
 * head_dim_v is run-time, up to 256.
 */
#include "cuda/attention.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/problem.h"
#include "cuda/steps.h"
#include "cuda/warp_reduce.h"

enum { LANES = 32, WARPS = 4, PARTS = MAX_HEAD_DIM / LANES };

static __global__ __launch_bounds__(LANES *WARPS) void naive_attention(
    struct attention a, Global<const float> Q, Global<const float> K, Global<const float> V,
    Global<float> O, Global<float> LSE)
{
    const int d = a.head_dim, dv = a.head_dim_v, lane = (int)threadIdx.x % LANES;
    const int i = (int)(blockIdx.x * WARPS + threadIdx.x / LANES), plane = (int)blockIdx.y;
    if (i >= a.seqlen_q)
        return; /* a whole warp */
    const int64_t q_row = (int64_t)plane * a.seqlen_q + i;
    const int64_t kv_row = (int64_t)kv_plane_of(a, plane) * a.seqlen_k;
    float Oi[PARTS] = {}, m = -INFINITY, l = 0.0f;
    STEPS_BEGIN_WARP(i, 0, plane);

    const int keys = visible_keys(a, i);
    for (int j = 0; j < keys; j++) {
        float products = 0.0f;
        for (int first = 0; first < d; first += LANES)
            if (first + lane < d)
                products = fmaf(Q[q_row * d + first + lane], K[(kv_row + j) * d + first + lane],
                                products);
        const float Sij = a.scale * warp_sum<LANES>(products);
        STEP("Sij = scale Qi KjT", i, j);

        const float m_new = fmaxf(m, Sij), shift = m_new == -INFINITY ? 0.0f : m_new;
        const float Pij = expf(Sij - shift), c = expf(m - shift);
        l = c * l + Pij;
        m = m_new;
        STEP("online softmax", i, j);

#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const int col = part * LANES + lane;
            if (col < dv)
                Oi[part] = c * Oi[part] + Pij * V[(kv_row + j) * dv + col];
        }
        STEP_ROWS("Oi = diag(c) Oi + Pij Vj", i, j, 1, m, l, Oi, dv);
    }
    const float inverse = l == 0.0f ? 0.0f : 1.0f / l;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
        if (part * LANES + lane < dv)
            O[q_row * dv + part * LANES + lane] = inverse * Oi[part];
    if (lane == 0)
        LSE[q_row] = l == 0.0f ? -INFINITY : m + logf(l);
    STEP("store Oi, Li", i, -1);
}

enum status launch_naive_attention(const struct attention *a, const struct device_tensors *t,
                                   struct error *error)
{
    const struct launch_shape shape = {
        "naive_attention",
        {launch_blocks(a->seqlen_q, WARPS), attention_planes_q(a), 1},
        LANES * WARPS,
        0};
    if (launch_check_dims(shape.kernel, a, error) || steps_attach(t, error) ||
        launch_prepare((const void *)naive_attention, &shape, error))
        return error->status;
    naive_attention<<<launch_grid(&shape), LANES * WARPS, 0, launch_stream(t)>>>(
        *a, t->Q, t->K, t->V, t->O, t->LSE);
    return launch_check(&shape, error);
}
