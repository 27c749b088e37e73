#include "ladder_helpers.h"

#include "cuda/error.h"
#include "cuda/ladder/cp_async.h"
#include "cuda/ladder/exp2.h"
#include "cuda/ladder/ldmatrix.h"
#include "cuda/ladder/mma.h"
#include "cuda/ladder/row_reduction.h"
#include "cuda/ladder/swizzle.h"

/* Two elements of a row-major matrix, rows step apart. */
static __device__ uint32_t two(const uint16_t *at, int step)
{
    return at[0] | (uint32_t)at[step] << 16;
}

template <class T> static __global__ void mma_helper(const void *in, void *out)
{
    const uint16_t *A = (const uint16_t *)in, *B = A + 16 * 16;
    const int g = lane_row(), t2 = lane_col();
    float C[4] = {0, 0, 0, 0};
    const uint32_t a[4] = {two(A + 16 * g + t2, 1), two(A + 16 * (g + 8) + t2, 1),
                           two(A + 16 * g + t2 + 8, 1), two(A + 16 * (g + 8) + t2 + 8, 1)};
    for (int i = 0; i < 2; i++)
        mma<T>(C, a, two(B + 8 * t2 + g, 8), two(B + 8 * (t2 + 8) + g, 8));
    for (int e = 0; e < 4; e++)
        ((float *)out)[8 * (g + e / 2 * 8) + t2 + e % 2] = C[e];
}

template <class T> static __global__ void pack_helper(const void *in, void *out)
{
    const float2 x = ((const float2 *)in)[lane_number()];
    ((uint32_t *)out)[lane_number()] = pack<T>(x.x, x.y);
}

template <bool TRANSPOSED, enum matrix_order ORDER>
static __global__ void ldmatrix_helper(const void *in, void *out)
{
    constexpr int D = 64, ROWS = 32, CHUNKS = D / 8;
    __shared__ __align__(1024) char tile[2 * D * ROWS];
    for (int n = lane_number(); n < ROWS * CHUNKS; n += 32)
        *(uint4 *)(tile + swizzled<D>::at(n / CHUNKS, n % CHUNKS)) = ((const uint4 *)in)[n];
    __syncwarp();
    uint32_t R[4];
    const uint32_t at =
        ((shared_address(tile) + lane_offset<D, ORDER>()) ^ 32 * 2) + 2 * D * 16;
    if (TRANSPOSED)
        ldmatrix_transposed(R, at);
    else
        ldmatrix(R, at);
    for (int r = 0; r < 4; r++)
        ((uint32_t *)out)[4 * lane_number() + r] = R[r];
}

static __global__ void layouts_helper(const void *, void *out)
{
    unsigned *at = (unsigned *)out;
    for (int n = lane_number(); n < 16 * 16; n += 32) {
        at[n] = plain<128>::at(n / 16, n % 16);
        at[256 + n] = swizzled<128>::at(n / 16, n % 16);
        at[512 + n] = boxes<16>::at(n / 16, n % 16);
    }
}

/* Two groups, the second under way while the first is waited for. */
static __global__ void cp_async_helper(const void *in, void *out)
{
    __shared__ __align__(16) uint4 chunks[2][32];
    const int lane = lane_number();
    for (int group = 0; group < 2; group++) {
        cp_async(shared_address(&chunks[group][lane]), (const uint4 *)in + 32 * group + lane,
                 lane % 2 == 0);
        cp_async_commit();
    }
    cp_async_wait<1>();
    __syncwarp();
    ((uint4 *)out)[lane ^ 1] = chunks[0][lane ^ 1];
    cp_async_wait<0>();
    __syncwarp();
    ((uint4 *)out)[32 + (lane ^ 1)] = chunks[1][lane ^ 1];
}

static __global__ void row_max_helper(const void *in, void *out)
{
    ((float *)out)[lane_number()] = row_max(((const float *)in)[lane_number()]);
}

static __global__ void row_sum_helper(const void *in, void *out)
{
    ((float *)out)[lane_number()] = row_sum(((const float *)in)[lane_number()]);
}

