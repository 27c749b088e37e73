#include "ladder_hopper.h"

#include "core/status.h"
#include "cuda/error.h"
#include "cuda/ladder/mma.h"
#include "cuda/ladder/ring.h"
#include "cuda/ladder/step.h"
#include "cuda/ladder/swizzle.h"
#include "cuda/ladder/warpgroup.h"
#include "cuda/ladder/wgmma.h"

static enum status wait_for(struct error *error)
{
    CUDA_TRY(cudaGetLastError(), error);
    CUDA_TRY(cudaDeviceSynchronize(), error);
    return STATUS_OK;
}

/* Row-major rows of chunks, as many a row, into a tile; all of the block's threads. */
template <class LAYOUT>
static __device__ void tile_fill(char *tile, const uint4 *from, int rows, int chunks)
{
    for (int n = (int)threadIdx.x; n < rows * chunks; n += (int)blockDim.x)
        *(uint4 *)(tile + LAYOUT::at(n / chunks, n % chunks)) = from[n];
}

static __global__ void mbarrier_helper(int *out)
{
    __shared__ uint64_t memory;
    const uint32_t barrier = shared_address(&memory);
    mbarrier_init(barrier, 3);
    mbarrier_init_done();
    for (int i = 0; i < 9; i++) {
        out[2 * i] = mbarrier_passed(barrier, 0);
        out[2 * i + 1] = mbarrier_passed(barrier, 1);
        mbarrier_arrive(barrier);
    }
    mbarrier_wait(barrier, 0);
}

enum status run_mbarrier(int *out, struct error *error)
{
    mbarrier_helper<<<1, 1>>>(out);
    return wait_for(error);
}

struct box_place {
    enum boxed tensor;
    int bytes, row, head, batch;
};

static __device__ const CUtensorMap *map_of(const struct tma_work &w, enum boxed tensor)
{
    return tensor == BOXED_Q   ? &w.Q
           : tensor == BOXED_K ? &w.K
           : tensor == BOXED_V ? &w.V
                               : &w.O;
}

static __global__ void tma_load_helper(const __grid_constant__ struct tma_work w,
                                       struct box_place at, uint4 *out)
{
    extern __shared__ __align__(1024) char tile[];
    __shared__ uint64_t memory;
    const uint32_t barrier = shared_address(&memory);
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        mbarrier_init_done();
        mbarrier_expect(barrier, at.bytes);
        tma_load(shared_address(tile), map_of(w, at.tensor), barrier, at.row, at.head,
                 at.batch);
    }
    __syncthreads();
    mbarrier_wait(barrier, 0);
    for (int n = (int)threadIdx.x; n < at.bytes / 16; n += (int)blockDim.x)
        out[n] = ((const uint4 *)tile)[n];
}

static __global__ void tma_bytes_helper(const __grid_constant__ struct tma_work w,
                                        struct box_place at, int *out)
{
    extern __shared__ __align__(1024) char tile[];
    __shared__ uint64_t memory;
    const uint32_t barrier = shared_address(&memory);
    mbarrier_init(barrier, 1);
    mbarrier_init_done();
    mbarrier_expect(barrier, 2 * at.bytes);
    for (int i = 0; i < 2; i++) {
        tma_load(shared_address(tile) + at.bytes * i, map_of(w, at.tensor), barrier, at.row,
                 at.head, at.batch);
        out[i] = 0;
        for (int tries = 0; tries < 1000 && !out[i]; tries++) {
            __nanosleep(100);
            out[i] = mbarrier_passed(barrier, 0);
        }
    }
}

static __global__ void tma_store_helper(const __grid_constant__ struct tma_work w,
                                        struct box_place at, const uint4 *from)
{
    constexpr int ROWS = 16;
    extern __shared__ __align__(1024) char tile[];
    tile_fill<boxes<ROWS>>(tile, from, ROWS, at.bytes / ROWS / 16);
    tma_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        tma_store(map_of(w, at.tensor), shared_address(tile), at.row, at.head, at.batch);
        tma_store_commit();
        tma_store_wait();
    }
}

static enum status prepare(struct tma_work *w, struct box_place *at, const struct box *box,
                           const void *kernel, int shared_bytes, struct error *error)
{
    *at = {box->tensor, 2 * box->rows * box->a.head_dim, box->row, box->head, box->batch};
    w->work = {box->a, box->t, 1};
    CUDA_TRY(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        error);
    return tensor_maps(w, error);
}

