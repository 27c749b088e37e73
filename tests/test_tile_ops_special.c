/* -inf, +inf and NaN in the operations on tiles, and masks.
 *
 * Protects: a masked key is excluded exactly; a row that sees no key, in this tile or in any,
 * ends with P = 0, l = 0, O = 0 and L = -inf and never turns NaN; a NaN or infinite score is
 * not hidden but reaches O and L, whichever tile it is in. The online softmax is run over three
 * tiles of scores whose rows have a story each, told again in double precision over all scores
 * of the row at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "ops/tile_ops.h"

enum { TILES = 3, COLS = 21, DV = 7, KEYS = TILES * COLS };

/* What one row of scores holds besides finite values. */
struct story {
    const char *name;
    bool live[TILES];    /* the tile has keys for the row; otherwise its scores are -inf */
    int special_key;     /* a key whose score is special_score, -1: none */
    float special_score; /* NaN or infinite */
    float offset;        /* added to finite scores */
};

static const struct story stories[] = {
    {"finite", {true, true, true}, -1, 0, 0},
    {"no key at all", {false, false, false}, -1, 0, 0},
    {"no key in the first tile", {false, true, true}, -1, 0, 0},
    {"keys in the middle only", {false, true, false}, -1, 0, 0},
    {"keys in the first tile only", {true, false, false}, -1, 0, 0},
    {"keys in the last tile only", {false, false, true}, -1, 0, 0},
    {"one key at -inf", {true, true, true}, 30, -INFINITY, 0},
    {"far below zero", {true, true, true}, -1, 0, -20000.0f},
    {"far above zero", {true, true, true}, -1, 0, 20000.0f},
    {"NaN at first", {true, true, true}, 0, NAN, 0},
    {"NaN in the middle", {true, true, true}, 30, NAN, 0},
    {"NaN at the end", {true, true, true}, KEYS - 1, NAN, 0},
    {"NaN and no key", {false, false, false}, 30, NAN, 0},
    {"NaN before any key", {false, false, true}, 3, NAN, 0},
    {"inf at first", {true, true, true}, 0, INFINITY, 0},
    {"inf in the middle", {true, true, true}, 30, INFINITY, 0},
    {"inf at the end", {true, true, true}, KEYS - 1, INFINITY, 0},
    {"inf and no key", {false, false, false}, 30, INFINITY, 0},
};

enum { ROWS = LENGTH(stories) };

/* Scores and values in, what the online softmax makes of them out. */
struct softmax {
    float S[ROWS][KEYS], V[KEYS][DV];
    float P[TILES][ROWS][COLS], l[ROWS], m[ROWS], O[ROWS][DV], L[ROWS];
    float c[ROWS]; /* the correction when the first tile is met */
};

static void fill_scores(struct softmax *s)
{
    struct rng rng = {51};
    for (int row = 0; row < ROWS; row++) {
        const struct story *story = &stories[row];
        for (int key = 0; key < KEYS; key++) {
            const float score = 2.0f * random_value(&rng) + story->offset;
            s->S[row][key] = story->live[key / COLS] ? score : -INFINITY;
            if (key == story->special_key)
                s->S[row][key] = story->special_score;
        }
    }
    for (int key = 0; key < KEYS; key++)
        for (int c = 0; c < DV; c++)
            s->V[key][c] = random_value(&rng);
}

/* Tiles of the loop; their padding, one row, stays NaN. */
struct softmax_tiles {
    struct tile S, V, O, m, m_new, l, c, L;
};

static void meet_tile(struct softmax_tiles *t, struct softmax *s, int j)
{
    for (int row = 0; row < ROWS; row++)
        memcpy(tile_writable(&t->S) + row * COLS, &s->S[row][j * COLS], COLS * sizeof(float));
    memcpy(tile_writable(&t->V), s->V[j * COLS], COLS * DV * sizeof(float));
    tile_row_max(&t->m_new, &t->m, &t->S, ROWS, COLS);
    tile_correction(&t->c, &t->m, &t->m_new, ROWS);
    if (j == 0)
        memcpy(s->c, t->c.data, sizeof s->c);
    tile_exp_sum(&t->S, &t->m_new, &t->l, &t->c, ROWS, COLS);
    memcpy(s->P[j], t->S.data, sizeof s->P[j]);
    tile_scale_rows(&t->O, &t->c, ROWS, DV);
    tile_add_product(&t->O, &t->S, &t->V, ROWS, COLS);
    tile_copy(&t->m, &t->m_new);
}

