#include "core/ai_core.h"

#include <string.h>

const struct ascend ascend_910b2 = {
    .ai_cores = 24,
    .capacity = {[LEVEL_L1] = 512 << 10,
                 [LEVEL_L0A] = 64 << 10,
                 [LEVEL_L0B] = 64 << 10,
                 [LEVEL_L0C] = 128 << 10,
                 [LEVEL_UB] = VECTOR_CORES_PER_CUBE_CORE * (192 << 10)},
};

/* The UB of a vector core is of 256 KiB, 248 of which a kernel may use. */
const struct ascend ascend_950 = {
    .ai_cores = 32,
    .capacity = {[LEVEL_L1] = 512 << 10,
                 [LEVEL_L0A] = 64 << 10,
                 [LEVEL_L0B] = 64 << 10,
                 [LEVEL_L0C] = 256 << 10,
                 [LEVEL_UB] = VECTOR_CORES_PER_CUBE_CORE * (248 << 10)},
    .direct = true,
};

static const char *const path_names[PATH_COUNT] = {
    [PATH_GM_TO_L1] = "GM -> L1",   [PATH_GM_TO_UB] = "GM -> UB",
    [PATH_L1_TO_L0A] = "L1 -> L0A", [PATH_L1_TO_L0B] = "L1 -> L0B",
    [PATH_L0C_TO_GM] = "L0C -> GM", [PATH_UB_TO_GM] = "UB -> GM",
    [PATH_L0C_TO_UB] = "L0C -> UB", [PATH_UB_TO_L1] = "UB -> L1",
};

const char *path_name(enum path path)
{
    return path_names[path];
}

/* Counts the tile's elements, of that dtype on the way. */
static void count_path(const struct tile *t, enum path path, enum dtype dtype)
{
    t->block->counters.path_bytes[path] += (int64_t)t->rows * t->cols * dtype_bytes(dtype);
}

/* Checks that the whole tile lies inside the tensor. */
static void check_inside(const struct tile *t, const struct hbm_tensor *tensor, int row)
{
    CHECK(row >= 0 && t->rows <= tensor->rows - row && t->cols <= tensor->cols,
          "tile %s of %d x %d at row %d of tensor %s of %d x %d", t->name, t->rows, t->cols,
          row, tensor->name, tensor->rows, tensor->cols);
}

void mte2_load(struct tile *dst, int rows, int cols, const struct hbm_tensor *src, int plane,
               int row)
{
    CHECK(dst->level == LEVEL_L1 || dst->level == LEVEL_UB,
          "MTE2 loads tile %s, which is neither in L1 nor in UB", dst->name);
    tile_shape(dst, rows, cols);
    check_inside(dst, src, row);
    tile_load(dst, src, plane, row, 0);
    count_path(dst, dst->level == LEVEL_L1 ? PATH_GM_TO_L1 : PATH_GM_TO_UB, src->dtype);
}

/* From buffer to buffer. */
static void move(struct tile *dst, const struct tile *src, enum path path)
{
    CHECK(dst->block == src->block && dst->dtype == src->dtype,
          "%s: tile %s to tile %s of another AI core or dtype", path_name(path), src->name,
          dst->name);
    tile_shape(dst, src->rows, src->cols);
    if (dst->data)
        memcpy(tile_writable(dst), src->data,
               (size_t)src->rows * (size_t)src->cols * sizeof *src->data);
    count_path(src, path, src->dtype);
}

void mte1_move(struct tile *dst, const struct tile *src)
{
    CHECK(src->level == LEVEL_L1 && (dst->level == LEVEL_L0A || dst->level == LEVEL_L0B),
          "MTE1 moves tile %s to tile %s: it goes from L1 to L0A and L0B", src->name,
          dst->name);
    move(dst, src, dst->level == LEVEL_L0A ? PATH_L1_TO_L0A : PATH_L1_TO_L0B);
}

void fixpipe_store(struct hbm_tensor *dst, int plane, const struct tile *src)
{
    CHECK(src->level == LEVEL_L0C, "FixPipe stores tile %s, which is not in L0C", src->name);
    check_inside(src, dst, 0);
    tile_store(dst, plane, 0, 0, src);
    count_path(src, PATH_L0C_TO_GM, dst->dtype);
}

void mte3_store(struct hbm_tensor *dst, int plane, int row, const struct tile *src)
{
    CHECK(src->level == LEVEL_UB, "MTE3 stores tile %s, which is not in UB", src->name);
    check_inside(src, dst, row);
    tile_store(dst, plane, row, 0, src);
    count_path(src, PATH_UB_TO_GM, dst->dtype);
}

void fixpipe_move(struct tile *dst, const struct tile *src)
{
    CHECK(src->level == LEVEL_L0C && dst->level == LEVEL_UB,
          "FixPipe moves tile %s to tile %s: it goes from L0C to UB", src->name, dst->name);
    move(dst, src, PATH_L0C_TO_UB);
}

void mte3_move(struct tile *dst, const struct tile *src)
{
    CHECK(src->level == LEVEL_UB && dst->level == LEVEL_L1,
          "MTE3 moves tile %s to tile %s: it goes from UB to L1", src->name, dst->name);
    move(dst, src, PATH_UB_TO_L1);
}
