/* Vector addition, matrix products and softmaxes on a simulated GPU: the kernels of the first
 * lessons, each but vector_add_tiles the twin of cuda/kernels/NAME.cu.
 *
 * Interface:
 *   struct hbm_tensor a, b, c;                            each 1 plane, of F32
 *   hbm_alloc(&a, &gpu, "a", DTYPE_F32, 1, 1, count, &error); ...
 *   vector_add(&gpu, &c, &a, &b, &error);
 *   gpu_account(&gpu);                                    equal to io_vector_add(count)
 *
 * Shapes come from the tensors. Element-wise kernels access HBM a warp at a time, as their
 * twins do, and so does matmul_shared; matmul_tiled moves tiles.
 */
#ifndef FLASHLAB_KERNELS_BASIC_KERNELS_H
#define FLASHLAB_KERNELS_BASIC_KERNELS_H

#include "core/memory.h"

/* c <- a + b: vectors (1 x count). */
enum status vector_add(struct gpu *gpu, struct hbm_tensor *c, const struct hbm_tensor *a,
                       const struct hbm_tensor *b, struct error *error);

/* The same in tiles of 1024 elements, what is past the end masked: a block's view of it. */
enum status vector_add_tiles(struct gpu *gpu, struct hbm_tensor *c, const struct hbm_tensor *a,
                             const struct hbm_tensor *b, struct error *error);

/* C (rows x cols) <- A (rows x depth) B (depth x cols), one element of C a lane. */
enum status matmul_naive(struct gpu *gpu, struct hbm_tensor *C, const struct hbm_tensor *A,
                         const struct hbm_tensor *B, struct error *error);

/* The same by tiles of tile x tile in SRAM, still one element of C a lane; tile is 1, 2, 4, 8,
 * 16 or 32, so that a warp has whole rows. (The CUDA twin has 16 and 32.) */
enum status matmul_shared(struct gpu *gpu, struct hbm_tensor *C, const struct hbm_tensor *A,
                          const struct hbm_tensor *B, int tile, struct error *error);

/* The same, several elements of C a lane: tiles from 1 on. (The CUDA twin has 16, 32 and 64.)
 */
enum status matmul_tiled(struct gpu *gpu, struct hbm_tensor *C, const struct hbm_tensor *A,
                         const struct hbm_tensor *B, int tile, struct error *error);

/* Y <- softmax of each row of X, both rows x cols. A row of -inf only becomes 0; naive, which
 * does not subtract the maximum, makes NaN of it, and of rows whose exp overflows. */
enum status softmax_naive(struct gpu *gpu, struct hbm_tensor *Y, const struct hbm_tensor *X,
                          struct error *error);
enum status softmax_safe(struct gpu *gpu, struct hbm_tensor *Y, const struct hbm_tensor *X,
                         struct error *error);
enum status softmax_online(struct gpu *gpu, struct hbm_tensor *Y, const struct hbm_tensor *X,
                           struct error *error);

#endif
