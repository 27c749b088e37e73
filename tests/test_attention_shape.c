/* The attention problem: what is allowed, and the index arithmetic that kernels and models
 * share.
 *
 * Protects: every bad field is refused by its option's name, its value and what is allowed;
 * counts that would overflow are refused; masks align as they say, also for lengths that
 * differ; heads are grouped, not interleaved; a kernel visits exactly the tiles that hold a
 * visible key. Expected values are stated here key by key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core_fixture.h"
#include "core/attention.h"

static const struct attention good = {
    .batch = 2,
    .heads_q = 6,
    .heads_kv = 2,
    .seqlen_q = 100,
    .seqlen_k = 77,
    .head_dim = 64,
    .head_dim_v = 80,
    .scale = 0.125f,
    .mask = MASK_CAUSAL,
    .dtype = DTYPE_F16,
    .block_q = 16,
    .block_k = 32,
};

static void test_names_round_trip(void **state)
{
    static const char *masks[] = {"none", "causal", "causal-top-left"};
    static const char *algorithms[] = {"naive", "standard", "flash1", "flash2"};
    static const char *unknown[] = {"", "flash", "Causal", "causal ", "flash22", "nonee"};
    enum mask mask = MASK_COUNT;
    enum algorithm algorithm = ALGORITHM_COUNT;
    (void)state;
    assert_int_equal(MASK_COUNT, LENGTH(masks));
    assert_int_equal(ALGORITHM_COUNT, LENGTH(algorithms));
    for (size_t i = 0; i < LENGTH(unknown); i++) {
        assert_false(mask_parse(&mask, unknown[i]));
        assert_false(algorithm_parse(&algorithm, unknown[i]));
    }
    assert_int_equal(mask, MASK_COUNT); /* untouched */
    assert_int_equal(algorithm, ALGORITHM_COUNT);
    for (int i = 0; i < MASK_COUNT; i++) {
        assert_string_equal(mask_name((enum mask)i), masks[i]);
        assert_true(mask_parse(&mask, masks[i]));
        assert_int_equal(mask, i);
    }
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        assert_string_equal(algorithm_name((enum algorithm)i), algorithms[i]);
        assert_true(algorithm_parse(&algorithm, algorithms[i]));
        assert_int_equal(algorithm, i);
    }
}

/* Fails unless a is refused with a message that contains all of these. */
static void expect_refusal(const struct attention *a, const char *option, const char *value,
                           const char *allowed)
{
    struct error error = {0};
    assert_int_equal(attention_check(a, &error), STATUS_BAD_ARGUMENT);
    assert_int_equal(error.status, STATUS_BAD_ARGUMENT);
    const char *const parts[] = {option, value, allowed};
    for (size_t i = 0; i < LENGTH(parts); i++)
        if (!strstr(error.text, parts[i]))
            fail_msg("'%s' is not in: %s", parts[i], error.text);
}

static void expect_allowed(const struct attention *a)
{
    struct error error = {0};
    if (attention_check(a, &error) != STATUS_OK)
        fail_msg("%s", error.text);
}

static void test_every_bad_extent_is_named(void **state)
{
    struct attention a = good;
    const struct {
        const char *option;
        int *field;
        int most;
    } fields[] = {
        {"--batch ", &a.batch, 1 << 30},       {"--heads-q ", &a.heads_q, 1 << 30},
        {"--heads-kv ", &a.heads_kv, 1 << 30}, {"--seqlen-q ", &a.seqlen_q, 1 << 30},
        {"--seqlen-k ", &a.seqlen_k, 1 << 30}, {"--head-dim ", &a.head_dim, 1 << 16},
        {"--block-q ", &a.block_q, 1 << 16},   {"--head-dim-v ", &a.head_dim_v, 1 << 16},
        {"--block-k ", &a.block_k, 1 << 16},
    };
    (void)state;
    expect_allowed(&a);
    for (size_t i = 0; i < LENGTH(fields); i++) {
        const int bad[] = {0, -1, INT_MIN, fields[i].most + 1, INT_MAX};
        char value[16], allowed[32];
        snprintf(allowed, sizeof allowed, "from 1 to %d", fields[i].most);
        for (size_t k = 0; k < LENGTH(bad); k++) {
            a = good;
            *fields[i].field = bad[k];
            snprintf(value, sizeof value, " %d", bad[k]);
            expect_refusal(&a, fields[i].option, value, allowed);
        }
        /* The ends are allowed, by themselves: a small problem otherwise. */
        a = (struct attention){1, 1, 1, 1, 1, 1, 1, 1.0f, MASK_NONE, DTYPE_F32, 1, 1, false};
        expect_allowed(&a);
        a.heads_q = fields[i].field == &a.heads_kv ? fields[i].most : 1;
        *fields[i].field = fields[i].most;
        expect_allowed(&a);
    }
}

