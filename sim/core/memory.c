#include "core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/moves.h"
#include "core/on_chip.h"
#include "core/read_ahead.h"
#include "core/sectors.h"

/* Most of the host's memory that one tensor may take; beyond it the machine would swap or kill
 * the process instead of failing the allocation. */
static int64_t host_memory(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE) / 10 * 8;
}

/* Memory for a tensor. Large ones ask for huge pages: a fault for each 4 KB of fresh memory
 * costs as much as filling it. */
static void *alloc_pages(size_t bytes)
{
    const size_t huge = (size_t)2 << 20, align = bytes >= huge ? huge : 256;
    const size_t rounded = (bytes + align - 1) / align * align;
    void *data = aligned_alloc(align, rounded);
    if (data && align == huge)
        (void)madvise(data, rounded, MADV_HUGEPAGE); /* advice: it may be declined */
    return data;
}

static size_t plane_elements(const struct hbm_tensor *t)
{
    return (size_t)t->rows * (size_t)t->cols;
}

static size_t plane_bytes(const struct hbm_tensor *t)
{
    return plane_elements(t) * (size_t)dtype_bytes(t->dtype);
}

static void fill_with_nan(struct hbm_tensor *t)
{
    const size_t bytes = plane_bytes(t);
#pragma omp parallel for
    for (int plane = 0; plane < t->planes; plane++)
        memset((char *)t->own + (size_t)plane * bytes, 0xff, bytes); /* a NaN in every dtype */
}

/* The tensor, next on the GPU, without elements. */
static void describe_tensor(struct hbm_tensor *t, struct gpu *gpu, const char *name,
                            enum dtype dtype, int planes, int rows, int cols)
{
    CHECK(planes > 0 && rows > 0 && cols > 0, "%s: shape %d x %d x %d", name, planes, rows,
          cols);
    CHECK(gpu->tensor_count < MAX_TENSORS, "more than %d tensors on one GPU", MAX_TENSORS);
    *t = (struct hbm_tensor){.name = name,
                             .dtype = dtype,
                             .planes = planes,
                             .rows = rows,
                             .cols = cols,
                             .id = gpu->tensor_count,
                             .address = (gpu->next_address + 255) / 256 * 256};
}

/* In counts-only mode a tensor may be larger than any memory; its addresses then wrap. */
static void enter_tensor(struct gpu *gpu, const struct hbm_tensor *t)
{
    gpu->tensor_name[gpu->tensor_count++] = t->name;
    gpu->next_address = (int64_t)((uint64_t)t->address + plane_bytes(t) * (uint64_t)t->planes);
}

/* Memory of the tensor's own for its elements. */
static enum status alloc_elements(struct hbm_tensor *t, struct error *error)
{
    int64_t bytes;
    if (__builtin_mul_overflow((int64_t)t->rows * t->cols, t->planes, &bytes) ||
        __builtin_mul_overflow(bytes, dtype_bytes(t->dtype), &bytes) || bytes > host_memory())
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "tensor %s of %d x %d x %d %s: larger than the host's memory", t->name,
                         t->planes, t->rows, t->cols, dtype_name(t->dtype));
    t->data = t->own = alloc_pages((size_t)bytes);
    if (!t->own)
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "tensor %s: the host cannot allocate %lld bytes", t->name,
                         (long long)bytes);
    return STATUS_OK;
}

/* Host floats -> the tensor's own memory. */
static void encode(struct hbm_tensor *dst, const float *src)
{
#pragma omp parallel for
    for (int plane = 0; plane < dst->planes; plane++)
        dtype_encode((char *)dst->own + (size_t)plane * plane_bytes(dst), dst->dtype,
                     src + (size_t)plane * plane_elements(dst), plane_elements(dst));
}

enum status hbm_alloc(struct hbm_tensor *t, struct gpu *gpu, const char *name, enum dtype dtype,
                      int planes, int rows, int cols, struct error *error)
{
    describe_tensor(t, gpu, name, dtype, planes, rows, cols);
    if (gpu->mode == GPU_DATA) {
        if (alloc_elements(t, error))
            return error->status;
        fill_with_nan(t);
    }
    enter_tensor(gpu, t);
    return STATUS_OK;
}

enum status hbm_alloc_input(struct hbm_tensor *t, struct gpu *gpu, const char *name,
                            enum dtype dtype, int planes, int rows, int cols,
                            const float *values, struct error *error)
{
    describe_tensor(t, gpu, name, dtype, planes, rows, cols);
    t->input = true;
    if (gpu->mode == GPU_DATA && dtype == DTYPE_F32) {
        t->data = values;
    } else if (gpu->mode == GPU_DATA) {
        if (alloc_elements(t, error))
            return error->status;
        encode(t, values);
    }
    enter_tensor(gpu, t);
    return STATUS_OK;
}

void hbm_upload(struct hbm_tensor *dst, const float *src)
{
    CHECK(!dst->input, "upload to the input tensor %s", dst->name);
    if (dst->own)
        encode(dst, src);
}

