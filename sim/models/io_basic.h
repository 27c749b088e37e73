/* Closed forms of the kernels of kernels/basic_kernels.h, as io.h has them for attention: equal
 * to the simulator's account in every byte, sector and FLOP.
 *
 * In elements:
 *
 *   vector_add              a, b, c: n each
 *   matmul_naive            A, B: rows cols depth each             C: rows cols
 *   matmul_shared, T        A: rows depth ceil(cols / T)           C: rows cols
 *   matmul_tiled, T         B: depth cols ceil(rows / T)
 *   softmax_naive           X: 2 n, Y: n      n = rows cols (Milakov & Gimelshein 2018: 3)
 *   softmax_safe            X: 3 n, Y: n                                              (4)
 *   softmax_online          X: 2 n, Y: n                                              (3)
 *
 * Sectors of matmul_naive are another matter: 32 lanes that want one element of A share one
 * sector. Those of matmul_shared differ from matmul_tiled's where tiles are ragged: it moves
 * whole rows of a tile in a request.
 */
#ifndef FLASHLAB_MODELS_IO_BASIC_H
#define FLASHLAB_MODELS_IO_BASIC_H

#include "core/traffic.h"

/* C (rows x cols) = A (rows x depth) B (depth x cols). Tensors are called A, B and C. */
struct io_matmul {
    int rows, cols, depth;
};

/* Tensors a, b and c. Of vector_add_tiles too. */
struct account io_vector_add(int count);

struct account io_matmul_naive(const struct io_matmul *shape);

/* tile: 1, 2, 4, 8, 16 or 32. */
struct account io_matmul_shared(const struct io_matmul *shape, int tile);
struct account io_matmul_tiled(const struct io_matmul *shape, int tile);

/* Tensors X and Y. */
struct account io_softmax_naive(int rows, int cols);
struct account io_softmax_safe(int rows, int cols);
struct account io_softmax_online(int rows, int cols);

#endif