static void softmax_block(struct thread_block *b, const void *args)
{
    struct softmax *s = *(struct softmax *const *)args;
    struct softmax_tiles t;
    tile_alloc(&t.S, b, LEVEL_SRAM, "S", DTYPE_F32, ROWS + 1, COLS);
    tile_alloc(&t.V, b, LEVEL_SRAM, "V", DTYPE_F32, COLS, DV);
    tile_alloc(&t.O, b, LEVEL_SRAM, "O", DTYPE_F32, ROWS + 1, DV);
    struct tile *columns[] = {&t.m, &t.m_new, &t.l, &t.c, &t.L};
    for (size_t i = 0; i < LENGTH(columns); i++)
        tile_alloc(columns[i], b, LEVEL_REGISTERS, "column", DTYPE_F32, ROWS + 1, 1);
    tile_fill(&t.O, 0.0f);
    tile_fill(&t.m, -INFINITY);
    tile_fill(&t.l, 0.0f);
    for (int j = 0; j < TILES; j++)
        meet_tile(&t, s, j);
    tile_divide_rows(&t.O, &t.l, ROWS, DV);
    tile_log_sum_exp(&t.L, &t.m, &t.l, ROWS);
    memcpy(s->l, t.l.data, sizeof s->l);
    memcpy(s->m, t.m.data, sizeof s->m);
    memcpy(s->O, t.O.data, sizeof s->O);
    memcpy(s->L, t.L.data, sizeof s->L);
}

/* A row without keys: exactly nothing. */
static bool is_dead(const struct softmax *s, int row)
{
    bool dead = s->l[row] == 0.0f && s->m[row] == -INFINITY && s->L[row] == -INFINITY;
    for (int key = 0; key < KEYS; key++)
        dead = dead && s->P[key / COLS][row][key % COLS] == 0.0f;
    for (int c = 0; c < DV; c++)
        dead = dead && s->O[row][c] == 0.0f;
    return dead;
}

/* A row with a NaN or +inf score: all of O is NaN, and L is no number a reader could trust. */
static bool is_poisoned(const struct softmax *s, int row)
{
    bool poisoned = isnan(s->L[row]) || s->L[row] == INFINITY;
    for (int c = 0; c < DV; c++)
        poisoned = poisoned && isnan(s->O[row][c]);
    return poisoned;
}

/* O and L of a row with finite scores, over all keys at once. */
static bool is_softmax(const struct softmax *s, int row)
{
    double max = -INFINITY, sum = 0, output[DV] = {0};
    for (int key = 0; key < KEYS; key++)
        max = fmax(max, (double)s->S[row][key]);
    for (int key = 0; key < KEYS; key++)
        sum += exp((double)s->S[row][key] - max);
    for (int key = 0; key < KEYS; key++)
        for (int c = 0; c < DV; c++)
            output[c] += exp((double)s->S[row][key] - max) / sum * (double)s->V[key][c];
    /* |V| <= 2, and each weight's relative error is below (KEYS + 10) roundings. */
    const double tolerance = 2 * (KEYS + 10) * 0x1p-24, L = max + log(sum);
    bool right = fabs((double)s->L[row] - L) <= tolerance + fabs(L) * 0x1p-24;
    for (int c = 0; c < DV; c++)
        right = right && fabs((double)s->O[row][c] - output[c]) <= tolerance;
    return right;
}

static void test_online_softmax_of_every_story(void **state)
{
    static struct softmax softmax, *args = &softmax;
    (void)state;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    fill_scores(&softmax);
    run_one_block(&gpu, softmax_block, &args);
    for (int row = 0; row < ROWS; row++) {
        const struct story *story = &stories[row];
        const bool special = story->special_key >= 0 && story->special_score != -INFINITY;
        const bool any = story->live[0] || story->live[1] || story->live[2];
        const bool verdicts[] = {is_softmax(&softmax, row), is_dead(&softmax, row),
                                 is_poisoned(&softmax, row)};
        const int want = special ? 2 : any ? 0 : 1;
        for (int k = 0; k < 3; k++) /* one of the three, and only that one */
            if (verdicts[k] != (k == want))
                fail_msg("'%s': verdict %d; l = %g, L = %g, O = %g ...", story->name, k,
                         (double)softmax.l[row], (double)softmax.L[row],
                         (double)softmax.O[row][0]);
        assert_true(softmax.c[row] == 0.0f); /* nothing came before: exp(-inf) */
        if (story->special_score == -INFINITY && story->special_key >= 0)
            assert_true(softmax.P[story->special_key / COLS][row][story->special_key % COLS] ==
                        0.0f);
    }
}

/* One call of tile_row_max. */
enum { FEW = 19 };

struct maxima {
    float S[FEW][FEW], m[FEW], m_new[FEW];
};

static void maxima_block(struct thread_block *b, const void *args)
{
    struct maxima *x = *(struct maxima *const *)args;
    struct tile S, m, m_new;
    tile_alloc(&S, b, LEVEL_SRAM, "S", DTYPE_F32, FEW, FEW);
    tile_alloc(&m, b, LEVEL_SRAM, "m", DTYPE_F32, FEW, 1);
    tile_alloc(&m_new, b, LEVEL_SRAM, "m_new", DTYPE_F32, FEW, 1);
    memcpy(tile_writable(&S), x->S, sizeof x->S);
    memcpy(tile_writable(&m), x->m, sizeof x->m);
    tile_row_max(&m_new, &m, &S, FEW, FEW);
    memcpy(x->m_new, m_new.data, sizeof x->m_new);
}

