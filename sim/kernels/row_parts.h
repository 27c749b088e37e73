/* What the softmax kernels share: rows that move a warp's request, 32 elements, at a time.
 */
#ifndef FLASHLAB_KERNELS_ROW_PARTS_H
#define FLASHLAB_KERNELS_ROW_PARTS_H

#include "core/memory.h"

struct softmax_args {
    struct hbm_tensor *Y;
    const struct hbm_tensor *X;
};

/* How many elements the part of the row that begins at col has. */
static inline int part_lanes(const struct hbm_tensor *t, int col)
{
    return t->cols - col < WARP_LANES ? t->cols - col : WARP_LANES;
}

static inline void part_elements(int64_t element[WARP_LANES], const struct hbm_tensor *t,
                                 int row, int col)
{
    for (int lane = 0; lane < part_lanes(t, col); lane++)
        element[lane] = (int64_t)row * t->cols + col + lane;
}

/* x (a tile of 1 x 32) <- the part of the row; returns its lanes. */
static inline int part_load(struct tile *x, const struct hbm_tensor *src, int row, int col)
{
    const int lanes = part_lanes(src, col);
    int64_t element[WARP_LANES];
    float value[WARP_LANES];
    part_elements(element, src, row, col);
    warp_load(x->block, value, src, 0, element, lanes);
    for (int lane = 0; x->data && lane < lanes; lane++)
        tile_writable(x)[lane] = value[lane];
    return lanes;
}

static inline void part_store(struct hbm_tensor *dst, int row, int col, const struct tile *x)
{
    int64_t element[WARP_LANES];
    float value[WARP_LANES] = {0};
    part_elements(element, dst, row, col);
    for (int lane = 0; x->data && lane < part_lanes(dst, col); lane++)
        value[lane] = x->data[lane];
    warp_store(x->block, dst, 0, element, value, part_lanes(dst, col));
}

#endif