void hbm_download(float *dst, const struct hbm_tensor *src)
{
    CHECK(src->data, "%s: download in counts-only mode", src->name);
#pragma omp parallel for
    for (int plane = 0; plane < src->planes; plane++)
        dtype_decode(dst + (size_t)plane * plane_elements(src), src->dtype,
                     (const char *)src->data + (size_t)plane * plane_bytes(src),
                     plane_elements(src));
}

void hbm_free(struct hbm_tensor *t)
{
    free(t->own);
    t->data = t->own = NULL;
}

/* Element index of (plane, row, col). */
static int64_t element_index(const struct hbm_tensor *t, int plane, int row, int col)
{
    return ((int64_t)plane * t->rows + row) * t->cols + col;
}

static const char *element_address(const struct hbm_tensor *t, int64_t index)
{
    return (const char *)t->data + index * dtype_bytes(t->dtype);
}

static char *writable_address(const struct hbm_tensor *t, int64_t index)
{
    return (char *)t->own + index * dtype_bytes(t->dtype);
}

static int min(int a, int b)
{
    return a < b ? a : b;
}

/* The part of a tile placed at (plane, row, col) that lies inside the tensor. */
struct window {
    int64_t first; /* element index */
    int rows, cols;
};

static struct window window_of(const struct hbm_tensor *t, int plane, int row, int col,
                               const struct tile *tile)
{
    CHECK(plane >= 0 && plane < t->planes && row >= 0 && row < t->rows && col >= 0 &&
              col < t->cols,
          "tile %s at (%d, %d, %d) outside tensor %s of %d x %d x %d", tile->name, plane, row,
          col, t->name, t->planes, t->rows, t->cols);
    return (struct window){element_index(t, plane, row, col), min(tile->rows, t->rows - row),
                           min(tile->cols, t->cols - col)};
}

static void check_direction(const struct hbm_tensor *t, enum direction direction)
{
    CHECK(direction == DIRECTION_READ || !t->input, "a kernel writes to the input tensor %s",
          t->name);
}

static void count_tile(const struct hbm_tensor *t, enum direction direction,
                       const struct window *w, const struct tile *tile)
{
    check_direction(t, direction);
#ifndef FLASHLAB_UNCOUNTED
    struct thread_block *b = tile->block;
    const int bytes = dtype_bytes(t->dtype);
    struct region region = {w->first * bytes, bytes, w->rows, w->cols, t->cols};
    const bool box = b->gpu->tma && tile->cols > 1;
    if (box && direction == DIRECTION_READ) {
        /* The engine fills the whole box; what lies outside the tensor is counted too. */
        region.rows = tile->rows;
        region.cols = tile->cols;
    }
    count_move(b, t->id, direction, region.rows * region.cols * bytes,
               box ? sectors_by_spans(&region) : sectors_by_warps(&region));
    if (b->moves)
        move_list_add_window(b->moves, t, direction, w->first, w->rows, w->cols);
#else
    (void)t, (void)direction, (void)w, (void)tile;
#endif
}

void tile_detach(struct tile *t)
{
    memcpy(t->own, t->data, (size_t)t->rows * (size_t)t->cols * sizeof *t->own);
    t->data = t->own;
}

/* Loads whole rows of the tensor. Floats that stay what they are need no copy, which would cost
 * the host 4 % of a FlashAttention run. */
static void load_rows(struct tile *dst, const struct hbm_tensor *src, const struct window *w)
{
    const char *from = element_address(src, w->first);
    const size_t count = (size_t)w->rows * (size_t)w->cols;
    const size_t bytes = count * (size_t)dtype_bytes(src->dtype);
    const bool more = w->first % plane_elements(src) + 2 * count <= plane_elements(src);
    read_ahead_expect(dst->block, from + bytes, more ? bytes : 0);
    if (src->input && src->dtype == DTYPE_F32 && w->rows == dst->rows) {
        dst->data = (const float *)from;
    } else {
        dtype_decode(dst->own, src->dtype, from, count);
        dst->data = dst->own;
    }
}

void tile_load(struct tile *dst, const struct hbm_tensor *src, int plane, int row, int col)
{
    CHECK(dst->dtype == src->dtype || dst->dtype == DTYPE_F32,
          "tile %s of %s cannot hold tensor %s of %s", dst->name, dtype_name(dst->dtype),
          src->name, dtype_name(src->dtype));
    const struct window w = window_of(src, plane, row, col, dst);
    count_tile(src, DIRECTION_READ, &w, dst);
    if (!dst->data)
        return;
    const size_t width = (size_t)dst->cols;
    if (w.cols == src->cols && w.cols == dst->cols) {
        load_rows(dst, src, &w);
    } else {
        for (int r = 0; r < w.rows; r++) {
            float *line = dst->own + (size_t)r * width;
            dtype_decode(line, src->dtype,
                         element_address(src, w.first + (int64_t)r * src->cols),
                         (size_t)w.cols);
            memset(line + w.cols, 0, (width - (size_t)w.cols) * sizeof(float));
        }
        dst->data = dst->own;
    }
    memset(dst->own + (size_t)w.rows * width, 0,
           (size_t)(dst->rows - w.rows) * width * sizeof(float));
}