/* NaN anywhere in a row does not become the maximum and does not hide the real one. */
static void test_row_max_passes_over_nan(void **state)
{
    static struct maxima x, *args = &x;
    struct rng rng = {52};
    (void)state;
    for (int n = 0; n < 40; n++) {
        float want[FEW];
        for (int r = 0; r < FEW; r++) {
            want[r] = x.m[r] = n % 2 ? -INFINITY : random_value(&rng);
            for (int c = 0; c < FEW; c++) {
                x.S[r][c] = random_int(&rng, 0, 2) && r != n % FEW ? random_value(&rng) : NAN;
                want[r] = x.S[r][c] > want[r] ? x.S[r][c] : want[r];
            }
        }
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        run_one_block(&gpu, maxima_block, &args);
        for (int r = 0; r < FEW; r++)
            assert_true(x.m_new[r] == want[r]);
    }
}

/* O <- diag(l)^-1 O, whatever a row with l = 0 held. */
struct division {
    float O[5][2], l[5];
};

static void division_block(struct thread_block *b, const void *args)
{
    struct division *x = *(struct division *const *)args;
    struct tile O, l;
    tile_alloc(&O, b, LEVEL_SRAM, "O", DTYPE_F32, 5, 2);
    tile_alloc(&l, b, LEVEL_SRAM, "l", DTYPE_F32, 5, 1);
    memcpy(tile_writable(&O), x->O, sizeof x->O);
    memcpy(tile_writable(&l), x->l, sizeof x->l);
    tile_divide_rows(&O, &l, 5, 2);
    memcpy(x->O, O.data, sizeof x->O);
}

static void test_rows_with_sum_zero_become_zero(void **state)
{
    struct division x = {{{3, 4}, {5, -6}, {INFINITY, -INFINITY}, {NAN, 1}, {7, 8}},
                         {2, 0, 0, 0, NAN}};
    const struct division *args = &x;
    (void)state;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    run_one_block(&gpu, division_block, &args);
    assert_true(x.O[0][0] == 1.5f && x.O[0][1] == 2.0f);
    for (int r = 1; r < 4; r++)
        assert_true(x.O[r][0] == 0.0f && x.O[r][1] == 0.0f);
    assert_true(isnan(x.O[4][0]) && isnan(x.O[4][1]));
}

/* One call of tile_mask on a tile of a larger matrix of scores. */
struct masking {
    struct attention a;
    int row0, col0, rows, cols;
    float S[12 * 14];
};

static void masking_block(struct thread_block *b, const void *args)
{
    struct masking *x = *(struct masking *const *)args;
    struct tile S;
    tile_alloc(&S, b, LEVEL_REGISTERS, "S", DTYPE_F32, 12, 14);
    memcpy(tile_writable(&S), x->S, sizeof x->S);
    tile_mask(&S, &x->a, x->row0, x->col0, x->rows, x->cols);
    memcpy(x->S, S.data, sizeof x->S);
}

static bool hidden(const struct attention *a, int row, int key)
{
    if (a->mask == MASK_CAUSAL)
        return key - row > a->seqlen_k - a->seqlen_q;
    return a->mask == MASK_CAUSAL_TOP_LEFT && key > row;
}

static void test_mask_hides_exactly_the_keys_it_should(void **state)
{
    struct rng rng = {53};
    (void)state;
    for (int n = 0; n < 600; n++) {
        struct masking x = {.a = {.mask = (enum mask)(n % MASK_COUNT)}}, *args = &x;
        x.a.seqlen_q = random_int(&rng, 1, 60);
        x.a.seqlen_k = random_int(&rng, 1, 60);
        x.row0 = random_int(&rng, 0, x.a.seqlen_q - 1);
        x.col0 = random_int(&rng, 0, x.a.seqlen_k - 1);
        x.rows = random_int(&rng, 1, 12);
        x.cols = random_int(&rng, 1, 14);
        x.rows = x.rows < x.a.seqlen_q - x.row0 ? x.rows : x.a.seqlen_q - x.row0;
        x.cols = x.cols < x.a.seqlen_k - x.col0 ? x.cols : x.a.seqlen_k - x.col0;
        for (size_t i = 0; i < LENGTH(x.S); i++)
            x.S[i] = random_value(&rng);
        const struct masking before = x;
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        run_one_block(&gpu, masking_block, &args);
        assert_int_equal(gpu_account(&gpu).flops.other, 0);
        for (int i = 0; i < (int)LENGTH(x.S); i++) {
            const int r = i / 14, c = i % 14;
            const bool masked =
                r < x.rows && c < x.cols && hidden(&x.a, x.row0 + r, x.col0 + c);
            assert_true(same_bits(x.S[i], masked ? -INFINITY : before.S[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask_hides_exactly_the_keys_it_should),
        cmocka_unit_test(test_row_max_passes_over_nan),
        cmocka_unit_test(test_rows_with_sum_zero_become_zero),
        cmocka_unit_test(test_online_softmax_of_every_story),
    };
    return cmocka_run_group_tests_name("tile_ops_special", tests, NULL, NULL);
}
