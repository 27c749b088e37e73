/* The host's caches fetch the next tiles while a thread block computes.
 *
 * On the GPU, other warps hide how long a tile takes to arrive. Here a core runs one thread
 * block, and tiles that come from beyond its L2 cache would cost 10 % of a FlashAttention run.
 * So tile_load() notes what lies below the tile it loads, which the next iteration of a loop
 * over tiles wants, and the longest tile operation asks for it a part at a time: all of it at
 * once would fill the queue of outstanding misses and wait.
 *
 * Nothing is counted or changed. For core and ops.
 */
#ifndef FLASHLAB_CORE_READ_AHEAD_H
#define FLASHLAB_CORE_READ_AHEAD_H

#include "core/launch.h"

enum { LINE_BYTES = 64, CHUNK_BYTES = 16 * LINE_BYTES, READ_AHEAD_CALLS = 16 };

/* These bytes are likely to be loaded next. Remembered are the last two: K and V. */
static inline void read_ahead_expect(struct thread_block *b, const char *next, size_t bytes)
{
    b->ahead[0] = b->ahead[1];
    b->ahead[1] = (struct read_ahead){next, bytes};
}

/* Asks for a sixteenth of what is expected: part says which. Whole chunks, a little too much
 *  * rather than a loop that ends unpredictably. Inlined by force: gcc drops calls of a
 * function that only prefetches. */
__attribute__((always_inline)) static inline void read_ahead(const struct thread_block *b,
                                                             int part)
{
    for (int k = 0; k < 2; k++) {
        const size_t chunks =
            (b->ahead[k].bytes / READ_AHEAD_CALLS + CHUNK_BYTES - 1) / CHUNK_BYTES;
        const char *next = b->ahead[k].next + (size_t)part * chunks * CHUNK_BYTES;
        for (size_t chunk = 0; chunk < chunks; chunk++, next += CHUNK_BYTES)
            for (int at = 0; at < CHUNK_BYTES; at += LINE_BYTES)
                __builtin_prefetch(next + at, 0, 2);
    }
}

#endif
