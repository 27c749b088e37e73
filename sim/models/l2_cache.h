/* A sectored, set-associative, write-back cache: tags only, no data.
 *
 * Interface:
 *   struct l2_cache cache;
 *   l2_cache_init(&cache, &(struct l2_shape){.bytes = 1 << 20, .line_bytes = 128,
 *                                            .sector_bytes = 32, .ways = 16, .hashed = true},
 *                 &error);
 *   struct l2_result r = l2_cache_read(&cache, address / 128, 0xf);     four sectors of a line
 *   r = l2_cache_write(&cache, address / 128, 0x1);                     its first sector
 *   l2_cache_free(&cache);
 *
 * Lines are named by number (address / line_bytes), sectors of a line by the bits of a mask. A
 * line's tag is kept as a whole, each sector is valid or dirty by itself: a miss fetches only
 * the sectors asked for. A write needs no fetch, since whole sectors are written. The least
 * recently used line of a set leaves first, and its dirty sectors are then written back, or
 * before that: see clean_ways and dirty_ways.
 */
#ifndef FLASHLAB_MODELS_L2_CACHE_H
#define FLASHLAB_MODELS_L2_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { L2_MAX_WAYS = 64, L2_MAX_SECTORS = 8 };

struct l2_shape {
    int64_t bytes;    /* of data */
    int line_bytes;   /* a power of two */
    int sector_bytes; /* a power of two; a line has 1 to 8 of them */
    int ways;         /* lines of a set, 1 to 64 */
    int clean_ways;   /* of these, the least recently used, that are kept clean: a dirty line is
                         written back when it becomes one of them. 0: when it is evicted */
    int dirty_ways; /* the most that may be dirty: beyond, the oldest of them is written back */
    bool hashed;    /* sets by a hash of the line, as GPUs do; else by its low bits: their
                       number is then a power of two */
    /* Hashed: as many lines in a row share a set (0: as 1), and as many of such groups in a row
     * lie in sets in a row, from one on that the hash of them all gives (0: as 1). */
    int neighbours, stripe;
};

struct l2_cache {
    struct l2_shape shape;
    int64_t sets;
    uint32_t *tag;  /* [sets][ways], owned: line numbers, most recently used first */
    uint8_t *valid; /* [sets][ways], owned: masks of sectors; 0: no line */
    uint8_t *dirty; /* [sets][ways], owned: masks of sectors, a part of valid */
};

/* What one access did. */
struct l2_result {
    uint8_t missed;   /* a mask, of those asked for: were not there */
    int written_back; /* sectors of lines that had to leave or become clean: went to memory */
};

/* Makes an empty cache. A shape that cannot be is refused with the field, its value and what is
 * allowed. Free with l2_cache_free(). */
enum status l2_cache_init(struct l2_cache *cache, const struct l2_shape *shape,
                          struct error *error);
void l2_cache_free(struct l2_cache *cache);

/* sectors: not 0, bits of one line. Lines up to 2^32 - 1. Afterwards the sectors are there;
 * those that were not have been fetched if read, and are dirty if written. */
struct l2_result l2_cache_read(struct l2_cache *cache, uint32_t line, uint8_t sectors);
struct l2_result l2_cache_write(struct l2_cache *cache, uint32_t line, uint8_t sectors);

/* As a read, but the line is less likely to be asked for again: if it was not there it enters
 * behind place others, 0 to ways - 1. */
struct l2_result l2_cache_read_behind(struct l2_cache *cache, uint32_t line, uint8_t sectors,
                                      int place);

/* Drops the sectors if they are there, dirty or not, without writing back. */
void l2_cache_invalidate(struct l2_cache *cache, uint32_t line, uint8_t sectors);

/* Dirty sectors now: what a write-back of the whole cache would write. */
int64_t l2_cache_dirty_sectors(const struct l2_cache *cache);

/* Drops everything without writing back. */
void l2_cache_clear(struct l2_cache *cache);

/* A hash of a line number whose bits are all usable. The set of a hashed cache comes from its
 * upper half. */
static inline uint64_t l2_hash(uint32_t line)
{
    uint64_t h = line * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

#ifdef __cplusplus
}
#endif

#endif
