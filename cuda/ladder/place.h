/* Which queries a thread block works on, and where the rows of its tensors are.
 *
 * Interface: the grid is w.planes_together planes wide, a tile of queries high, and as deep as
 * it takes for all planes; blocks begin in the order x, y, z.
 *   place_in_order(w)        the first queries first
 *   place_longest_first(w)   the last queries first: with a causal mask these have the most
 *                            keys, and what begins last is short
 *   sees_all(a, row, end)    true if query row sees keys 0 .. end - 1
 *   rows_of<T>(tensor, batch, head, first, end)   rows first .. end - 1 of one head
 *   rows_advance(rows, count)                     the same without the first count
 */
#ifndef FLASHLAB_CUDA_LADDER_PLACE_H
#define FLASHLAB_CUDA_LADDER_PLACE_H

#include "cuda/ladder/lane.h"
#include "cuda/ladder/step.h"

struct place {
    int plane, batch, head_q, head_kv;
    int row; /* the first query */
};

/* The plane's coordinates are read anew, as lane_number() is: a kernel asks for its place again
 * at its end. Past the last plane: plane -1. */
__device__ inline struct place place_of(const struct work &w, int tile)
{
    int x, z;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x));
    asm volatile("mov.u32 %0, %%ctaid.z;" : "=r"(z));
    const int plane = z * w.planes_together + x;
    const int batch = plane / w.a.heads_q, head_q = plane % w.a.heads_q;
    return {batch < w.a.batch ? plane : -1, batch, head_q,
            head_q / (w.a.heads_q / w.a.heads_kv), tile * w.a.block_q};
}

__device__ inline struct place place_in_order(const struct work &w)
{
    return place_of(w, (int)blockIdx.y);
}

__device__ inline struct place place_longest_first(const struct work &w)
{
    return place_of(w, (int)(gridDim.y - 1 - blockIdx.y));
}

/* The places of all blocks, numbered in the order of place_longest_first(), for blocks that go
 * through more than one. */
__device__ inline int tiles_of_queries(const struct work &w)
{
    return (w.a.seqlen_q + w.a.block_q - 1) / w.a.block_q;
}

__device__ inline int place_count(const struct work &w)
{
    return w.a.batch * w.a.heads_q * tiles_of_queries(w);
}

__device__ inline struct place place_number(const struct work &w, int n)
{
    const int planes = w.a.batch * w.a.heads_q, tiles = tiles_of_queries(w);
    const int before = n / (w.planes_together * tiles) * w.planes_together;
    const int together = min(w.planes_together, planes - before);
    const int rest = n - before * tiles, plane = before + rest % together;
    const int batch = plane / w.a.heads_q, head_q = plane % w.a.heads_q;
    return {plane, batch, head_q, head_q / (w.a.heads_q / w.a.heads_kv),
            (tiles - 1 - rest / together) * w.a.block_q};
}

/* True if the query sees all of the keys before end; written so that nothing is kept for it. */
__device__ inline bool sees_all(const struct attention &a, int row, int end)
{
    return end <= a.seqlen_k &&
           (a.mask != MASK_CAUSAL || end <= row + 1 + a.seqlen_k - a.seqlen_q);
}

/* How many tiles of keys the queries first .. first + count - 1 need. */
__device__ inline int tiles_needed(const struct attention &a, int first, int count)
{
    const int last = min(first + count, a.seqlen_q) - 1;
    return last < first ? 0 : (visible_keys(a, last) + a.block_k - 1) / a.block_k;
}

/* Rows in HBM, stride elements apart. */
template <class T> struct rows {
    T *at;
    int64_t stride;
    int count;
};

template <class T>
__device__ inline struct rows<T> rows_of(const struct ladder_tensor &t, int batch, int head,
                                         int first, int end) {
    return {(T *)t.at + batch * t.batch + head * t.head + first * t.row, t.row, end - first};
}

template <class T>
__device__ inline void rows_advance(struct rows<T> &g, int count)
{
    g.at += count * g.stride;
    g.count -= count;
}

#endif
