/* The cache of the L2 model: tags of sectored lines, least recently used first out, written
 * back.
 *
 * Protects: every access of random streams over random shapes against a reference that keeps
 * whole lines with the time of their last use; the textbook's cases; refused shapes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "models/l2_cache.h"

static struct l2_cache new_cache(const struct l2_shape *shape)
{
    struct l2_cache cache;
    struct error error;
    if (l2_cache_init(&cache, shape, &error))
        fail_msg("%s", error.text);
    return cache;
}

/* Four lines of four sectors in one set. */
static const struct l2_shape one_set = {
    .bytes = 512, .line_bytes = 128, .sector_bytes = 32, .ways = 4, .dirty_ways = 4};

static void assert_result(struct l2_result r, int missed, int written_back)
{
    assert_int_equal(r.missed, missed);
    assert_int_equal(r.written_back, written_back);
}

static void test_a_sector_misses_once(void **state)
{
    struct l2_cache cache = new_cache(&one_set);
    (void)state;
    assert_result(l2_cache_read(&cache, 7, 0x1), 0x1, 0);
    assert_result(l2_cache_read(&cache, 7, 0x1), 0, 0);
    assert_result(l2_cache_read(&cache, 7, 0xf), 0xe, 0); /* its neighbours were not fetched */
    assert_result(l2_cache_read(&cache, 7, 0xf), 0, 0);
    l2_cache_free(&cache);
}

static void test_the_least_recently_used_line_leaves(void **state)
{
    struct l2_cache cache = new_cache(&one_set);
    (void)state;
    for (uint32_t line = 0; line < 4; line++)
        assert_result(l2_cache_read(&cache, line, 0xf), 0xf, 0);
    assert_result(l2_cache_read(&cache, 0, 0xf), 0, 0);
    assert_result(l2_cache_read(&cache, 4, 0xf), 0xf, 0); /* takes the place of line 1 */
    assert_result(l2_cache_read(&cache, 0, 0xf), 0, 0);
    assert_result(l2_cache_read(&cache, 1, 0xf), 0xf, 0);
    l2_cache_free(&cache);
}

/* A loop over one line more than there are misses every time: what is needed next has just
 * gone.
 */
static void test_a_loop_just_too_long_never_hits(void **state)
{
    struct l2_cache cache = new_cache(&one_set);
    (void)state;
    for (int access = 0; access < 50; access++)
        assert_result(l2_cache_read(&cache, (uint32_t)access % 5, 0x8), 0x8, 0);
    l2_cache_free(&cache);
}

static void test_written_sectors_go_to_memory_when_their_line_leaves(void **state)
{
    struct l2_cache cache = new_cache(&one_set);
    (void)state;
    assert_result(l2_cache_write(&cache, 0, 0x6), 0x6, 0);
    assert_result(l2_cache_write(&cache, 0, 0x2), 0, 0); /* written again: still one sector */
    assert_result(l2_cache_read(&cache, 0, 0x1), 0x1, 0);
    assert_int_equal(l2_cache_dirty_sectors(&cache), 2);
    for (uint32_t line = 1; line < 4; line++)
        assert_result(l2_cache_read(&cache, line, 0x1), 0x1, 0);
    assert_result(l2_cache_read(&cache, 4, 0x1), 0x1, 2);
    assert_int_equal(l2_cache_dirty_sectors(&cache), 0);
    l2_cache_free(&cache);
}

static void test_lines_of_one_set_conflict(void **state)
{
    const struct l2_shape direct_mapped = {
        .bytes = 1024, .line_bytes = 128, .sector_bytes = 128, .ways = 1, .dirty_ways = 1};
    struct l2_cache cache = new_cache(&direct_mapped);
    (void)state;
    for (int round = 0; round < 3; round++) { /* 3 and 11 share a set of eight */
        assert_result(l2_cache_read(&cache, 3, 1), 1, 0);
        assert_result(l2_cache_read(&cache, 11, 1), 1, 0);
    }
    assert_result(l2_cache_read(&cache, 12, 1), 1, 0);
    assert_result(l2_cache_read(&cache, 11, 1), 0, 0);
    l2_cache_free(&cache);
}

