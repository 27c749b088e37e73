/* The kernel of as many blocks as SMs, each of which goes through many tiles of queries: the
 * idea of step 11, which the steps after it keep.
 *
 * Interface: the shape X of a step is a persistent_shape, and says what its loop does
 * (plain_loop in block_memory.h).
 *   persistent<T, X>        the kernel
 *   persistent_kernel<T, X>()   what the launcher needs of it
 *
 * The warps of a block:
 *
 *     producer warpgroup   warp 0       takes numbers of tiles, loads keys
 *                          warp 1 + g   loads the queries of consumer warpgroup g, which is
 *                                       told of the tile by the same barrier
 *     consumer warpgroups               attend(), and store O
 *
 * So the warpgroups of a block need not begin a tile together: one that is done with its last
 * keys goes on with its queries of the next tile while the others finish.
 */
#ifndef FLASHLAB_CUDA_LADDER_PERSISTENT_H
#define FLASHLAB_CUDA_LADDER_PERSISTENT_H

#include "cuda/ladder/overlap.h"
#include "cuda/ladder/producer.h"
#include "cuda/ladder/step.h"

enum { NOTHING = -1, NUMBERS = 2, SHARE_BYTES = 48 };

/* O_APART: O leaves by memory of its own, so that the next Qi may come before it has left. */
template <int D, int CONSUMERS, int BC, int PLACES, int LESS, int MORE, bool O_APART_>
struct persistent_shape : producer_shape<D, CONSUMERS, BC, PLACES, LESS, MORE> {
    typedef producer_shape<D, CONSUMERS, BC, PLACES, LESS, MORE> base;
    static constexpr int O_AT = (base::SHARED + 1023) / 1024 * 1024,
                         SHARES = O_APART_ ? O_AT + base::Q_BYTES : base::SHARED,
                         LINE = SHARES + SHARE_BYTES * CONSUMERS,
                         SHARED = LINE + NUMBERS * (2 * BARRIER_BYTES + 4);
    static constexpr bool O_APART = O_APART_;
};

/* What a block does next, told by the one that loads keys to those that load queries. */
struct line {
    uint32_t barriers; /* full, then empty */
    volatile int *numbers;
};

template <class X> __device__ inline struct line line_of(char *shared)
{
    char *line = shared + X::LINE;
    return {shared_address(line), (volatile int *)(line + 2 * NUMBERS * BARRIER_BYTES)};
}

__device__ inline void line_put(const struct line &line, struct turn &t, int number)
{
    const uint32_t full = line.barriers + BARRIER_BYTES * t.place;
    mbarrier_wait(full + BARRIER_BYTES * NUMBERS, t.parity ^ 1);
    line.numbers[t.place] = number;
    mbarrier_arrive(full);
    turn_next<NUMBERS>(t);
}

__device__ inline int line_get(const struct line &line, struct turn &t)
{
    const uint32_t full = line.barriers + BARRIER_BYTES * t.place;
    mbarrier_wait(full, t.parity);
    const int number = line.numbers[t.place];
    mbarrier_arrive(full + BARRIER_BYTES * NUMBERS);
    turn_next<NUMBERS>(t);
    return number;
}

/* A tile of queries, as a warpgroup gets it. */
struct task {
    struct place at; /* of the block's tile; plane NOTHING: none is left */
    int Tc;
};

/* Lane 0 reads for the warp: it is the one that says when the task may be written over. */
__device__ inline struct task task_read(const struct task *from)
{
    struct task task = {};
    if (lane_number() == 0)
        task = *from;
    int *const words[] = {&task.at.plane,   &task.at.batch, &task.at.head_q,
                          &task.at.head_kv, &task.at.row,   &task.Tc};
#pragma unroll
    for (int i = 0; i < (int)(sizeof task / sizeof(int)); i++)
        *words[i] = __shfl_sync(0xffffffff, *words[i], 0);
    return task;
}

/* A consumer warpgroup's share of the block's memory. */
struct share {
    uint32_t Q, Q_full, Q_empty;
    struct task *task; /* that Q is of */
    char *O;
};

template <class X> __device__ inline struct share share_of(char *shared, int group)
{
    char *own = shared + X::SHARES + SHARE_BYTES * group;
    const uint32_t Q_full = shared_address(own);
    return {shared_address(shared) + X::GROUP_BYTES * group, Q_full, Q_full + BARRIER_BYTES,
            (struct task *)(own + 2 * BARRIER_BYTES),
            shared + (X::O_APART ? X::O_AT : 0) + X::GROUP_BYTES * group};
}

/* A consumer's warp has done with Qi. */
__device__ inline void share_release(const struct share &own)
{
    __syncwarp();
    if (lane_number() == 0)
        mbarrier_arrive(own.Q_empty);
}