enum status run_tma_load(void *tile, const struct box *box, struct error *error)
{
    struct tma_work w;
    struct box_place at;
    const int bytes = 2 * box->rows * box->a.head_dim;
    if (prepare(&w, &at, box, (const void *)tma_load_helper, bytes, error))
        return error->status;
    tma_load_helper<<<1, 128, bytes>>>(w, at, (uint4 *)tile);
    return wait_for(error);
}

enum status run_tma_bytes(int *out, const struct box *box, struct error *error)
{
    struct tma_work w;
    struct box_place at;
    const int bytes = 4 * box->rows * box->a.head_dim;
    if (prepare(&w, &at, box, (const void *)tma_bytes_helper, bytes, error))
        return error->status;
    tma_bytes_helper<<<1, 1, bytes>>>(w, at, out);
    return wait_for(error);
}

enum status run_tma_store(const void *tile, const struct box *box, struct error *error)
{
    struct tma_work w;
    struct box_place at;
    const int bytes = 2 * box->rows * box->a.head_dim;
    if (prepare(&w, &at, box, (const void *)tma_store_helper, bytes, error))
        return error->status;
    tma_store_helper<<<1, 32, bytes>>>(w, at, (const uint4 *)tile);
    return wait_for(error);
}

enum {
    RING_ROWS = 64,
    RING_CHUNKS = 8,
    RING_BYTES = RING_ROWS * RING_CHUNKS * 16,
    CONSUMERS = 4
};

/* Sleep makes every place late once for those who load and once for those who read. */
template <int PLACES>
static __global__ void ring_helper(const __grid_constant__ struct tma_work w, uint4 *out)
{
    extern __shared__ __align__(1024) char shared[];
    const uint32_t start = shared_address(shared);
    const struct ring<PLACES, RING_BYTES> r = {
        start, start + PLACES *RING_BYTES
    };
    const int warp = warp_number(), lane = lane_number();
    struct turn t = {};
    if (threadIdx.x == 0) {
        ring_init(r, CONSUMERS);
        mbarrier_init_done();
    }
    __syncthreads();
    for (int row = 0; row < w.work.a.seqlen_k; row += RING_ROWS) {
        const int j = row / RING_ROWS;
        if (warp == CONSUMERS && lane == 0) {
            __nanosleep(j % 5 == 3 ? 20000 : 0);
            ring_fill(r, t, &w.K, row, 0, 0);
        } else if (warp < CONSUMERS) {
            const char *tile = shared + (ring_await(r, t) - start);
            __nanosleep(j % 3 == 1 && j % CONSUMERS == warp ? 50000 : 0);
            for (int n = lane + 32 * warp; n < RING_ROWS * RING_CHUNKS; n += 32 * CONSUMERS)
                out[row * RING_CHUNKS + n] =
                    *(const uint4 *)(tile +
                                     boxes<RING_ROWS>::at(n / RING_CHUNKS, n % RING_CHUNKS));
            ring_release(r, t);
        }
        turn_next<PLACES>(t);
    }
}

enum status run_ring(void *out, const struct box *box, int places, struct error *error)
{
    struct tma_work w;
    struct box_place at;
    const auto kernel = places == 2 ? ring_helper<2> : ring_helper<3>;
    const int bytes = places * (RING_BYTES + 2 * BARRIER_BYTES);
    if (prepare(&w, &at, box, (const void *)kernel, bytes, error))
        return error->status;
    kernel<<<1, 32 * (CONSUMERS + 1), bytes>>>(w, (uint4 *)out);
    return wait_for(error);
}

/* Where a lane's elements of C are: see mma.h. */
template <int N> static __device__ void product_store(float *out, const float (&C)[N][4])
{
    const int row = 16 * warp_number() + lane_row();
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            out[8 * N * (row + e / 2 * 8) + 8 * n + lane_col() + e % 2] = C[n][e];
}

template <int N> static __device__ void product_fill(float (&C)[N][4], float x)
{
    for (int n = 0; n < N; n++)
        for (int e = 0; e < 4; e++)
            C[n][e] = x;
}

