/* What a thread block does with tiles: copies between HBM and shared memory, products and the
 * online softmax. The counterpart of sim/ops and of tile_load and tile_store in sim/core.
 *
 * A thread block is THREADS threads, laid over a tile as ROW_THREADS x COL_THREADS: the thread
 * at (ty, tx) owns rows ty, ty + ROW_THREADS, ... and columns tx, tx + COL_THREADS, ..., kept
 * in registers as float S[R][C]. The 16 threads of a row are half a warp, so row maxima and
 * sums are four shuffles.
 *
 * Pitches of tiles in shared memory, in floats, keep a warp's 32 accesses on distinct banks:
 *   odd                 16 threads read 16 rows of one column (K, and Q beside it)
 *   16 modulo 32        two rows of 16 columns each are written or read (P, V, O)
 * Copies are free of conflicts where rows are multiples of 32 long; where a request of a warp
 * runs over the end of a row, its two pieces may share a bank.
 */
#ifndef FLASHLAB_CUDA_TILE_H
#define FLASHLAB_CUDA_TILE_H

#include "cuda/memory.h"
#include "cuda/warp_reduce.h"

enum { THREADS = 128, COL_THREADS = 16, ROW_THREADS = THREADS / COL_THREADS };

/* The least pitch for cols columns that is odd, and that is 16 modulo 32. */
__host__ __device__ constexpr int odd_pitch(int cols)
{
    return cols | 1;
}
__host__ __device__ constexpr int wide_pitch(int cols)
{
    return (cols + 15) / 32 * 32 + 16;
}

__device__ inline int thread_row()
{
    return (int)threadIdx.x / COL_THREADS;
}
__device__ inline int thread_col()
{
    return (int)threadIdx.x % COL_THREADS;
}

/* A thread's way over the elements of a tile in row-major order, THREADS at a time: a warp's
 * request covers 32 consecutive elements. Loops over it make the same number of rounds in every
 * thread, so that no request is split where the compiler unrolls them. */
struct walk {
    int row, col;
};

__device__ inline struct walk walk_begin(int cols)
{
    return {(int)threadIdx.x / cols, (int)threadIdx.x % cols};
}
__device__ inline void walk_on(struct walk *at, int cols)
{
    at->row += THREADS / cols;
    at->col += THREADS % cols;
    if (at->col >= cols) {
        at->col -= cols;
        at->row++;
    }
}

/* tile_load() with BATCH loads of a thread under way before it stores the first: one at a time
 * would wait for HBM each time. */
template <int BATCH>
__device__ inline void tile_load_batches(Shared<float> dst, int pitch, Global<const float> src,
                                         int stride, int rows, int cols)
{
    struct walk at = walk_begin(cols);
    for (int first = 0; first < rows * cols; first += BATCH * THREADS) {
        float value[BATCH];
        int place[BATCH];
#pragma unroll
        for (int n = 0; n < BATCH; n++) {
            place[n] = at.row < rows ? at.row * pitch + at.col : -1;
            if (place[n] >= 0)
                value[n] = src[(int64_t)at.row * stride + at.col];
            walk_on(&at, cols);
        }
#pragma unroll
        for (int n = 0; n < BATCH; n++)
            if (place[n] >= 0)
                dst[place[n]] = value[n];
    }
}

/* dst (rows x cols, rows pitch apart) <- 0 */
__device__ inline void tile_clear(Shared<float> dst, int pitch, int rows, int cols)
{
    struct walk at = walk_begin(cols);
    for (int first = 0; first < rows * cols; first += THREADS) {
        if (at.row < rows)
            dst[at.row * pitch + at.col] = 0.0f;
        walk_on(&at, cols);
    }
}

/* dst (rows pitch apart) <- src (rows x cols, rows stride apart), and 0 in the rest of
 * full_rows x full_cols: what threads beyond the edge of a ragged tile read. */
__device__ inline void tile_load(Shared<float> dst, int pitch, Global<const float> src,
                                 int stride, int rows, int cols, int full_rows, int full_cols)
{
    if (rows * cols > 2 * THREADS)
        tile_load_batches<8>(dst, pitch, src, stride, rows, cols);
    else
        tile_load_batches<2>(dst, pitch, src, stride, rows, cols);
    if (cols < full_cols)
        tile_clear(dst + cols, pitch, rows, full_cols - cols);
    if (rows < full_rows)
        tile_clear(dst + rows * pitch, pitch, full_rows - rows, full_cols);
}

/* dst (rows x cols, rows stride apart) <- src (rows x cols, rows pitch apart) */
__device__ inline void tile_store(Global<float> dst, int stride, Shared<const float> src,
                                  int pitch, int rows, int cols)
{
    struct walk at = walk_begin(cols);
#pragma unroll 4
    for (int first = 0; first < rows * cols; first += THREADS) {
        if (at.row < rows)
            dst[(int64_t)at.row * stride + at.col] = src[at.row * pitch + at.col];
        walk_on(&at, cols);
    }
}

/* A block's registers -> shared memory, and back. All rows and columns of the
 * register tile, beyond the edge of a ragged tile too. */
template <int R, int C>
__device__ inline void tile_put(Shared<float> dst, int pitch, const float (&tile)[R][C])
{
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            dst[(thread_row() + r * ROW_THREADS) * pitch + thread_col() + c * COL_THREADS] =
                tile[r][c];
}
template <int R, int C>
__device__ inline void tile_get(float (&tile)[R][C], Shared<const float> src, int pitch)
{
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            tile[r][c] =
                src[(thread_row() + r * ROW_THREADS) * pitch + thread_col() + c * COL_THREADS];
}