static void test_invalidated_sectors_are_gone_and_not_written(void **state)
{
    struct l2_cache cache = new_cache(&one_set);
    (void)state;
    l2_cache_write(&cache, 5, 0xf);
    l2_cache_invalidate(&cache, 5, 0x3);
    l2_cache_invalidate(&cache, 6, 0xf); /* not there */
    assert_int_equal(l2_cache_dirty_sectors(&cache), 2);
    assert_result(l2_cache_read(&cache, 5, 0xf), 0x3, 0);
    l2_cache_clear(&cache);
    assert_int_equal(l2_cache_dirty_sectors(&cache), 0);
    assert_result(l2_cache_read(&cache, 5, 0xf), 0xf, 0);
    l2_cache_free(&cache);
}

static void test_old_lines_are_cleaned_before_they_leave(void **state)
{
    struct l2_shape shape = one_set;
    shape.clean_ways = 2;
    struct l2_cache cache = new_cache(&shape);
    (void)state;
    assert_result(l2_cache_write(&cache, 0, 0x3), 0x3, 0);
    assert_result(l2_cache_write(&cache, 1, 0x4), 0x4, 0);
    assert_result(l2_cache_read(&cache, 2, 0x1), 0x1, 2); /* line 0 becomes the third */
    assert_result(l2_cache_read(&cache, 0, 0x3), 0, 1);   /* it is still there; now line 1 is */
    assert_int_equal(l2_cache_dirty_sectors(&cache), 0);
    l2_cache_free(&cache);
}

static void test_the_oldest_of_too_many_dirty_lines_is_cleaned(void **state)
{
    struct l2_shape shape = one_set;
    shape.dirty_ways = 2;
    struct l2_cache cache = new_cache(&shape);
    (void)state;
    assert_result(l2_cache_write(&cache, 0, 0x7), 0x7, 0);
    assert_result(l2_cache_write(&cache, 1, 0x1), 0x1, 0);
    assert_result(l2_cache_write(&cache, 0, 0x8), 0x8, 0);
    assert_result(l2_cache_write(&cache, 2, 0x1), 0x1, 1); /* line 1; line 0 is younger */
    assert_result(l2_cache_read(&cache, 1, 0x1), 0, 0);    /* it is still there */
    assert_int_equal(l2_cache_dirty_sectors(&cache), 5);
    l2_cache_free(&cache);
}

static void test_a_line_read_behind_others_leaves_before_them(void **state)
{
    struct l2_cache cache = new_cache(&one_set);
    (void)state;
    for (uint32_t line = 0; line < 3; line++)
        l2_cache_read(&cache, line, 0x1);
    assert_result(l2_cache_read_behind(&cache, 3, 0x3, 3), 0x3, 0);
    assert_result(l2_cache_read(&cache, 4, 0x1), 0x1, 0); /* in place of line 3 */
    assert_result(l2_cache_read(&cache, 0, 0x1), 0, 0);
    assert_result(l2_cache_read_behind(&cache, 3, 0x1, 3), 0x1, 0); /* in place of line 1 */
    assert_result(l2_cache_read_behind(&cache, 3, 0x2, 3), 0x2, 0); /* now the youngest */
    assert_result(l2_cache_read(&cache, 5, 0x1), 0x1, 0);
    assert_result(l2_cache_read(&cache, 3, 0x3), 0, 0);
    l2_cache_free(&cache);
}

/* 64 lines of two stripes fill 16 sets of 4; by chance some would be too full. */
static void test_a_stripe_fills_the_sets_evenly(void **state)
{
    const struct l2_shape shape = {.bytes = 8192,
                                   .line_bytes = 128,
                                   .sector_bytes = 32,
                                   .ways = 4,
                                   .dirty_ways = 4,
                                   .hashed = true,
                                   .neighbours = 2,
                                   .stripe = 16};
    struct l2_cache cache = new_cache(&shape);
    (void)state;
    for (uint32_t line = 64; line < 128; line++) /* as many as there is room for */
        l2_cache_read(&cache, line, 0x1);
    for (uint32_t line = 64; line < 128; line++)
        assert_result(l2_cache_read(&cache, line, 0x1), 0, 0);
    l2_cache_free(&cache);
}

/* The reference: every line ever met. */
struct reference_line {
    uint8_t valid, dirty; /* valid 0: not in the cache */
    int64_t used;         /* time of the last use */
};

enum { LINES = 400, ACCESSES = 4000 };

struct reference {
    const struct l2_cache *cache; /* for its shape */
    struct reference_line line[LINES];
    int64_t now;
};

