/* Transpositions of whole matrices, as five kernels do them: requests of warps to global and
 * shared memory, so that a program on the GPU and a test on the CPU count the same ones.
 *
 * Interface:
 *   int count;
 *   const struct transposition *t = transposition_list(&count);
 *   transposition_walk(&t[0], request, context);      calls request() for each of its requests
 *
 * B[c][r] = A[r][c]. A is rows x cols, B cols x rows, fp32, row after row. A block has 8 warps
 * and a tile of 32 x 32; where a matrix ends inside a tile, what is outside is not touched.
 * With bytes 4 a warp takes a row of the tile at a time, lane k its column k; with bytes 16 it
 * takes four rows, lane k the columns 4 (k % 8) to 4 (k % 8) + 3 of row k / 8. Shared memory is
 * always accessed 4 bytes a lane.
 */
#ifndef FLASHLAB_TESTS_TRANSPOSITIONS_H
#define FLASHLAB_TESTS_TRANSPOSITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/common/probes.h"

enum { TRANSPOSITION_TILE = 32, TRANSPOSITION_WARPS = 8, TRANSPOSITION_MOST = 1 << 20 };

/* Element (row, col) of the tile in shared memory, in words:
 *   strided_store   none: rows of A to columns of B
 *   strided_load    none: columns of A to rows of B
 *   unpadded        32 row + col
 *   padded          33 row + col
 *   swizzled        32 row + (col ^ row) */
enum transposition_kind {
    TRANSPOSE_STRIDED_STORE,
    TRANSPOSE_STRIDED_LOAD,
    TRANSPOSE_UNPADDED,
    TRANSPOSE_PADDED,
    TRANSPOSE_SWIZZLED,
    TRANSPOSITION_KINDS,
};

struct transposition {
    enum transposition_kind kind;
    int bytes;      /* a lane of a request to global memory: 4, or 16 with a tile */
    int rows, cols; /* together at most TRANSPOSITION_MOST; multiples of bytes / 4 */
};

/* All that are counted. */
const struct transposition *transposition_list(int *count);

/* One request of a warp. Bit k of active: lane k takes part, and its byte address is that from
 * the beginning of A, of B, or of shared memory. */
struct warp_request {
    enum probe_access access;
    int bytes; /* a lane */
    uint32_t active;
    int64_t address[PROBE_LANES];
};

typedef void transposition_request(void *context, const struct warp_request *request);

/* Calls request() for every request of every block. */
void transposition_walk(const struct transposition *t, transposition_request *request,
                        void *context);

const char *transposition_name(enum transposition_kind kind); /* "strided_store" */

/* False if there is none of that name. */
bool transposition_parse(enum transposition_kind *kind, const char *name);

#endif