static void test_heads_and_scale_are_checked(void **state)
{
    static const int pairs[][3] = {/* heads_q, heads_kv, allowed */
                                   {6, 2, 1}, {6, 6, 1}, {6, 1, 1}, {6, 4, 0},
                                   {2, 6, 0}, {1, 2, 0}, {7, 3, 0}, {64, 8, 1}};
    static const float scales[] = {NAN, INFINITY, -INFINITY};
    struct attention a = good;
    char q[16], kv[16];
    (void)state;
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        a.heads_q = pairs[i][0];
        a.heads_kv = pairs[i][1];
        snprintf(q, sizeof q, "--heads-q %d", a.heads_q);
        snprintf(kv, sizeof kv, "(%d)", a.heads_kv);
        if (pairs[i][2])
            expect_allowed(&a);
        else
            expect_refusal(&a, q, kv, "multiple of --heads-kv");
    }
    a = good;
    for (size_t i = 0; i < LENGTH(scales); i++) {
        a.scale = scales[i];
        snprintf(q, sizeof q, "%g", (double)a.scale);
        expect_refusal(&a, "--scale", q, "finite");
    }
    a.scale = 0.0f;
    expect_allowed(&a);
    a.scale = -1.5f;
    expect_allowed(&a);
}

/* Powers of two, so that their product is exact: 64 bytes or FLOPs for each of
 * batch heads seqlen_q seqlen_k (d + dv) must stay below 2^63. */
static void test_counts_that_overflow_are_refused(void **state)
{
    static const int exponents[][5] = {
        /* batch, heads, seqlen_q, seqlen_k, head dims */
        {0, 0, 30, 30, 16},  {0, 0, 30, 30, 0},  {0, 0, 28, 28, 0},  {0, 0, 28, 27, 0},
        {6, 5, 20, 20, 7},   {2, 3, 20, 20, 11}, {2, 3, 20, 20, 10}, {30, 0, 1, 1, 1},
        {15, 15, 10, 10, 5}, {16, 15, 0, 0, 0},  {30, 30, 0, 0, 0},  {30, 30, 30, 30, 16},
        {0, 30, 26, 0, 0},   {0, 30, 25, 0, 0},  {0, 30, 25, 1, 0},
    };
    (void)state;
    int refused = 0;
    for (size_t i = 0; i < LENGTH(exponents); i++) {
        const int *e = exponents[i];
        struct attention a = good;
        a.batch = 1 << e[0];
        a.heads_q = a.heads_kv = 1 << e[1];
        a.seqlen_q = 1 << e[2];
        a.seqlen_k = 1 << e[3];
        a.head_dim = a.head_dim_v = 1 << e[4];
        const int total = e[0] + e[1] + e[2] + e[3] + e[4] + 1 + 6;
        char value[32];
        snprintf(value, sizeof value, "--seqlen-k %d", a.seqlen_k);
        if (total >= 63 || e[0] + e[1] > 30) {
            expect_refusal(&a, "overflow 64 bits", value, "--head-dim");
            refused++;
        } else {
            expect_allowed(&a);
        }
    }
    assert_in_range(refused, 5, LENGTH(exponents) - 5); /* both happen */
}

/* Whether the mask lets query row see key, as the headers put it. */
static bool visible(const struct attention *a, int row, int key)
{
    if (a->mask == MASK_CAUSAL) /* aligned at the last query and the last key */
        return a->seqlen_k - 1 - key >= a->seqlen_q - 1 - row;
    if (a->mask == MASK_CAUSAL_TOP_LEFT)
        return key <= row;
    return true;
}

static void test_visible_keys_of_known_shapes(void **state)
{
    static const struct {
        int seqlen_q, seqlen_k;
        enum mask mask;
        int keys[5];
    } known[] = {
        {2, 5, MASK_CAUSAL, {4, 5}},
        {5, 2, MASK_CAUSAL, {0, 0, 0, 1, 2}},
        {3, 3, MASK_CAUSAL, {1, 2, 3}},
        {1, 5, MASK_CAUSAL, {5}},
        {2, 5, MASK_CAUSAL_TOP_LEFT, {1, 2}},
        {5, 2, MASK_CAUSAL_TOP_LEFT, {1, 2, 2, 2, 2}},
        {3, 3, MASK_CAUSAL_TOP_LEFT, {1, 2, 3}},
        {2, 5, MASK_NONE, {5, 5}},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++) {
        struct attention a = good;
        a.seqlen_q = known[i].seqlen_q;
        a.seqlen_k = known[i].seqlen_k;
        a.mask = known[i].mask;
        for (int row = 0; row < a.seqlen_q; row++)
            assert_int_equal(attention_visible_keys(&a, row), known[i].keys[row]);
    }
}

