#include "core/sectors.h"

#include <stdbool.h>

#include "core/traffic.h"

/* Sectors of the bytes [start, start + bytes), bytes > 0. */
static int64_t span(int64_t start, int64_t bytes)
{
    return (start + bytes - 1) / SECTOR_BYTES - start / SECTOR_BYTES + 1;
}

/* count contiguous elements in requests of 32. A full request covers 32 * element_bytes, a
 * multiple of the sector size, so every request is misaligned by as much as the first. */
static int64_t contiguous_requests(int64_t start, int64_t count, int element_bytes)
{
    const int64_t misaligned = start % SECTOR_BYTES;
    const int64_t full = count / WARP_LANES;
    const int64_t rest = count % WARP_LANES;
    int64_t sectors = full * (element_bytes + (misaligned > 0));
    if (rest > 0)
        sectors += span(misaligned, rest * element_bytes);
    return sectors;
}

/* Requests that may run over the ends of rows: each is cut into its pieces of rows. Addresses
 * ascend, so two pieces share a sector only where one ends and the next begins. */
static int64_t broken_requests(const struct region *r)
{
    const int64_t count = r->rows * r->cols;
    int64_t sectors = 0;
    for (int64_t first = 0; first < count; first += WARP_LANES) {
        const int64_t end = first + WARP_LANES < count ? first + WARP_LANES : count;
        int64_t last_sector = -1;
        for (int64_t e = first; e < end;) {
            const int64_t row = e / r->cols;
            const int64_t piece_end = (row + 1) * r->cols < end ? (row + 1) * r->cols : end;
            const int64_t element = row * r->stride + e % r->cols;
            const int64_t address = r->start + element * r->element_bytes;
            const int64_t bytes = (piece_end - e) * r->element_bytes;
            sectors += span(address, bytes);
            if (address / SECTOR_BYTES == last_sector)
                sectors--;
            last_sector = (address + bytes - 1) / SECTOR_BYTES;
            e = piece_end;
        }
    }
    return sectors;
}

int64_t sectors_by_warps(const struct region *r)
{
    if (r->cols == r->stride || r->rows == 1)
        return contiguous_requests(r->start, r->rows * r->cols, r->element_bytes);
    if (r->cols % WARP_LANES != 0)
        return broken_requests(r);
    const int64_t row_bytes = r->stride * r->element_bytes;
    if (row_bytes % SECTOR_BYTES == 0)
        return r->rows * contiguous_requests(r->start, r->cols, r->element_bytes);
    int64_t sectors = 0;
    for (int64_t row = 0; row < r->rows; row++)
        sectors += contiguous_requests(r->start + row * row_bytes, r->cols, r->element_bytes);
    return sectors;
}

int64_t sectors_by_spans(const struct region *r)
{
    if (r->cols == r->stride || r->rows == 1)
        return span(r->start % SECTOR_BYTES, r->rows * r->cols * r->element_bytes);
    int64_t sectors = 0;
    for (int64_t row = 0; row < r->rows; row++) {
        const int64_t address = r->start + row * r->stride * r->element_bytes;
        sectors += span(address % SECTOR_BYTES, r->cols * r->element_bytes);
    }
    return sectors;
}

int sectors_of_request(const int64_t *address, int active)
{
    int sectors = 0;
    int64_t highest = -1;
    for (int lane = 0; lane < active; lane++) {
        const int64_t sector = address[lane] / SECTOR_BYTES;
        bool seen = sector == highest;
        if (sector > highest) /* the usual case: addresses ascend */
            highest = sector;
        else
            for (int other = 0; other < lane && !seen; other++)
                seen = address[other] / SECTOR_BYTES == sector;
        sectors += !seen;
    }
    return sectors;
}