/* One thread: what to do next, and the keys for it. */
template <class X>
__device__ inline void load_keys(const struct tma_work &w, const struct block_memory<X> &s,
                                 const struct line &line)
{
    struct turn t = {}, next = {};
    uint32_t *taken = w.work.t.taken;
    const int count = place_count(w.work);
    for (int number = (int)blockIdx.x; number < count;) {
        line_put(line, next, number);
        const struct place at = place_number(w.work, number);
        const int Tc = visited_tiles(w.work.a, at.row / X::Br);
        for (int j = 0; j < Tc; j++)
            keys_load(s, t, w, at, j);
        /* Not earlier: whoever is done first should get it. */
        number = (int)(gridDim.x + atomicAdd(&taken[0], 1));
    }
    line_put(line, next, NOTHING);
    /* The last block leaves the words as it found them. */
    if (atomicAdd(&taken[1], 1) == gridDim.x - 1) {
        taken[0] = 0;
        taken[1] = 0;
    }
}

/* One thread for each warpgroup: its queries, as soon as there is room. */
template <class X>
__device__ inline void load_queries(const struct tma_work &w, const struct line &line,
                                    const struct share &own, int group)
{
    constexpr struct place nowhere = {NOTHING, 0, 0, 0, 0};
    struct turn next = {};
    for (uint32_t parity = 1;; parity ^= 1) {
        const int number = line_get(line, next);
        const struct place at = number == NOTHING ? nowhere : place_number(w.work, number);
        mbarrier_wait(own.Q_empty, parity);
        *own.task = {at, number == NOTHING ? 0 : visited_tiles(w.work.a, at.row / X::Br)};
        if (number == NOTHING) {
            mbarrier_arrive(own.Q_full);
            return;
        }
        mbarrier_expect(own.Q_full, X::GROUP_BYTES);
        tma_load(own.Q, &w.Q, own.Q_full, at.row + WARPGROUP_ROWS * group, at.head_q, at.batch);
    }
}

template <class T, class X>
__device__ inline void consume(const struct tma_work &w, const struct block_memory<X> &s,
                               const struct share &own, int group)
{
    struct turn t = {};
    for (uint32_t parity = 0;; parity ^= 1) {
        mbarrier_wait(own.Q_full, parity);
        const struct task task = task_read(own.task);
        if (task.at.plane == NOTHING)
            break;
        const int group_first = task.at.row + WARPGROUP_ROWS * group;
        const int first = group_first + 16 * (warp_number() % 4);
        const int own_Tc = tiles_needed(w.work.a, group_first, WARPGROUP_ROWS);
        struct rows_state<X> r;
        uint32_t P[X::Bc / 16][4];
        if constexpr (X::Q_STAYS) {
            static_assert(X::O_APART, "or O would leave by the place of the next Qi");
            uint32_t Q[X::D / 16][4];
            queries_read<X>(Q, own.Q);
            share_release(own);
            if (own_Tc > 0)
                attend<T, X>(r, P, s, t, Q, w.work.a, first, own_Tc);
        } else {
            const uint64_t Q = tile_columns(own.Q);
            if (own_Tc > 0)
                attend<T, X>(r, P, s, t, Q, w.work.a, first, own_Tc);
            if (X::O_APART)
                share_release(own);
        }
        if (own_Tc > 0)
            attend_end<T, X>(r, P, s, t);
        pass_over(s, t, own_Tc, task.Tc);
        if (!X::O_APART)
            named_barrier_sync(1 + group, WARPGROUP_THREADS); /* all have read Qi */
        output_wait();
        output_store<T, X>(w, task.at, first, own.O, r.O, r.m, r.l);
        if (!X::O_APART) {
            output_wait();
            share_release(own);
        }
    }
    output_wait();
}

template <class X>
__device__ inline void barriers_init(const struct block_memory<X> &s, const struct line &line,
                                     char *shared)
{
    for (int i = 0; i < NUMBERS; i++) {
        mbarrier_init(line.barriers + BARRIER_BYTES * i, 1);
        mbarrier_init(line.barriers + BARRIER_BYTES * (NUMBERS + i), X::GROUPS);
    }
    for (int g = 0; g < X::GROUPS; g++) {
        mbarrier_init(share_of<X>(shared, g).Q_full, 1);
        mbarrier_init(share_of<X>(shared, g).Q_empty, 4);
    }
    memory_init(s, 4 * X::GROUPS);
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS, 1) void persistent(const __grid_constant__ struct tma_work w)
{
    extern __shared__ __align__(1024) char shared[];
    const struct block_memory<X> s = memory_at<X>(shared);
    const struct line line = line_of<X>(shared);
    if (threadIdx.x == 0)
        barriers_init(s, line, shared);
    __syncthreads();
    if (warpgroup_number() == 0) {
        warpgroup_registers_less<X::LESS>();
        const int warp = warp_number();
        if (lane_number() == 0 && warp == 0)
            load_keys<X>(w, s, line);
        else if (lane_number() == 0 && warp <= X::GROUPS)
            load_queries<X>(w, line, share_of<X>(shared, warp - 1), warp - 1);
    } else {
        warpgroup_registers_more<X::MORE>();
        const int group = warpgroup_number() - 1;
        consume<T, X>(w, s, share_of<X>(shared, group), group);
    }
}

template <class T, class X> static struct kernel persistent_kernel()
{
    return {(const void *)persistent<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

#endif