/* C <- A B, + C if add; A by descriptor, or in registers. */
template <class T, int N>
static __device__ void product_begin(float (&C)[N][4], uint64_t A, uint64_t B, bool add)
{
    wgmma_begin(C);
    for (int k = 0; k < WGMMA_D / 16; k++)
        wgmma<T>(C, A + columns_step<WGMMA_ROWS>(k), B + columns_step<8 * N>(k), add || k > 0);
    wgmma_commit();
}

template <class T, int N>
static __device__ void product_begin(float (&C)[N][4], uint32_t (&A)[WGMMA_D / 16][4],
                                     uint64_t B, bool add)
{
    wgmma_begin(C, A);
    for (int k = 0; k < WGMMA_D / 16; k++)
        wgmma<T>(C, A[k], B + columns_step<8 * N>(k), add || k > 0);
    wgmma_commit();
}

template <class T, int COLUMNS, class OPERAND>
static __device__ void two_products(float *out, OPERAND &A, uint64_t B)
{
    float fresh[COLUMNS / 8][4], added[COLUMNS / 8][4];
    product_fill(fresh, NAN);
    product_fill(added, 1);
    product_begin<T>(fresh, A, B, false);
    product_begin<T>(added, A, B, true);
    wgmma_wait<1>(fresh);
    product_store(out, fresh);
    wgmma_wait<0>(added);
    product_store(out + WGMMA_ROWS * COLUMNS, added);
}

/* MIXED: A in registers, read from its tile by ldmatrix. */
template <class T, bool MIXED, int COLUMNS>
static __global__ void wgmma_shared_helper(float *out, const uint4 *in)
{
    constexpr int CHUNKS = WGMMA_D / 8, A_BYTES = 2 * WGMMA_ROWS * WGMMA_D;
    extern __shared__ __align__(1024) char shared[];
    tile_fill<boxes<WGMMA_ROWS>>(shared, in, WGMMA_ROWS, CHUNKS);
    tile_fill<boxes<COLUMNS>>(shared + A_BYTES, in + WGMMA_ROWS * CHUNKS, COLUMNS, CHUNKS);
    tma_fence();
    __syncthreads();
    const uint32_t tile = shared_address(shared);
    const uint64_t A = tile_columns(tile), B = tile_columns(tile + A_BYTES);
    if constexpr (MIXED) {
        const uint32_t rows = tile + 128 * 16 * warp_number() + lane_offset<64, DOWN_FIRST>();
        uint32_t fragments[WGMMA_D / 16][4];
        for (int k = 0; k < WGMMA_D / 16; k++)
            ldmatrix(fragments[k], box_right<WGMMA_ROWS>(rows, k));
        two_products<T, COLUMNS>(out, fragments, B);
        registers_settle(fragments);
    } else {
        two_products<T, COLUMNS>(out, A, B);
    }
}

template <class T, int COLUMNS>
static __global__ void wgmma_registers_helper(float *out, const uint4 *in)
{
    extern __shared__ __align__(1024) char tile[];
    const uint32_t *pairs = (const uint32_t *)in; /* of A's elements */
    const int row = 16 * warp_number() + lane_row();
    uint32_t A[WGMMA_KEYS / 16][4];
    float C[COLUMNS / 8][4];
    tile_fill<boxes<WGMMA_KEYS>>(tile, in + WGMMA_ROWS * WGMMA_KEYS / 8, WGMMA_KEYS,
                                 COLUMNS / 8);
    for (int k = 0; k < WGMMA_KEYS / 16; k++)
        for (int r = 0; r < 4; r++)
            A[k][r] =
                pairs[(WGMMA_KEYS * (row + r % 2 * 8) + 16 * k + r / 2 * 8 + lane_col()) / 2];
    tma_fence();
    __syncthreads();
    const uint64_t B = tile_rows<WGMMA_KEYS>(shared_address(tile));
    product_fill(C, 1);
    wgmma_begin(C, A);
    for (int k = 0; k < WGMMA_KEYS / 16; k++)
        wgmma<T>(C, A[k], B + rows_step(k));
    wgmma_commit();
    wgmma_wait<0>(C, A);
    product_store(out, C);
}

typedef void wgmma_kernel(float *out, const uint4 *in);

