/* How many 32-byte sectors an access touches. For core and models only.
 *
 * A region is rows x cols elements of row-major memory whose rows are stride elements apart.
 * start is the byte address of its first element; only its value modulo 32 matters.
 */
#ifndef FLASHLAB_CORE_SECTORS_H
#define FLASHLAB_CORE_SECTORS_H

#include <stdint.h>

struct region {
    int64_t start;
    int element_bytes;
    int64_t rows, cols, stride;
};

/* Sectors of a copy loop in which each request of a warp moves the region's next 32 elements
 * (row-major): distinct sectors of each request, added up. */
int64_t sectors_by_warps(const struct region *r);

/* Sectors of a copy engine that moves each contiguous span of the region in one piece. */
int64_t sectors_by_spans(const struct region *r);

/* Distinct sectors that one request touches: the byte addresses of active lanes. */
int sectors_of_request(const int64_t *address, int active);

#endif