static int64_t set_of(const struct l2_cache *cache, uint32_t line)
{
    const struct l2_shape *shape = &cache->shape;
    if (!shape->hashed)
        return line % cache->sets;
    const uint32_t group = shape->neighbours > 0 ? line / (uint32_t)shape->neighbours : line;
    const uint32_t stripe = shape->stripe > 0 ? (uint32_t)shape->stripe : 1;
    const int64_t hash = (int64_t)(l2_hash(group / stripe) >> 32);
    return ((hash * cache->sets >> 32) + group % stripe) % cache->sets;
}

/* How many lines of the set of that line are there and were used after that time. */
static int younger(const struct reference *r, uint32_t line, int64_t time)
{
    int count = 0;
    for (uint32_t k = 0; k < LINES; k++)
        count += r->line[k].valid != 0 && r->line[k].used > time &&
                 set_of(r->cache, k) == set_of(r->cache, line);
    return count;
}

/* The line of the set that has age younger ones. */
static struct reference_line *line_of_age(struct reference *r, uint32_t line, int age)
{
    for (uint32_t k = 0; k < LINES; k++)
        if (r->line[k].valid && set_of(r->cache, k) == set_of(r->cache, line) &&
            younger(r, k, r->line[k].used) == age)
            return &r->line[k];
    fail_msg("no line of age %d", age);
    return NULL;
}

static struct l2_result reference_access(struct reference *r, uint32_t line, uint8_t sectors,
                                         bool write)
{
    const struct l2_shape *shape = &r->cache->shape;
    struct reference_line *l = &r->line[line];
    struct l2_result result = {.missed = sectors & (uint8_t)~l->valid};
    if (l->valid == 0 && younger(r, line, -1) == shape->ways) {
        struct reference_line *victim = line_of_age(r, line, shape->ways - 1);
        result.written_back = __builtin_popcount(victim->dirty);
        *victim = (struct reference_line){0};
    }
    l->valid |= sectors;
    l->dirty |= write ? sectors : 0;
    l->used = r->now++;
    int dirty = 0;
    for (int age = 0; age < younger(r, line, -1); age++) {
        struct reference_line *old = line_of_age(r, line, age);
        dirty += old->dirty != 0;
        if (age < shape->ways - shape->clean_ways && dirty <= shape->dirty_ways)
            continue;
        result.written_back += __builtin_popcount(old->dirty);
        old->dirty = 0;
    }
    return result;
}

static struct l2_shape random_shape(struct rng *rng)
{
    const int sector_bytes = 16 << random_int(rng, 0, 2);
    struct l2_shape shape = {.line_bytes = sector_bytes << random_int(rng, 0, 3),
                             .sector_bytes = sector_bytes,
                             .ways = random_int(rng, 1, 20),
                             .hashed = random_int(rng, 0, 1) == 1};
    shape.clean_ways = random_int(rng, 0, 1) * random_int(rng, 0, shape.ways - 1);
    shape.dirty_ways = random_int(rng, 0, 1) ? shape.ways : random_int(rng, 1, shape.ways);
    shape.neighbours = random_int(rng, 0, 2);
    shape.stripe = random_int(rng, 0, 1) * random_int(rng, 0, 30);
    const int sets = shape.hashed ? random_int(rng, 1, 9) : 1 << random_int(rng, 0, 3);
    shape.bytes = (int64_t)sets * shape.ways * shape.line_bytes;
    return shape;
}

static int64_t reference_dirty_sectors(const struct reference *r)
{
    int64_t sectors = 0;
    for (int k = 0; k < LINES; k++)
        sectors += __builtin_popcount(r->line[k].dirty);
    return sectors;
}

/* Lines of a hot part and of all, so that streams hit and miss. */
static void check_stream(const struct l2_shape *shape, struct rng *rng)
{
    struct l2_cache cache = new_cache(shape);
    struct reference reference = {.cache = &cache};
    const int all_sectors = (1 << shape->line_bytes / shape->sector_bytes) - 1;
    int hits = 0, evictions = 0;
    for (int access = 0; access < ACCESSES; access++) {
        const int last = random_int(rng, 0, 2) > 0 ? LINES / 16 : LINES - 1;
        const uint32_t line = (uint32_t)random_int(rng, 0, last);
        const uint8_t sectors = (uint8_t)random_int(rng, 1, all_sectors);
        const bool write = random_int(rng, 0, 3) == 0;
        const struct l2_result expected = reference_access(&reference, line, sectors, write);
        const struct l2_result r = write ? l2_cache_write(&cache, line, sectors)
                                         : l2_cache_read(&cache, line, sectors);
        if (r.missed != expected.missed || r.written_back != expected.written_back)
            fail_msg("%d ways, %lld sets, access %d: line %u, sectors %x: missed %x, not %x; "
                     "written back %d, not %d",
                     shape->ways, (long long)cache.sets, access, line, sectors, r.missed,
                     expected.missed, r.written_back, expected.written_back);
        hits += r.missed == 0;
        evictions += r.written_back != 0;
    }
    assert_int_equal(l2_cache_dirty_sectors(&cache), reference_dirty_sectors(&reference));
    assert_true(hits > 0 && evictions > 0);
    l2_cache_free(&cache);
}

