#include "models/l2_cache.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool is_power_of_two(int64_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

static enum status check_shape(const struct l2_shape *s, struct error *error)
{
    if (!is_power_of_two(s->line_bytes))
        return error_set(error, STATUS_BAD_ARGUMENT, "line_bytes %d: must be a power of two",
                         s->line_bytes);
    if (!is_power_of_two(s->sector_bytes))
        return error_set(error, STATUS_BAD_ARGUMENT, "sector_bytes %d: must be a power of two",
                         s->sector_bytes);
    if (s->sector_bytes > s->line_bytes || s->line_bytes / s->sector_bytes > L2_MAX_SECTORS)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "sector_bytes %d: a line of %d bytes must have 1 to %d sectors",
                         s->sector_bytes, s->line_bytes, L2_MAX_SECTORS);
    if (s->ways < 1 || s->ways > L2_MAX_WAYS)
        return error_set(error, STATUS_BAD_ARGUMENT, "ways %d: must be from 1 to %d", s->ways,
                         L2_MAX_WAYS);
    if (s->clean_ways < 0 || s->clean_ways >= s->ways)
        return error_set(error, STATUS_BAD_ARGUMENT, "clean_ways %d: must be from 0 to %d",
                         s->clean_ways, s->ways - 1);
    if (s->neighbours < 0)
        return error_set(error, STATUS_BAD_ARGUMENT, "neighbours %d: must be 0 or more",
                         s->neighbours);
    if (s->stripe < 0)
        return error_set(error, STATUS_BAD_ARGUMENT, "stripe %d: must be 0 or more", s->stripe);
    if (s->dirty_ways < 1 || s->dirty_ways > s->ways)
        return error_set(error, STATUS_BAD_ARGUMENT, "dirty_ways %d: must be from 1 to %d",
                         s->dirty_ways, s->ways);
    const int64_t set_bytes = (int64_t)s->line_bytes * s->ways;
    if (s->bytes < set_bytes || s->bytes % set_bytes != 0 || s->bytes / set_bytes > UINT32_MAX)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "bytes %lld: must be 1 to %lld sets of %d lines of %d bytes",
                         (long long)s->bytes, (long long)UINT32_MAX, s->ways, s->line_bytes);
    if (!s->hashed && !is_power_of_two(s->bytes / set_bytes))
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "bytes %lld: %lld sets, must be a power of two if not hashed",
                         (long long)s->bytes, (long long)(s->bytes / set_bytes));
    return STATUS_OK;
}

enum status l2_cache_init(struct l2_cache *cache, const struct l2_shape *shape,
                          struct error *error)
{
    *cache = (struct l2_cache){0};
    if (check_shape(shape, error))
        return error->status;
    const size_t lines = (size_t)(shape->bytes / shape->line_bytes);
    *cache = (struct l2_cache){.shape = *shape,
                               .sets = (int64_t)lines / shape->ways,
                               .tag = calloc(lines, sizeof(uint32_t)),
                               .valid = calloc(lines, 1),
                               .dirty = calloc(lines, 1)};
    if (!cache->tag || !cache->valid || !cache->dirty) {
        l2_cache_free(cache);
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "the host has no memory for the tags of %zu lines", lines);
    }
    return STATUS_OK;
}

void l2_cache_free(struct l2_cache *cache)
{
    free(cache->tag);
    free(cache->valid);
    free(cache->dirty);
    *cache = (struct l2_cache){0};
}

void l2_cache_clear(struct l2_cache *cache)
{
    const size_t lines = (size_t)(cache->sets * cache->shape.ways);
    memset(cache->valid, 0, lines);
    memset(cache->dirty, 0, lines);
}

static uint32_t at_least_one(int count)
{
    return count > 1 ? (uint32_t)count : 1;
}

static uint64_t set_of(const struct l2_cache *cache, uint32_t line)
{
    const uint64_t sets = (uint64_t)cache->sets;
    if (!cache->shape.hashed)
        return line & (sets - 1);
    const uint32_t group = line / at_least_one(cache->shape.neighbours);
    const uint32_t stripe = at_least_one(cache->shape.stripe);
    const uint64_t start = (l2_hash(group / stripe) >> 32) * sets >> 32;
    return (start + group % stripe) % sets;
}

/* Index of the first way of the line's set. */
static size_t first_way(const struct l2_cache *cache, uint32_t line)
{
    return (size_t)(set_of(cache, line) * (uint64_t)cache->shape.ways);
}

/* The way, from first on, that holds the line; ways: none does. */
static int find_way(const struct l2_cache *cache, size_t first, uint32_t line)
{
    const uint32_t *tag = cache->tag + first;
    const uint8_t *valid = cache->valid + first;
    if (tag[0] == line && valid[0]) /* often: SMs share what they read */
        return 0;
    uint64_t equal = 0; /* all ways at once: the compiler makes vector code of it */
    for (int way = 0; way < cache->shape.ways; way++)
        equal |= (uint64_t)(tag[way] == line) << way;
    for (; equal; equal &= equal - 1)
        if (valid[__builtin_ctzll(equal)])
            return __builtin_ctzll(equal);
    return cache->shape.ways;
}

