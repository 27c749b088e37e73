/* The kernels of test_ladder_helpers.c: one warp, one helper of cuda/ladder. */
#ifndef FLASHLAB_CUDA_TESTS_LADDER_HELPERS_H
#define FLASHLAB_CUDA_TESTS_LADDER_HELPERS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What each reads and writes; 16-bit elements unless a type is named. */
enum helper {
    HELPER_MMA_F16,        /* A 16 x 16, then B 16 x 8 -> float C 16 x 8 = A B + A B */
    HELPER_MMA_BF16,       /* the same */
    HELPER_PACK_F16,       /* float 32 x 2 -> 32 x 2 */
    HELPER_PACK_BF16,      /* the same */
    HELPER_LDMATRIX_DOWN,  /* tile 32 x 64 -> fragments 32 x 8: of its tile of 16 x 16 at */
    HELPER_LDMATRIX_RIGHT, /* row 16, column 32; the same, right first; */
    HELPER_LDMATRIX_TRANSPOSED, /* the same, down first and transposed */
    HELPER_LAYOUTS,             /* -> unsigned 2 x 16 x 16: plain and swizzled, D = 128 */
    HELPER_CP_ASYNC,            /* 2 x 32 x 8 -> the same, odd chunks of 8 zeros */
    HELPER_ROW_MAX,             /* float 32 -> float 32 */
    HELPER_ROW_SUM,             /* float 32 -> float 32 */
    HELPER_ROW_GATHER,          /* float 32 x 2 x 2 -> float 32 */
    HELPER_EXP2,                /* float 32 -> float 32 */
    HELPER_COUNT,
};

/* Runs it on device memory and waits. */
enum status run_helper(enum helper helper, const void *in, void *out, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