static void test_random_streams_against_the_reference(void **state)
{
    struct rng rng = {1};
    (void)state;
    for (int n = 0; n < 20; n++) {
        const struct l2_shape shape = random_shape(&rng);
        check_stream(&shape, &rng);
    }
}

static void test_shapes_that_cannot_be_are_refused(void **state)
{
    static const struct {
        struct l2_shape shape;
        const char *message;
    } refused[] = {
        {{512, 96, 32, 4, 0, 1, true, 0, 0}, "line_bytes 96: must be a power of two"},
        {{512, 0, 32, 4, 0, 1, true, 0, 0}, "line_bytes 0: must be a power of two"},
        {{512, 128, 24, 4, 0, 1, true, 0, 0}, "sector_bytes 24: must be a power of two"},
        {{512, 128, 256, 4, 0, 1, true, 0, 0},
         "sector_bytes 256: a line of 128 bytes must have"},
        {{512, 128, 8, 4, 0, 1, true, 0, 0}, "sector_bytes 8: a line of 128 bytes must have"},
        {{512, 128, 32, 0, 0, 1, true, 0, 0}, "ways 0: must be from 1 to 64"},
        {{8320, 128, 32, 65, 0, 1, true, 0, 0}, "ways 65: must be from 1 to 64"},
        {{512, 128, 32, 4, 4, 1, true, 0, 0}, "clean_ways 4: must be from 0 to 3"},
        {{512, 128, 32, 4, 0, 0, true, 0, 0}, "dirty_ways 0: must be from 1 to 4"},
        {{512, 128, 32, 4, 0, 5, true, 0, 0}, "dirty_ways 5: must be from 1 to 4"},
        {{512, 128, 32, 4, 0, 1, true, -1, 0}, "neighbours -1: must be 0 or more"},
        {{512, 128, 32, 4, 0, 1, true, 0, -1}, "stripe -1: must be 0 or more"},
        {{0, 128, 32, 4, 0, 1, true, 0, 0}, "bytes 0: must be"},
        {{600, 128, 32, 4, 0, 1, true, 0, 0}, "bytes 600: must be"},
        {{1536, 128, 32, 4, 0, 1, false, 0, 0}, "bytes 1536: 3 sets, must be a power of two"},
    };
    (void)state;
    for (size_t k = 0; k < LENGTH(refused); k++) {
        struct l2_cache cache;
        struct error error;
        assert_int_equal(l2_cache_init(&cache, &refused[k].shape, &error), STATUS_BAD_ARGUMENT);
        if (strncmp(error.text, refused[k].message, strlen(refused[k].message)) != 0)
            fail_msg("\"%s\" does not begin with \"%s\"", error.text, refused[k].message);
    }
    struct l2_cache hashed = new_cache(&(struct l2_shape){1536, 128, 32, 4, 0, 1, true, 0, 0});
    l2_cache_free(&hashed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sector_misses_once),
        cmocka_unit_test(test_the_least_recently_used_line_leaves),
        cmocka_unit_test(test_a_loop_just_too_long_never_hits),
        cmocka_unit_test(test_written_sectors_go_to_memory_when_their_line_leaves),
        cmocka_unit_test(test_lines_of_one_set_conflict),
        cmocka_unit_test(test_invalidated_sectors_are_gone_and_not_written),
        cmocka_unit_test(test_old_lines_are_cleaned_before_they_leave),
        cmocka_unit_test(test_the_oldest_of_too_many_dirty_lines_is_cleaned),
        cmocka_unit_test(test_a_line_read_behind_others_leaves_before_them),
        cmocka_unit_test(test_a_stripe_fills_the_sets_evenly),
        cmocka_unit_test(test_random_streams_against_the_reference),
        cmocka_unit_test(test_shapes_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("L2 cache", tests, NULL, NULL);
}