void tile_store(struct hbm_tensor *dst, int plane, int row, int col, const struct tile *src)
{
    const struct window w = window_of(dst, plane, row, col, src);
    count_tile(dst, DIRECTION_WRITE, &w, src);
    if (!src->data)
        return;
    for (int r = 0; r < w.rows; r++)
        dtype_encode(writable_address(dst, w.first + (int64_t)r * dst->cols), dst->dtype,
                     src->data + (size_t)r * (size_t)src->cols, (size_t)w.cols);
}

/* A tile waiting to be added to HBM. */
struct reduction {
    struct reduction *next;
    struct hbm_tensor *tensor;
    struct window window;
    float values[];
};

void tile_reduce_add(struct hbm_tensor *dst, int plane, int row, int col,
                     const struct tile *src)
{
    struct thread_block *b = src->block;
    CHECK(dst->dtype == DTYPE_F32, "reduction into tensor %s of %s", dst->name,
          dtype_name(dst->dtype));
    CHECK(b->launch->reduces, "%s: a reduction in a launch that does not say .reduces",
          b->launch->name);
    const struct window w = window_of(dst, plane, row, col, src);
    count_tile(dst, DIRECTION_REDUCE, &w, src);
    if (!src->data)
        return;
    const size_t count = (size_t)w.rows * (size_t)w.cols;
    struct reduction *pending = malloc(sizeof *pending + count * sizeof(float));
    CHECK(pending, "no host memory for a reduction of %zu floats", count);
    *pending = (struct reduction){NULL, dst, w};
    for (int r = 0; r < w.rows; r++)
        memcpy(pending->values + (size_t)r * (size_t)w.cols,
               src->data + (size_t)r * (size_t)src->cols, (size_t)w.cols * sizeof(float));
    if (b->reductions)
        b->last_reduction->next = pending;
    else
        b->reductions = pending;
    b->last_reduction = pending;
}

void reductions_apply(struct thread_block *b)
{
    while (b->reductions) {
        struct reduction *first = b->reductions;
        float *base = first->tensor->own;
        for (int r = 0; r < first->window.rows; r++)
            for (int c = 0; c < first->window.cols; c++)
                base[first->window.first + (int64_t)r * first->tensor->cols + c] +=
                    first->values[(size_t)r * (size_t)first->window.cols + (size_t)c];
        b->reductions = first->next;
        free(first);
    }
}

/* Counts a warp's request and checks its addresses. */
static void count_warp(struct thread_block *b, const struct hbm_tensor *t,
                       enum direction direction, int plane, const int64_t *element, int active)
{
    CHECK(plane >= 0 && plane < t->planes && active >= 1 && active <= WARP_LANES,
          "request of %d lanes to plane %d of tensor %s", active, plane, t->name);
    check_direction(t, direction);
    const int64_t end = (int64_t)t->rows * t->cols;
    for (int lane = 0; lane < active; lane++)
        CHECK(element[lane] >= 0 && element[lane] < end,
              "lane %d: element %lld outside tensor %s of %d x %d", lane,
              (long long)element[lane], t->name, t->rows, t->cols);
#ifndef FLASHLAB_UNCOUNTED
    const int bytes = dtype_bytes(t->dtype);
    int64_t address[WARP_LANES];
    for (int lane = 0; lane < active; lane++)
        address[lane] = (plane * end + element[lane]) * bytes;
    count_move(b, t->id, direction, (int64_t)active * bytes,
               sectors_of_request(address, active));
    if (b->moves)
        move_list_add_request(b->moves, t, direction, address, active);
#else
    (void)b, (void)direction;
#endif
}

/* Lanes from this one on whose elements follow each other: they are converted at once. */
static int run_of_lanes(const int64_t *element, int lane, int active)
{
    int next = lane + 1;
    while (next < active && element[next] == element[next - 1] + 1)
        next++;
    return next - lane;
}

void warp_load(struct thread_block *b, float value[WARP_LANES], const struct hbm_tensor *src,
               int plane, const int64_t element[WARP_LANES], int active)
{
    count_warp(b, src, DIRECTION_READ, plane, element, active);
    if (!src->data)
        return;
    const int64_t base = element_index(src, plane, 0, 0);
    for (int lane = 0, run; lane < active; lane += run) {
        run = run_of_lanes(element, lane, active);
        dtype_decode(&value[lane], src->dtype, element_address(src, base + element[lane]),
                     (size_t)run);
    }
}

void warp_store(struct thread_block *b, struct hbm_tensor *dst, int plane,
                const int64_t element[WARP_LANES], const float value[WARP_LANES], int active)
{
    count_warp(b, dst, DIRECTION_WRITE, plane, element, active);
    if (!dst->data)
        return;
    const int64_t base = element_index(dst, plane, 0, 0);
    for (int lane = 0, run; lane < active; lane += run) {
        run = run_of_lanes(element, lane, active);
        dtype_encode(writable_address(dst, base + element[lane]), dst->dtype, &value[lane],
                     (size_t)run);
    }
}
