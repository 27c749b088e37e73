#include "models/coalescing.h"

#include <stdbool.h>

#include "core/sectors.h"

static int distinct_lines(const int64_t *address, int count)
{
    int lines = 0;
    for (int k = 0; k < count; k++) {
        bool seen = false;
        for (int other = 0; other < k && !seen; other++)
            seen = address[other] / LINE_BYTES == address[k] / LINE_BYTES;
        lines += !seen;
    }
    return lines;
}

/* An aligned access of up to 16 bytes lies in one sector: its first byte says which. */
struct coalesced coalesced_request(const int64_t address[COALESCING_LANES], uint32_t active,
                                   int bytes)
{
    int64_t taken[COALESCING_LANES];
    int count = 0;
    for (int lane = 0; lane < COALESCING_LANES; lane++)
        if (active >> lane & 1)
            taken[count++] = address[lane];
    return (struct coalesced){.sectors = sectors_of_request(taken, count),
                              .lines = distinct_lines(taken, count),
                              .bytes = count * bytes};
}
