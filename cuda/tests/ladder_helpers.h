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
    HELPER_LAYOUTS,             /* -> unsigned 3 x 16 x 16: plain, swizzled, boxes, D = 128 */
    HELPER_CP_ASYNC,            /* 2 x 32 x 8 -> the same, odd chunks of 8 zeros */
    HELPER_ROW_MAX,             /* float 32 -> float 32 */
    HELPER_ROW_SUM,             /* float 32 -> float 32 */
    HELPER_ROW_GATHER,          /* float 32 x 2 x 2 -> float 32 */
    HELPER_EXP2,                /* float 32 -> float 32 */
    HELPER_EXP2_SOFTWARE,       /* float 32 -> float 32 */
    HELPER_SOFTMAX_F16,         /* struct softmax_case -> struct softmax_result */
    HELPER_SOFTMAX_BF16,        /* the same */
    HELPER_SOFTMAX_SOFTWARE,    /* BF16, a quarter of the exponentials without ex2 */
    HELPER_COUNT,
};

/* One tile of an online softmax, the exponents being the scores: exp2.h with c = 1. Arrays of
 * a row are by query, matrices row-major. */
enum { SOFTMAX_ROWS = 16, SOFTMAX_KEYS = 64, SOFTMAX_COLUMNS = 16 };
struct softmax_case {
    float S[SOFTMAX_ROWS][SOFTMAX_KEYS], O[SOFTMAX_ROWS][SOFTMAX_COLUMNS];
    float m[SOFTMAX_ROWS], l[SOFTMAX_ROWS]; /* before the tile; l: of each lane of the row */
    int seen[SOFTMAX_ROWS];                 /* keys of the tile that the query sees */
    float scale;                            /* of which the scores get the sign */
    float slack;                            /* that maxima_keep() takes back; 0: not called */
};
struct softmax_result {
    float m[SOFTMAX_ROWS], l[SOFTMAX_ROWS], factor[SOFTMAX_ROWS]; /* l: of the whole row */
    float P[SOFTMAX_ROWS][SOFTMAX_KEYS], O[SOFTMAX_ROWS][SOFTMAX_COLUMNS];
    float finished[SOFTMAX_ROWS][SOFTMAX_COLUMNS], lse[SOFTMAX_ROWS]; /* by softmax_finish() */
    uint16_t packed[SOFTMAX_ROWS][SOFTMAX_KEYS]; /* where mma.h has A's elements */
};

/* Runs it on device memory and waits. */
enum status run_helper(enum helper helper, const void *in, void *out, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
