/* The kernels of test_ladder_hopper.c: each one header of cuda/ladder that needs an sm_90a GPU.
 * All memory is the device's; all functions wait for the result. */
#ifndef FLASHLAB_CUDA_TESTS_LADDER_HOPPER_H
#define FLASHLAB_CUDA_TESTS_LADDER_HOPPER_H

#include "cuda/device.h"
#include "cuda/ladder/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A box of a tensor; t's maps are the launcher's. a.block_k: rows of the boxes of K and V. */
enum boxed { BOXED_Q, BOXED_K, BOXED_V, BOXED_O };
struct box {
    struct attention a;
    struct ladder_tensors t;
    enum boxed tensor;
    int rows, row, head, batch;
};

/* out [3][3][2] <- 1 if a wait for parity 0 and for 1 would pass, after each number of arrivals
 * (0 to 2 of 3) in each of a barrier's first phases. */
enum status run_mbarrier(int *out, struct error *error);

/* tile (rows, head_dim elements) <- shared memory as it is once the box is loaded. */
enum status run_tma_load(void *tile, const struct box *box, struct error *error);

/* out [2] <- 1 if a phase that expects the box twice was complete with one, with two. */
enum status run_tma_bytes(int *out, const struct box *box, struct error *error);

/* tile (rows, head_dim), row-major, to shared memory in boxes<16> and from there to the box. */
enum status run_tma_store(const void *tile, const struct box *box, struct error *error);

/* The first head's rows of K, loaded tile after tile of 64 rows in a ring of 2 or 3 places by
 * one warp, copied to out (rows up to a whole tile, 64) by four. head_dim is 64. */
enum status run_ring(void *out, const struct box *box, int places, struct error *error);

/* C (64, columns) <- A B, and one added; from shared memory, and mixed, with A in registers and
 * 128 columns: in is A (64, WGMMA_D), then B transposed (columns, WGMMA_D), out is C without,
 * then with ones added before; A in registers: in is A (64, WGMMA_KEYS), then B (WGMMA_KEYS,
 * columns), out is C with ones added. */
enum { WGMMA_ROWS = 64, WGMMA_D = 128, WGMMA_KEYS = 80 };
enum status run_wgmma_shared(float *out, const void *in, enum dtype dtype, int columns,
                             struct error *error);
enum status run_wgmma_mixed(float *out, const void *in, enum dtype dtype, int columns,
                            struct error *error);
enum status run_wgmma_registers(float *out, const void *in, enum dtype dtype, int columns,
                                struct error *error);

/* log [2 * TURNS] <- the numbers of two warpgroups as they take turns; then [256]: what threads
 * of the second read that those of the first wrote before they arrived. */
enum { TURNS = 32 };
enum status run_named_barriers(int *log, struct error *error);

/* out [256] <- mixed() of each thread of two warpgroups that have more registers. */
enum { MIXED = 200, MIXING_ROUNDS = 4 };
enum status run_registers(unsigned *out, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