static __global__ void row_gather_helper(const void *in, void *out)
{
    const float *from = (const float *)in + 4 * lane_number();
    const float x[2][2] = {{from[0], from[1]}, {from[2], from[3]}};
    ((float *)out)[lane_number()] = row_gather(x);
}

static __global__ void exp2_helper(const void *in, void *out)
{
    ((float *)out)[lane_number()] = exp2_of(((const float *)in)[lane_number()]);
}

static __global__ void exp2_software_helper(const void *in, void *out)
{
    ((float *)out)[lane_number()] = exp2_software(((const float *)in)[lane_number()]);
}

/* C of mma.h for 8 N columns. */
template <int N> static __device__ void product_load(float (&C)[N][4], const float *from)
{
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            C[n][e] = from[8 * N * (lane_row() + e / 2 * 8) + 8 * n + lane_col() + e % 2];
}

template <int N> static __device__ void product_store(float *to, const float (&C)[N][4])
{
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            to[8 * N * (lane_row() + e / 2 * 8) + 8 * n + lane_col() + e % 2] = C[n][e];
}

template <class T, int SOFTWARE>
static __global__ void softmax_helper(const void *in, void *out)
{
    constexpr int N = SOFTMAX_KEYS / 8;
    const struct softmax_case *x = (const struct softmax_case *)in;
    struct softmax_result *y = (struct softmax_result *)out;
    const int g = lane_row();
    const int seen[2] = {x->seen[g], x->seen[g + 8]};
    float S[N][4], O[SOFTMAX_COLUMNS / 8][4], now[2], factor[2], lse[2];
    float m[2] = {x->m[g], x->m[g + 8]}, l[2] = {x->l[g], x->l[g + 8]};
    uint32_t P[N / 2][4];
    product_load(S, x->S[0]);
    product_load(O, x->O[0]);
    scores_sign(S, x->scale);
    scores_mask(S, seen);
    scores_max(now, S, m);
    if (x->slack > 0)
        maxima_keep(now, m, x->slack);
    softmax_factor(factor, m, l, now, 1);
    rows_scale(O, factor);
    softmax_exp<SOFTWARE>(S, l, m, 1);
    scores_pack<T>(P, S);
    product_store(y->P[0], S);
    product_store(y->O[0], O);
    for (int half = 0; half < 2; half++) {
        y->m[g + 8 * half] = m[half];
        y->factor[g + 8 * half] = factor[half];
        y->l[g + 8 * half] = row_sum(l[half]);
    }
    softmax_finish(lse, O, m, l, 1);
    product_store(y->finished[0], O);
    for (int half = 0; half < 2; half++)
        y->lse[g + 8 * half] = lse[half];
    for (int k = 0; k < N / 2; k++)
        for (int r = 0; r < 4; r++)
            *(uint32_t *)&y->packed[g + r % 2 * 8][16 * k + r / 2 * 8 + lane_col()] = P[k][r];
}

enum status run_helper(enum helper helper, const void *in, void *out, struct error *error)
{
    typedef void kernel(const void *in, void *out);
    static kernel *const kernels[HELPER_COUNT] = {mma_helper<__half>,
                                                  mma_helper<__nv_bfloat16>,
                                                  pack_helper<__half>,
                                                  pack_helper<__nv_bfloat16>,
                                                  ldmatrix_helper<false, DOWN_FIRST>,
                                                  ldmatrix_helper<false, RIGHT_FIRST>,
                                                  ldmatrix_helper<true, DOWN_FIRST>,
                                                  layouts_helper,
                                                  cp_async_helper,
                                                  row_max_helper,
                                                  row_sum_helper,
                                                  row_gather_helper,
                                                  exp2_helper,
                                                  exp2_software_helper,
                                                  softmax_helper<__half, 0>,
                                                  softmax_helper<__nv_bfloat16, 0>,
                                                  softmax_helper<__nv_bfloat16, 4>};
    kernels[helper]<<<1, 32>>>(in, out);
    CUDA_TRY(cudaGetLastError(), error);
    CUDA_TRY(cudaDeviceSynchronize(), error);
    return STATUS_OK;
}