/* True if Q tile i and K/V tile j share a visible pair. */
static bool tile_is_needed(const struct attention *a, int i, int j)
{
    for (int row = i * a->block_q; row < (i + 1) * a->block_q && row < a->seqlen_q; row++)
        for (int key = j * a->block_k; key < (j + 1) * a->block_k && key < a->seqlen_k; key++)
            if (visible(a, row, key))
                return true;
    return false;
}

static void check_shape(const struct attention *a)
{
    for (int row = 0; row < a->seqlen_q; row++) {
        const int count = attention_visible_keys(a, row);
        for (int key = 0; key < a->seqlen_k; key++)
            assert_int_equal(visible(a, row, key), key < count);
        assert_in_range(count, 0, a->seqlen_k);
    }
    const int Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    assert_true(Tr * a->block_q >= a->seqlen_q && (Tr - 1) * a->block_q < a->seqlen_q);
    assert_true(Tc * a->block_k >= a->seqlen_k && (Tc - 1) * a->block_k < a->seqlen_k);
    for (int i = 0; i < Tr; i++) {
        const int count = attention_visited_tiles(a, i);
        assert_in_range(count, 0, Tc);
        for (int j = 0; j < Tc; j++)
            assert_int_equal(tile_is_needed(a, i, j), j < count);
    }
}

static void test_visible_keys_and_visited_tiles_by_enumeration(void **state)
{
    (void)state;
    struct rng rng = {31};
    for (int n = 0; n < 1500; n++) {
        struct attention a = good;
        a.mask = (enum mask)(n % MASK_COUNT);
        a.seqlen_q = random_int(&rng, 1, 40);
        a.seqlen_k = n % 5 ? random_int(&rng, 1, 40) : a.seqlen_q;
        a.block_q = random_int(&rng, 1, 17);
        a.block_k = random_int(&rng, 1, 17);
        check_shape(&a);
    }
}

/* The longest lengths that attention_check() allows do not overflow the index arithmetic. */
static void test_long_sequences_do_not_overflow(void **state)
{
    static const enum mask masks[] = {MASK_CAUSAL, MASK_CAUSAL_TOP_LEFT};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct attention a = {1,         1,       1,       1,    1, 1, 1, 1.0f, masks[k % 2],
                              DTYPE_F32, 1 << 16, 1 << 16, false};
        a.seqlen_q = 1 << (k / 2 ? 30 : 25);
        a.seqlen_k = 1 << (k / 2 ? 25 : 30);
        expect_allowed(&a);
        const int last = attention_tiles_q(&a) - 1, row = a.seqlen_q - 1;
        assert_int_equal(last, a.seqlen_q / a.block_q - 1);
        const int want =
            a.mask == MASK_CAUSAL || a.seqlen_q >= a.seqlen_k ? a.seqlen_k : a.seqlen_q;
        assert_int_equal(attention_visible_keys(&a, row), want);
        assert_int_equal(attention_visited_tiles(&a, last), want / a.block_k);
        a.block_q = a.block_k = (1 << 16) - 1; /* the last tile's end is past the last row */
        assert_int_equal(attention_visited_tiles(&a, attention_tiles_q(&a) - 1),
                         (want + a.block_k - 1) / a.block_k);
    }
}

/* Query heads are grouped: with 6 over 2, heads 0 1 2 use kv head 0 and 3 4 5 use 1. */
static void test_kv_plane_of_grouped_heads(void **state)
{
    static const int want[12] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    (void)state;
    assert_int_equal(attention_planes_q(&good), 12);
    assert_int_equal(attention_planes_kv(&good), 4);
    for (int plane = 0; plane < 12; plane++)
        assert_int_equal(attention_kv_plane(&good, plane), want[plane]);
    struct attention a = good;
    a.heads_kv = 1;
    for (int plane = 0; plane < 12; plane++)
        assert_int_equal(attention_kv_plane(&a, plane), plane / 6);
    a.heads_kv = 6;
    for (int plane = 0; plane < 12; plane++)
        assert_int_equal(attention_kv_plane(&a, plane), plane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_round_trip),
        cmocka_unit_test(test_every_bad_extent_is_named),
        cmocka_unit_test(test_heads_and_scale_are_checked),
        cmocka_unit_test(test_counts_that_overflow_are_refused),
        cmocka_unit_test(test_visible_keys_of_known_shapes),
        cmocka_unit_test(test_visible_keys_and_visited_tiles_by_enumeration),
        cmocka_unit_test(test_long_sequences_do_not_overflow),
        cmocka_unit_test(test_kv_plane_of_grouped_heads),
    };
    return cmocka_run_group_tests_name("attention_shape", tests, NULL, NULL);
}