/* The way to give up: the first empty one, or the least recently used. */
static int victim_way(const struct l2_cache *cache, size_t first)
{
    const uint8_t *valid = cache->valid + first;
    const uint8_t *empty = memchr(valid, 0, (size_t)cache->shape.ways);
    return empty ? (int)(empty - valid) : cache->shape.ways - 1;
}

/* Writes back what the way has that is dirty; returns how many sectors. */
static int clean_way(struct l2_cache *cache, size_t first, int way)
{
    uint8_t *dirty = &cache->dirty[first + (size_t)way];
    const int sectors = __builtin_popcount(*dirty);
    *dirty = 0;
    return sectors;
}

/* Puts the line in the place, which is not behind its old way; those from there to its old way
 * move back by one. Returns the sectors written back of the one that has thereby become old
 * enough to be cleaned. */
static int move_to(struct l2_cache *cache, size_t first, int place, int way, uint32_t line,
                   uint8_t valid, uint8_t dirty)
{
    const size_t at = first + (size_t)place, between = (size_t)(way - place);
    memmove(cache->tag + at + 1, cache->tag + at, between * sizeof *cache->tag);
    memmove(cache->valid + at + 1, cache->valid + at, between);
    memmove(cache->dirty + at + 1, cache->dirty + at, between);
    cache->tag[at] = line;
    cache->valid[at] = valid;
    cache->dirty[at] = dirty;
    const int first_clean = cache->shape.ways - cache->shape.clean_ways;
    return place < first_clean && way >= first_clean ? clean_way(cache, first, first_clean) : 0;
}

/* A line that is not there takes the place of another. */
static struct l2_result enter(struct l2_cache *cache, size_t first, int place, uint32_t line,
                              uint8_t sectors, uint8_t written)
{
    const int way = victim_way(cache, first);
    const int evicted = clean_way(cache, first, way);
    const int cleaned =
        move_to(cache, first, place < way ? place : way, way, line, sectors, written);
    return (struct l2_result){sectors, evicted + cleaned};
}

static struct l2_result touch(struct l2_cache *cache, uint32_t line, uint8_t sectors,
                              uint8_t written)
{
    const size_t first = first_way(cache, line);
    const int way = find_way(cache, first, line);
    if (way == cache->shape.ways)
        return enter(cache, first, 0, line, sectors, written);
    const uint8_t valid = cache->valid[first + (size_t)way];
    const uint8_t dirty = cache->dirty[first + (size_t)way];
    const int cleaned = move_to(cache, first, 0, way, line, valid | sectors, dirty | written);
    return (struct l2_result){sectors & (uint8_t)~valid, cleaned};
}

/* Where a set has more dirty lines than it may, cleans the oldest of them. */
static int limit_dirty(struct l2_cache *cache, size_t first)
{
    int dirty = 0, oldest = 0;
    for (int way = 0; way < cache->shape.ways; way++) {
        if (cache->dirty[first + (size_t)way]) {
            dirty++;
            oldest = way;
        }
    }
    return dirty > cache->shape.dirty_ways ? clean_way(cache, first, oldest) : 0;
}

struct l2_result l2_cache_read(struct l2_cache *cache, uint32_t line, uint8_t sectors)
{
    return touch(cache, line, sectors, 0);
}

struct l2_result l2_cache_read_behind(struct l2_cache *cache, uint32_t line, uint8_t sectors,
                                      int place)
{
    const size_t first = first_way(cache, line);
    const int way = find_way(cache, first, line);
    return way == cache->shape.ways ? enter(cache, first, place, line, sectors, 0)
                                    : touch(cache, line, sectors, 0);
}

struct l2_result l2_cache_write(struct l2_cache *cache, uint32_t line, uint8_t sectors)
{
    struct l2_result r = touch(cache, line, sectors, sectors);
    r.written_back += limit_dirty(cache, first_way(cache, line));
    return r;
}

void l2_cache_invalidate(struct l2_cache *cache, uint32_t line, uint8_t sectors)
{
    const size_t first = first_way(cache, line);
    const int way = find_way(cache, first, line);
    if (way == cache->shape.ways)
        return;
    cache->valid[first + (size_t)way] &= (uint8_t)~sectors;
    cache->dirty[first + (size_t)way] &= (uint8_t)~sectors;
}

int64_t l2_cache_dirty_sectors(const struct l2_cache *cache)
{
    const size_t lines = (size_t)(cache->sets * cache->shape.ways);
    int64_t sectors = 0;
    for (size_t k = 0; k < lines; k++)
        sectors += __builtin_popcount(cache->dirty[k]);
    return sectors;
}
