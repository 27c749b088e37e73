/* What our CUDA kernels (cuda/kernels) ask of the units of an SM: closed forms of their source,
 * for models/time.h.
 *
 * Interface:
 *   struct time_work work[KERNEL_WORK_LAUNCHES];
 *   const int launches = kernel_work_attention(work, ALGORITHM_FLASH2, &a, machine);
 *   time_of(machine, &work[0])
 *
 * The tiled kernels compute whole tiles of 16, 32 or 64 rows, and rows of V and O of 64, 128 or
 * 256 columns, whatever part of it the problem fills; copies are of what is there. Passes over
 * shared memory are exact where rows are multiples of 32 elements and tiles are full:
 * tests/test_time.c holds them to the H200's counters. Instructions beside the multiply-adds
 * are counted in the compiler's PTX, an element of a copy 29, a score 18: address arithmetic
 * and bounds make copies dear.
 */
#ifndef FLASHLAB_MODELS_KERNEL_WORK_H
#define FLASHLAB_MODELS_KERNEL_WORK_H

#include "core/attention.h"
#include "models/io_basic.h"
#include "models/time.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KERNEL_WORK_LAUNCHES = 3, KERNEL_WORK_MOST_TILE = 64, KERNEL_WORK_MOST_COLS = 256 };

/* The launches of the algorithm's kernel, in order; returns their number. fp32, tiles of up to
 * KERNEL_WORK_MOST_TILE rows and head dimensions of up to KERNEL_WORK_MOST_COLS; a has passed
 * attention_check(). A block that does not fit the machine leaves blocks_per_sm 0. */
int kernel_work_attention(struct time_work work[KERNEL_WORK_LAUNCHES], enum algorithm algorithm,
                          const struct attention *a, const struct machine *machine);

struct time_work kernel_work_matmul_naive(const struct io_matmul *shape,
                                          const struct machine *machine);
/* tile: 16, 32 or 64 */
struct time_work kernel_work_matmul_tiled(const struct io_matmul *shape, int tile,
                                          const struct machine *machine);
struct time_work kernel_work_softmax_safe(int rows, int cols, const struct machine *machine);
struct time_work kernel_work_softmax_online(int rows, int cols, const struct machine *machine);
struct time_work kernel_work_vector_add(int count, const struct machine *machine);

/* An attention kernel that does what the counts say, and no instruction more: matrix products
 * on the unit of a's dtype, other operations and exp2 beside. */
struct time_work kernel_work_counts(enum algorithm algorithm, const struct attention *a);

#ifdef __cplusplus
}
#endif

#endif
