/* Step 10: the softmax of one tile while the tensor cores work on the next.
 *
 * Idea: a warpgroup of step 08 waits for its scores, then has nothing for the tensor cores
 * until its softmax is done. Here it begins the scores of tile j and the product with Vj-1
 * together; as soon as the scores are there it goes into their softmax, and the product with
 * Vj-1 runs beside it (overlap.h). P has to be kept beside S for that: 32 registers more for
 * 128 keys. A warpgroup also passes over tiles that only the queries of another one see.
 *
 * Predicted: what FlashAttention-3 reports for it, 1.14 (661 over 582 TFLOP/s).
 * Measured: 0.93 of cuDNN's rate, where step 08 has 1.01. P beside S leaves registers for two
 * warpgroups, step 08 has three, and a third fills the same gaps. With two in both, for d =
 * 256, 1.01 where step 08 has 0.91; for d = 64, with three where step 08 has four, 1.03
 * and 1.02. Whether the compiler puts the exponentials before or after the wait for P V makes
 * no difference: with two warpgroups one is in its products while the other waits.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/overlap.h"
#include "cuda/ladder/producer.h"
#include "cuda/ladder/step.h"

template <class T, class X>
__device__ inline void consume(const struct tma_work &w, const struct place &at,
                               const struct block_memory<X> &s, int Tc, char *shared)
{
    const int group = warpgroup_number() - 1;
    const int group_first = at.row + WARPGROUP_ROWS * group;
    const int first = group_first + 16 * (warp_number() % 4);
    const int own = tiles_needed(w.work.a, group_first, WARPGROUP_ROWS);
    const uint64_t Q = tile_columns(s.Q + X::GROUP_BYTES * group);
    struct rows_state<X> r;
    uint32_t P[X::Bc / 16][4];
    struct turn t = {};
    mbarrier_wait(s.Q_full, 0);
    if (own > 0) {
        attend<T, X>(r, P, s, t, Q, w.work.a, first, own);
        attend_end<T, X>(r, P, s, t);
    }
    pass_over(s, t, own, Tc);
    named_barrier_sync(1 + group, WARPGROUP_THREADS); /* all have read Qi */
    output_store<T, X>(w, at, first, shared + X::GROUP_BYTES * group, r.O, r.m, r.l);
    output_wait();
}

template <class T, class X>
static __global__
__launch_bounds__(X::THREADS, 1) void overlap_step(const __grid_constant__ struct tma_work w)
{
    extern __shared__ __align__(1024) char shared[];
    divide_roles<X>(w, shared, consume<T, X>);
}

template <int D> struct chosen;
template <> struct chosen<64> : producer_shape<64, 3, 128, 2, 32, 160> {
};
template <> struct chosen<128> : producer_shape<128, 2, 128, 2, 24, 240> {
};
template <> struct chosen<256> : producer_shape<256, 2, 64, 2, 24, 240> {
};

template <class T, int D> static struct kernel kernel_of()
{
    typedef chosen<D> X;
    return {(const void *)overlap_step<T, X>, X::THREADS, X::Br, X::Bc, X::SHARED};
}

LADDER_STEP(overlap, "10_overlap", LONGEST_FIRST | COPY_ENGINE)