template <int R, int C> __device__ inline void tile_fill(float (&tile)[R][C], float value)
{
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            tile[r][c] = value;
}

/* A value a row. In registers every thread of a row has it; in shared memory it is there once.
 */
template <int R> __device__ inline void tile_fill(float (&rows)[R], float value)
{
    for (int r = 0; r < R; r++)
        rows[r] = value;
}
template <int R> __device__ inline void tile_put_rows(Shared<float> dst, const float (&rows)[R])
{
    for (int r = 0; r < R; r++)
        if (thread_col() == 0)
            dst[thread_row() + r * ROW_THREADS] = rows[r];
}
template <int R> __device__ inline void tile_get_rows(float (&rows)[R], Shared<const float> src)
{
    for (int r = 0; r < R; r++)
        rows[r] = src[thread_row() + r * ROW_THREADS];
}

/* S <- Q K^T over depth columns of Q and K, both in shared memory. */
template <int R, int C>
__device__ inline void tile_scores(float (&S)[R][C], Shared<const float> Q,
                                   Shared<const float> K, int pitch, int depth)
{
    tile_fill(S, 0.0f);
    Q += thread_row() * pitch;
    K += thread_col() * pitch;
#pragma unroll 4
    for (int k = 0; k < depth; k++) {
        float q[R], key[C];
        for (int r = 0; r < R; r++)
            q[r] = Q[r * ROW_THREADS * pitch + k];
        for (int c = 0; c < C; c++)
            key[c] = K[c * COL_THREADS * pitch + k];
        for (int r = 0; r < R; r++)
            for (int c = 0; c < C; c++)
                S[r][c] = fmaf(q[r], key[c], S[r][c]);
    }
}

/* O <- O + P V over depth columns of P, which are rows of V; both in shared memory. P is read
 * four columns at a time: its rows begin at multiples of 16 bytes, and up to the next multiple
 * of four both tiles hold zeros. */
template <int R, int C>
__device__ inline void tile_add_product(float (&O)[R][C], Shared<const float> P, int p_pitch,
                                        Shared<const float> V, int v_pitch, int depth)
{
    P += thread_row() * p_pitch;
    V += thread_col();
    for (int k = 0; k < depth; k += 4) {
        float p[R][4], v[C];
        for (int r = 0; r < R; r++)
            load4(p[r], P + r * ROW_THREADS * p_pitch + k);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            for (int c = 0; c < C; c++)
                v[c] = V[(k + n) * v_pitch + c * COL_THREADS];
            for (int r = 0; r < R; r++)
                for (int c = 0; c < C; c++)
                    O[r][c] = fmaf(p[r][n], v[c], O[r][c]);
        }
    }
}

/* O <- diag(c) O */
template <int R, int C>
__device__ inline void tile_scale_rows(float (&O)[R][C], const float (&c)[R])
{
    for (int r = 0; r < R; r++)
        for (int k = 0; k < C; k++)
            O[r][k] *= c[r];
}

/* O <- diag(l)^-1 O, rows with l = 0 become 0. */
template <int R, int C>
__device__ inline void tile_divide_rows(float (&O)[R][C], const float (&l)[R])
{
    for (int r = 0; r < R; r++) {
        const float inverse = l[r] == 0.0f ? 0.0f : 1.0f / l[r];
        for (int k = 0; k < C; k++)
            O[r][k] = l[r] == 0.0f ? 0.0f : O[r][k] * inverse;
    }
}

/* Li <- m + log l, -inf in rows with l = 0. */
template <int R>
__device__ inline void tile_log_sum_exp(float (&Li)[R], const float (&m)[R],
                                        const float (&l)[R])
{
    for (int r = 0; r < R; r++)
        Li[r] = l[r] == 0.0f ? -INFINITY : m[r] + logf(l[r]);
}

/* Over the 16 threads of a row. The maximum passes over NaN; exp brings it back. */
__device__ inline float row_max(float x)
{
    return warp_max<COL_THREADS>(x);
}
__device__ inline float row_sum(float x)
{
    return warp_sum<COL_THREADS>(x);
}

/* What is subtracted from scores relative to the maximum m: (-inf) - (-inf) never happens. */
__device__ inline float shift_of(float m)
{
    return m == -INFINITY ? 0.0f : m;
}

/* One tile of scores meets the running statistics of its rows: m and l as they are afterwards,
 * S <- exp(S - m), and c, the factor from sums relative to the old m to sums relative to the
 * new. Dao 2023, Algorithm 1, line 9. */
template <int R, int C>
__device__ inline void online_softmax(float (&S)[R][C], float (&m)[R], float (&l)[R],
                                      float (&c)[R])
{
    for (int r = 0; r < R; r++) {
        float m_new = m[r], sum = 0.0f;
        for (int k = 0; k < C; k++)
            m_new = fmaxf(m_new, S[r][k]);
        m_new = row_max(m_new);
        for (int k = 0; k < C; k++) {
            S[r][k] = expf(S[r][k] - shift_of(m_new));
            sum += S[r][k];
        }
        c[r] = expf(m[r] - shift_of(m_new));
        l[r] = c[r] * l[r] + row_sum(sum);
        m[r] = m_new;
    }
}

#endif
