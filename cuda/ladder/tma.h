/* TMA: the copy engine moves whole tiles between HBM and shared memory, told so by one thread.
 *
 * Interface: maps are those of struct tma_work (step.h), made by the launcher.
 *   tma_load(tile, map, barrier, row, head, batch)    the box whose first row is row; its bytes
 *                                                     arrive at the mbarrier
 *   tma_store(map, tile, row, head, batch)            the same to HBM
 *   tma_store_commit(), tma_store_wait()              until what was committed has been read
 *   tma_fence()           a thread's ordinary stores to shared memory, before a tma_store() of
 *                         the same data by any thread that a barrier lets go after it
 *
 * A box is ROWS rows of a head's D columns. The engine sees the tensor in five dimensions, 64
 * columns, rows, D / 64, heads, batch, so that the box lies in shared memory as D / 64 blocks
 * of ROWS rows of 128 bytes, each swizzled like swizzled<64> of swizzle.h:
 *
 *            128 bytes: columns 0-63                columns 64-127
 *     row 0   0 1 2 3 4 5 6 7                row 0   0 1 2 3 4 5 6 7       chunks of 16 bytes
 *     row 1   1 0 3 2 5 4 7 6                row 1   1 0 3 2 5 4 7 6
 *     ...                                    ...
 *     row ROWS - 1                           row ROWS - 1
 *     bytes 0 ... 128 ROWS - 1               128 ROWS ... 256 ROWS - 1
 *
 * A tile starts at a multiple of 1024 bytes: the engine swizzles by the address. Rows past the
 * tensor's last are filled with zeros, whose bytes arrive like any others, and not stored.
 *
 * Source: PTX ISA, "Data Movement and Conversion Instructions": "cp.async.bulk.tensor",
 * "cp.async.bulk.commit_group", "cp.async.bulk.wait_group"; "Tensors: Swizzling Modes" (128B);
 * "membar/fence" (proxy).
 */
#ifndef FLASHLAB_CUDA_LADDER_TMA_H
#define FLASHLAB_CUDA_LADDER_TMA_H

#include <cuda.h>
#include <stdint.h>

__device__ inline void tma_load(uint32_t tile, const CUtensorMap *map, uint32_t barrier,
                                int row, int head, int batch)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %3, %5, %6}], [%2];" ::"r"(tile),
                 "l"(map), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(batch)
                 : "memory");
}

__device__ inline void tma_store(const CUtensorMap *map, uint32_t tile, int row, int head,
                                 int batch)
{
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group "
                 "[%1, {%2, %3, %2, %4, %5}], [%0];" ::"r"(tile),
                 "l"(map), "r"(0), "r"(row), "r"(head), "r"(batch)
                 : "memory");
}

__device__ inline void tma_store_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ inline void tma_store_wait()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ inline void tma_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
