#include "models/io_tiles.h"

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* How many of the numbers 0 .. count - 1 satisfy (number * step) mod 32 = offset. The products
 * repeat after 32. */
static int64_t multiples_at_offset(int64_t count, int64_t step, int offset)
{
    int64_t found = 0;
    for (int k = 0; k < SECTOR_BYTES; k++)
        if (k * (step % SECTOR_BYTES) % SECTOR_BYTES == offset)
            found += ceil_divide(count - k, SECTOR_BYTES);
    return found;
}

int64_t io_planes_at_offset(const struct io_tensor *t, int offset)
{
    return multiples_at_offset(t->planes, (int64_t)t->rows * t->cols * t->element_bytes,
                               offset);
}

struct amount io_tile_move(const struct io_tensor *tensor, int offset, int block, int t,
                           bool box, enum direction direction)
{
    const int64_t row_bytes = (int64_t)tensor->cols * tensor->element_bytes;
    const int64_t start = (offset + t * (block * row_bytes)) % SECTOR_BYTES;
    const bool whole = box && direction == DIRECTION_READ;
    const int64_t rows = whole ? block : min(block, tensor->rows - (int64_t)t * block);
    const int64_t bytes = rows * row_bytes;
    if (box)
        return (struct amount){bytes, ceil_divide(start + bytes, SECTOR_BYTES)};
    /* 32 elements a request: as many sectors as an element has bytes, one more if the start is
     * not on a sector; the last request has what is left. */
    const int64_t request = (int64_t)WARP_LANES * tensor->element_bytes;
    const int64_t rest = bytes % request;
    return (struct amount){bytes, bytes / request * (tensor->element_bytes + (start != 0)) +
                                      (rest ? ceil_divide(start + rest, SECTOR_BYTES) : 0)};
}

/* Sectors of one sub-tile whose first byte is at that offset, by the definition: walk its
 * elements in order and count a sector where an element's differs from the one before, or where
 * a new request (or a new box row) begins. */
static int64_t subtile_sectors(const struct io_tensor *tensor, int offset, int64_t rows,
                               int64_t cols, bool box)
{
    int64_t sectors = 0, previous = -1, index = 0;
    const bool one_span = cols == tensor->cols;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++, index++) {
            const int64_t first = offset + (r * tensor->cols + c) * tensor->element_bytes;
            const bool begins = box ? c == 0 && !one_span : index % WARP_LANES == 0;
            const int64_t sector = first / SECTOR_BYTES;
            sectors += begins || sector != previous;
            previous = sector;
        }
    }
    return sectors;
}

/* A group of sub-tiles along one axis that differ only in their offset. */
struct stripe {
    int64_t extent;           /* rows or columns that they cover */
    int64_t at[SECTOR_BYTES]; /* how many begin at each offset */
};

/* The whole blocks of an axis (stripe 0) and its ragged last one (stripe 1, maybe empty). */
static void cut_axis(struct stripe stripe[2], int extent, int block, int64_t step_bytes,
                     bool whole_boxes)
{
    const int64_t full = extent / block, rest = extent % block;
    stripe[0] = (struct stripe){.extent = block};
    for (int offset = 0; offset < SECTOR_BYTES; offset++)
        stripe[0].at[offset] = multiples_at_offset(full, step_bytes, offset);
    stripe[1] = (struct stripe){.extent = whole_boxes ? block : rest};
    stripe[1].at[full * (step_bytes % SECTOR_BYTES) % SECTOR_BYTES] = rest > 0;
}

/* All planes' sub-tiles of one shape: how many begin at each offset, by combining the offsets
 * of plane, row and column. */
static void combine(int64_t at[SECTOR_BYTES], const struct io_tensor *tensor,
                    const struct stripe *rows, const struct stripe *cols)
{
    for (int k = 0; k < SECTOR_BYTES; k++)
        at[k] = 0;
    for (int p = 0; p < SECTOR_BYTES; p++)
        for (int r = 0; r < SECTOR_BYTES; r++)
            for (int c = 0; c < SECTOR_BYTES; c++)
                at[(p + r + c) % SECTOR_BYTES] +=
                    io_planes_at_offset(tensor, p) * rows->at[r] * cols->at[c];
}

struct amount io_subtile_pass(const struct io_tensor *tensor, int block_rows, int block_cols,
                              bool box, enum direction direction)
{
    const int64_t bytes = tensor->element_bytes;
    const bool whole = box && direction == DIRECTION_READ;
    struct stripe rows[2], cols[2];
    cut_axis(rows, tensor->rows, block_rows, block_rows * tensor->cols * bytes, whole);
    cut_axis(cols, tensor->cols, block_cols, block_cols * bytes, whole);
    struct amount sum = {0, 0};
    for (int k = 0; k < 4; k++) {
        const struct stripe *r = &rows[k / 2], *c = &cols[k % 2];
        int64_t at[SECTOR_BYTES];
        combine(at, tensor, r, c);
        for (int offset = 0; offset < SECTOR_BYTES; offset++) {
            if (at[offset] == 0)
                continue;
            sum.bytes += at[offset] * r->extent * c->extent * bytes;
            sum.sectors +=
                at[offset] * subtile_sectors(tensor, offset, r->extent, c->extent, box);
        }
    }
    return sum;
}