static enum status run_wgmma(wgmma_kernel *kernel, float *out, const void *in, int bytes,
                             struct error *error)
{
    CUDA_TRY(cudaFuncSetAttribute((const void *)kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             error);
    kernel<<<1, WARPGROUP_THREADS, bytes>>>(out, (const uint4 *)in);
    return wait_for(error);
}

template <class T> static wgmma_kernel *shared_kernel(int columns)
{
    return columns == 64   ? wgmma_shared_helper<T, false, 64>
           : columns == 80 ? wgmma_shared_helper<T, false, 80>
                           : wgmma_shared_helper<T, false, 128>;
}

template <class T> static wgmma_kernel *registers_kernel(int columns)
{
    return columns == 64    ? wgmma_registers_helper<T, 64>
           : columns == 128 ? wgmma_registers_helper<T, 128>
                            : wgmma_registers_helper<T, 256>;
}

enum status run_wgmma_shared(float *out, const void *in, enum dtype dtype, int columns,
                             struct error *error)
{
    return run_wgmma(dtype == DTYPE_F16 ? shared_kernel<__half>(columns)
                                        : shared_kernel<__nv_bfloat16>(columns),
                     out, in, 2 * WGMMA_D * (WGMMA_ROWS + columns), error);
}

enum status run_wgmma_mixed(float *out, const void *in, enum dtype dtype, int columns,
                            struct error *error)
{
    CHECK(columns == 128, "%d columns", columns);
    return run_wgmma(dtype == DTYPE_F16 ? wgmma_shared_helper<__half, true, 128>
                                        : wgmma_shared_helper<__nv_bfloat16, true, 128>,
                     out, in, 2 * WGMMA_D * (WGMMA_ROWS + columns), error);
}

enum status run_wgmma_registers(float *out, const void *in, enum dtype dtype, int columns,
                                struct error *error)
{
    return run_wgmma(dtype == DTYPE_F16 ? registers_kernel<__half>(columns)
                                        : registers_kernel<__nv_bfloat16>(columns),
                     out, in, 2 * WGMMA_KEYS * columns, error);
}

/* Barriers 1 and 2: the turns of warpgroup 0 and 1; 3: what was written is there. */
static __global__ void named_barriers_helper(int *log)
{
    __shared__ int written[WARPGROUP_THREADS];
    __shared__ volatile int turns;
    const int group = warpgroup_number(), thread = (int)threadIdx.x % WARPGROUP_THREADS;
    if (threadIdx.x == 0)
        turns = 0;
    __syncthreads();
    if (group == 1)
        named_barrier_arrive(1, 2 * WARPGROUP_THREADS);
    for (int i = 0; i < TURNS; i++) {
        named_barrier_sync(1 + group, 2 * WARPGROUP_THREADS);
        if (thread == 0) {
            log[turns] = group;
            turns = turns + 1;
        }
        if (group == 0 || i + 1 < TURNS)
            named_barrier_arrive(2 - group, 2 * WARPGROUP_THREADS);
    }
    if (group == 0) {
        __nanosleep(20000);
        written[thread] = thread + 1;
        named_barrier_arrive(3, 2 * WARPGROUP_THREADS);
    } else {
        named_barrier_sync(3, 2 * WARPGROUP_THREADS);
        log[2 * TURNS + thread] = written[(thread + 1) % WARPGROUP_THREADS];
    }
}

enum status run_named_barriers(int *log, struct error *error)
{
    named_barriers_helper<<<1, 2 * WARPGROUP_THREADS>>>(log);
    return wait_for(error);
}

/* More values at a time than a thread had registers at the start: 65536 / 384 are 168. */
static __global__ __launch_bounds__(3 * WARPGROUP_THREADS,
                                    1) void registers_helper(unsigned *out)
{
    if (warpgroup_number() == 0) {
        warpgroup_registers_less<24>();
        return;
    }
    warpgroup_registers_more<240>();
    const unsigned thread = threadIdx.x - WARPGROUP_THREADS;
    unsigned x[MIXED], sum = 0;
#pragma unroll
    for (int i = 0; i < MIXED; i++)
        x[i] = thread * 31 + i;
#pragma unroll 1
    for (int round = 0; round < MIXING_ROUNDS; round++)
#pragma unroll
        for (int i = 0; i < MIXED; i++)
            x[i] = x[i] * 3 + x[(i + 7) % MIXED];
#pragma unroll
    for (int i = 0; i < MIXED; i++)
        sum ^= x[i] * (i + 1);
    out[thread] = sum;
}

enum status run_registers(unsigned *out, struct error *error)
{
    registers_helper<<<1, 3 * WARPGROUP_THREADS>>>(out);
    return wait_for(error);
}
