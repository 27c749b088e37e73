/* The element-wise, matrix product and softmax kernels: launchers.
 *
 * Interface: each puts one run on the stream (NULL: the default) and returns, like the
 * launchers of cuda/attention.h. Pointers are device addresses, multiples of 256 bytes;
 * matrices are fp32, row-major. Every extent may be anything from 1 on. Twins:
 * sim/kernels/basic_kernels.h.
 */
#ifndef FLASHLAB_CUDA_BASIC_H
#define FLASHLAB_CUDA_BASIC_H

#include <stdint.h>

#include "cuda/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* c <- a + b, count elements each. */
enum status launch_vector_add(float *c, const float *a, const float *b, int64_t count,
                              void *stream, struct error *error);

/* C (rows x cols) = A (rows x depth) B (depth x cols). */
struct matmul_shape {
    int rows, cols, depth;
};

/* One thread an element of C, every operand from HBM. */
enum status launch_matmul_naive(float *C, const float *A, const float *B,
                                const struct matmul_shape *shape, void *stream,
                                struct error *error);

/* Tiles of tile x tile in shared memory, one thread an element of C; tile is 16 or 32. */
enum status launch_matmul_shared(float *C, const float *A, const float *B,
                                 const struct matmul_shape *shape, int tile, void *stream,
                                 struct error *error);

/* Several elements of C a thread, in registers; tile is 16, 32 or 64. */
enum status launch_matmul_tiled(float *C, const float *A, const float *B,
                                const struct matmul_shape *shape, int tile, void *stream,
                                struct error *error);

/* Y <- softmax of each row of X, both rows x cols. A row of -inf only becomes 0; naive, which
 * does not subtract the maximum, makes NaN of it, and of rows whose exp overflows. Milakov &
 * Gimelshein 2018, Algorithm 1 (naive: 2 loads, 1 store an element), 2 (safe: 3 loads, 1 store)
 * and 3 (online: 2 loads, 1 store). */
enum status launch_softmax_naive(float *Y, const float *X, int rows, int cols, void *stream,
                                 struct error *error);
enum status launch_softmax_safe(float *Y, const float *X, int rows, int cols, void *stream,
                                struct error *error);
enum status launch_softmax_online(float *Y, const float *X, int rows, int cols, void *stream,
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
