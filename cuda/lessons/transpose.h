/* A transposition through shared memory, its tiles laid out in three ways: for the lesson about
 * banks, which executes it on the CPU (cuda/cpu). No simulated twin: in HBM all three move the
 * same.
 */
#ifndef FLASHLAB_CUDA_LESSONS_TRANSPOSE_H
#define FLASHLAB_CUDA_LESSONS_TRANSPOSE_H

#ifdef __cplusplus
extern "C" {
#endif

enum { TRANSPOSE_TILE = 32 };

/* Where element (row, col) of a tile is, in floats. */
enum transpose_layout {
    TRANSPOSE_PLAIN,    /* 32 row + col */
    TRANSPOSE_PADDED,   /* 33 row + col */
    TRANSPOSE_SWIZZLED, /* 32 row + (col xor row) */
    TRANSPOSE_LAYOUTS,
};

/* dst (cols x rows) <- src (rows x cols) transposed. */
void launch_transpose_tiles(float *dst, const float *src, int rows, int cols,
                            enum transpose_layout layout);

#ifdef __cplusplus
}
#endif

#endif
