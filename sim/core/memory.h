/* HBM tensors and on-chip tiles, and the only ways to move data between them: counted calls.
 *
 * Interface:
 *   Host side: hbm_alloc, hbm_alloc_input, hbm_upload, hbm_download, hbm_free. Not counted: the
 *   host's copies are not the kernel's traffic.
 *   Block side: tile_alloc, tile_load, tile_store, tile_reduce_add move tiles;
 *   warp_load, warp_store move one element a lane. tile.data is read as it is, written through
 *   tile_writable().
 *   Destination first, like memcpy. Plane, row and col are element indices.
 *
 * A tile moves as a warp-wide copy loop moves it: element e of the part of the tile that lies
 * inside the tensor (row-major) is moved by lane e mod 32, so a warp's request covers 32
 * consecutive elements of that part. Elements past the edge are neither moved nor counted; in
 * the tile they become zero, which is neutral for sums but not for softmax: kernels bound their
 * column loops. With gpu->tma, tiles of more than one column are loaded as whole boxes, edge
 * included, as the copy engine counts them (stores are clipped), and sectors are those the
 * box's contiguous spans touch.
 */
#ifndef FLASHLAB_CORE_MEMORY_H
#define FLASHLAB_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"
#include "core/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor in HBM: planes of rows x cols elements, row-major. Base address: a multiple of 256,
 * as cudaMalloc gives. */
struct hbm_tensor {
    const char *name; /* static */
    enum dtype dtype;
    int planes, rows, cols;
    int id;           /* index in the counters */
    int64_t address;  /* of the first element, as the GPU's memory would have it */
    bool input;       /* kernels only read it */
    const void *data; /* encoded elements; NULL in counts-only mode. Opaque to kernels. */
    void *own;        /* core only: data is this, or the caller's array */
};

/* A tile in on-chip memory: rows x cols floats, row-major, each representable in dtype. */
struct tile {
    struct thread_block *block;
    const char *name; /* static */
    enum level level;
    enum dtype dtype;
    int rows, cols;
    int64_t room;      /* elements that it was made for */
    const float *data; /* NULL in counts-only mode. Lives until the block ends. */
    float *own;        /* core only: data is this, or the bytes of an input tensor */
};

/* Allocates a tensor on the GPU, its elements NaN. name is kept, not copied. */
enum status hbm_alloc(struct hbm_tensor *t, struct gpu *gpu, const char *name, enum dtype dtype,
                      int planes, int rows, int cols, struct error *error);

/* The same for a tensor that kernels only read, with its elements: host floats in C order,
 * which stay as they are until hbm_free(). What is not written need not be copied: an F32
 * tensor stands for the host's array, and whole rows of it that a tile holds do too. values is
 * not looked at in counts-only mode. */
enum status hbm_alloc_input(struct hbm_tensor *t, struct gpu *gpu, const char *name,
                            enum dtype dtype, int planes, int rows, int cols,
                            const float *values, struct error *error);

/* Host floats (planes * rows * cols, C order) -> HBM, rounded to the tensor's dtype. */
void hbm_upload(struct hbm_tensor *dst, const float *src);

/* HBM -> host floats (planes * rows * cols, C order). */
void hbm_download(float *dst, const struct hbm_tensor *src);

void hbm_free(struct hbm_tensor *t);

/* Makes a tile of rows x cols in the block's SRAM or registers, filled with NaN, until the
 * block ends. If it does not fit the block fails: see block_failed(). The bytes charged are
 * those of the dtype. */
void tile_alloc(struct tile *t, struct thread_block *b, enum level level, const char *name,
                enum dtype dtype, int rows, int cols);

/* Gives the tile another shape, of no more elements than it was made for. What it held is gone:
 * its elements are NaN. */
void tile_shape(struct tile *t, int rows, int cols);

/* Core only: makes the tile hold its own copy of what it stands for. */
void tile_detach(struct tile *t);

/* The tile's floats, to write to; NULL in counts-only mode. */
static inline float *tile_writable(struct tile *t)
{
    if (t->data != t->own)
        tile_detach(t);
    return t->own;
}

/* HBM -> tile, from (row, col) of the plane on. The tile's dtype is the tensor's, or F32. */
void tile_load(struct tile *dst, const struct hbm_tensor *src, int plane, int row, int col);

/* Tile -> HBM, rounded to the tensor's dtype. */
void tile_store(struct hbm_tensor *dst, int plane, int row, int col, const struct tile *src);

/* Tile added to HBM element by element, as atomicAdd does, but in block order: deterministic.
 * The tensor is F32 and the launch says .reduces = true. The sums are in HBM when the block has
 * ended. */
void tile_reduce_add(struct hbm_tensor *dst, int plane, int row, int col,
                     const struct tile *src);

/* One request of a warp: lane k of active lanes 0 .. active - 1 accesses the element at
 * element[k] (row * cols + col) of the plane. Counted: the bytes that the lanes ask for, and
 * the distinct sectors. Values are floats; stores round to the tensor's dtype. */
void warp_load(struct thread_block *b, float value[WARP_LANES], const struct hbm_tensor *src,
               int plane, const int64_t element[WARP_LANES], int active);
void warp_store(struct thread_block *b, struct hbm_tensor *dst, int plane,
                const int64_t element[WARP_LANES], const float value[WARP_LANES], int active);

#ifdef __cplusplus
}
#endif

#endif
