/* The device helpers of cuda/ladder for Hopper (mbarrier, TMA, wgmma, warpgroups, rings), each
 * by itself, against what its header says. On other GPUs nothing is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder_hopper.h"
#include "ladder_run.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void must(enum status status, const struct error *error)
{
    if (status)
        fail_msg("%s", error->text);
}

static void *device_of(const void *host, size_t bytes)
{
    struct error error;
    void *device = NULL;
    must(device_alloc(&device, "test", bytes, &error), &error);
    if (host)
        must(device_upload(device, host, bytes, &error), &error);
    return device;
}

/* host <- device, which is freed. */
static void take(void *host, void *device, size_t bytes)
{
    struct error error;
    must(device_download(host, device, bytes, &error), &error);
    device_free(device);
}

static void test_mbarrier(void **state)
{
    struct error error;
    int passed[3][3][2];
    int *out = device_of(NULL, sizeof passed);
    (void)state;
    must(run_mbarrier(out, &error), &error);
    take(passed, out, sizeof passed);
    for (int phase = 0; phase < 3; phase++)
        for (int arrivals = 0; arrivals < 3; arrivals++)
            for (int parity = 0; parity < 2; parity++)
                assert_int_equal(passed[phase][arrivals][parity], parity != phase % 2);
}

static void open_run(struct ladder_run *run, int d, enum layout layout, enum dtype dtype)
{
    struct error error;
    uint64_t seed = 1;
    *run = (struct ladder_run){.p = {.a = {.batch = 2,
                                           .heads_q = 4,
                                           .heads_kv = 2,
                                           .seqlen_q = 100,
                                           .seqlen_k = 150,
                                           .head_dim = d,
                                           .head_dim_v = d,
                                           .scale = 1,
                                           .dtype = dtype}},
                               .layout = layout};
    problem_fill(&run->p, &seed);
    must(ladder_run_open(run, &error), &error);
}

static void close_run(struct ladder_run *run)
{
    ladder_run_close(run);
    problem_free(&run->p);
}

/* Where element (row, column) of a box of rows lies: the drawing in tma.h. */
static int element_at(int rows, int row, int column)
{
    const int chunk = column % 64 / 8;
    return column / 64 * rows * 64 + row * 64 + 8 * (chunk ^ row % 8) + column % 8;
}

static void assert_loaded(const struct ladder_run *run, const struct box *box)
{
    struct error error;
    const struct attention *a = &run->p.a;
    const bool q = box->tensor == BOXED_Q;
    const float *x = q ? run->p.q : box->tensor == BOXED_K ? run->p.k : run->p.v;
    const int heads = q ? a->heads_q : a->heads_kv, seqlen = q ? a->seqlen_q : a->seqlen_k;
    const size_t d = (size_t)a->head_dim, count = (size_t)box->rows * d;
    uint16_t *tile = allocate(count, sizeof *tile);
    float *got = allocate(count, sizeof *got);
    void *out = device_of(NULL, count * sizeof *tile);
    must(run_tma_load(out, box, &error), &error);
    take(tile, out, count * sizeof *tile);
    dtype_decode(got, a->dtype, tile, count);
    x += (size_t)(box->batch * heads + box->head) * (size_t)seqlen * d;
    for (int row = 0; row < box->rows; row++)
        for (int column = 0; column < a->head_dim; column++) {
            const bool inside = box->row + row < seqlen;
            const float want = inside ? x[(size_t)(box->row + row) * d + (size_t)column] : 0.0f;
            if (got[element_at(box->rows, row, column)] != want)
                fail_msg("%s: box of %d rows from row %d of tensor %d, head %d, batch %d: "
                         "element (%d, %d) is %g, not %g",
                         ladder_run_text(run), box->rows, box->row, (int)box->tensor, box->head,
                         box->batch, row, column,
                         (double)got[element_at(box->rows, row, column)], (double)want);
        }
    free(tile);
    free(got);
}

/* Q in boxes of 64 rows, K and V in boxes of every height that a step has, whole, ragged and
 * past the end, in all layouts, heads and batches. */
static void test_tma_load(void **state)
{
    static const int heights[] = {64, 80, 128}, rows[] = {0, 37, 80, 144, 176};
    (void)state;
    for (int n = 0; n < 3 * LAYOUT_COUNT; n++) {
        struct ladder_run run;
        open_run(&run, 64 << n / LAYOUT_COUNT, n % LAYOUT_COUNT,
                 n % 2 ? DTYPE_F16 : DTYPE_BF16);
        for (size_t i = 0; i < LENGTH(heights) * LENGTH(rows) * 3; i++) {
            const enum boxed tensor = BOXED_Q + i % 3;
            const int height = heights[i / 3 % LENGTH(heights)];
            struct box box = {.a = run.p.a,
                              .t = run.t,
                              .tensor = tensor,
                              .rows = tensor == BOXED_Q ? 64 : height,
                              .row = rows[i / 3 / LENGTH(heights)],
                              .head = tensor == BOXED_Q ? (int)i % 4 : (int)i % 2,
                              .batch = (int)i / 2 % 2};
            box.a.block_k = height;
            assert_loaded(&run, &box);
        }
        close_run(&run);
    }
}

/* Rows past the end count as bytes too. */
static void test_tma_bytes(void **state)
{
    struct error error;
    struct ladder_run run;
    (void)state;
    open_run(&run, 128, LAYOUT_GAPS, DTYPE_F16);
    for (int row = 0; row <= 128; row += 64) {
        const struct box box = {
            .a = run.p.a, .t = run.t, .tensor = BOXED_Q, .rows = 64, .row = row, .head = 3};
        struct box of_k = box;
        int complete[2], *out = device_of(NULL, sizeof complete);
        of_k.a.block_k = 64;
        must(run_tma_bytes(out, &of_k, &error), &error);
        take(complete, out, sizeof complete);
        assert_int_equal(complete[0], 0);
        assert_int_equal(complete[1], 1);
    }
    close_run(&run);
}

/* Boxes of 16 rows into O, which is NaN elsewhere; what lies between O's rows stays. */
static void test_tma_store(void **state)
{
    static const int rows[] = {0, 16, 90, 96, 112};
    (void)state;
    for (int n = 0; n < 3 * LAYOUT_COUNT; n++)
        for (size_t i = 0; i < LENGTH(rows); i++) {
            struct ladder_run run;
            struct answer answer;
            struct error error;
            char text[128] = "";
            uint64_t seed = 7;
            const size_t d = (size_t)64 << n / LAYOUT_COUNT, count = 16 * d;
            open_run(&run, (int)d, n % LAYOUT_COUNT, n % 2 ? DTYPE_F16 : DTYPE_BF16);
            struct box box = {.a = run.p.a,
                              .t = run.t,
                              .tensor = BOXED_O,
                              .rows = 16,
                              .row = rows[i],
                              .head = (int)i % 4,
                              .batch = (n + (int)i) % 2};
            box.a.block_k = 64;
            float *x = allocate(count, sizeof *x);
            uint16_t *tile = allocate(count, sizeof *tile);
            for (size_t k = 0; k < count; k++)
                x[k] = (float)random_between(&seed, -99, 99);
            dtype_encode(tile, run.p.a.dtype, x, count);
            void *in = device_of(tile, count * sizeof *tile);
            must(run_tma_store(in, &box, &error), &error);
            must(ladder_run_download(&run, &answer, &error), &error);
            if (ladder_run_damage(&run, text, &error))
                fail_msg("%s: %s", ladder_run_text(&run), text);
            const size_t first = (size_t)((box.batch * 4 + box.head) * 100 + box.row);
            for (size_t row = 0; row < (size_t)2 * 4 * 100; row++)
                for (size_t column = 0; column < d; column++) {
                    const float got = answer.o[row * d + column];
                    const bool stored =
                        row >= first && row < first + 16 && box.row + (int)(row - first) < 100;
                    if (stored ? got != x[(row - first) * d + column] : !isnan(got))
                        fail_msg("%s: box at row %d: O row %zu, column %zu is %g",
                                 ladder_run_text(&run), box.row, row, column, (double)got);
                }
            device_free(in);
            free(x);
            free(tile);
            answer_free(&answer);
            close_run(&run);
        }
}

/* Ten tiles and a ragged one, through places that are late in turn. */
static void test_ring(void **state)
{
    struct error error;
    enum { ROWS = 64, D = 64, TILES = 11, KEYS = ROWS * (TILES - 1) + 17 };
    struct ladder_run run = {.p = {.a = {.batch = 1,
                                         .heads_q = 1,
                                         .heads_kv = 1,
                                         .seqlen_q = 1,
                                         .seqlen_k = KEYS,
                                         .head_dim = D,
                                         .head_dim_v = D,
                                         .scale = 1,
                                         .dtype = DTYPE_F16}}};
    static uint16_t tiles[TILES * ROWS * D];
    static float got[TILES * ROWS * D];
    uint64_t seed = 3;
    (void)state;
    problem_fill(&run.p, &seed);
    must(ladder_run_open(&run, &error), &error);
    struct box box = {.a = run.p.a, .t = run.t, .tensor = BOXED_K, .rows = ROWS};
    box.a.block_k = ROWS;
    for (int places = 2; places <= 3; places++) {
        void *out = device_of(NULL, sizeof tiles);
        must(run_ring(out, &box, places, &error), &error);
        take(tiles, out, sizeof tiles);
        dtype_decode(got, DTYPE_F16, tiles, LENGTH(tiles));
        for (int i = 0; i < TILES * ROWS * D; i++)
            assert_true(got[i] == (i < KEYS * D ? run.p.k[i] : 0.0f));
    }
    close_run(&run);
}

/* Small whole numbers: every product and sum is exact. */
static void fill_small(float *x, uint16_t *in, size_t count, enum dtype dtype, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (float)random_between(seed, -9, 9);
    dtype_encode(in, dtype, x, count);
}

/* Sum over k of A[k] B[by_k k]. */
static float product(const float *A, const float *B, int depth, int by_k)
{
    float sum = 0;
    for (int k = 0; k < depth; k++)
        sum += A[k] * B[k * by_k];
    return sum;
}

typedef enum status run_columns(float *out, const void *in, enum dtype dtype, int columns,
                                struct error *error);

static void check_columns(run_columns *run, int N, enum dtype dtype, uint64_t *seed)
{
    struct error error;
    enum { MOST = 128, A_COUNT = WGMMA_ROWS * WGMMA_D };
    static float x[A_COUNT + MOST * WGMMA_D], C[2 * WGMMA_ROWS * MOST];
    static uint16_t in[LENGTH(x)];
    const size_t bytes = sizeof(float) * 2 * WGMMA_ROWS * (size_t)N;
    fill_small(x, in, LENGTH(x), dtype, seed);
    void *device = device_of(in, sizeof in);
    float *out = device_of(NULL, bytes);
    must(run(out, device, dtype, N, &error), &error);
    take(C, out, bytes);
    device_free(device);
    for (int row = 0; row < WGMMA_ROWS; row++)
        for (int col = 0; col < N; col++) {
            const float want =
                product(x + row * WGMMA_D, x + A_COUNT + col * WGMMA_D, WGMMA_D, 1);
            const float fresh = C[row * N + col], added = C[(WGMMA_ROWS + row) * N + col];
            if (fresh != want || added != want + 1)
                fail_msg("%s, %d columns: C (%d, %d) is %g, %g with one added, not %g",
                         dtype_name(dtype), N, row, col, (double)fresh, (double)added,
                         (double)want);
        }
}

static void test_wgmma_shared(void **state)
{
    static const int columns[] = {64, 80, 128};
    uint64_t seed = 4;
    (void)state;
    for (size_t n = 0; n < 2 * LENGTH(columns); n++)
        check_columns(run_wgmma_shared, columns[n / 2], n % 2 ? DTYPE_F16 : DTYPE_BF16, &seed);
}

static void test_wgmma_mixed(void **state)
{
    uint64_t seed = 6;
    (void)state;
    check_columns(run_wgmma_mixed, 128, DTYPE_F16, &seed);
    check_columns(run_wgmma_mixed, 128, DTYPE_BF16, &seed);
}

static void test_wgmma_registers(void **state)
{
    struct error error;
    enum { MOST = 256, A_COUNT = WGMMA_ROWS * WGMMA_KEYS };
    static float x[A_COUNT + WGMMA_KEYS * MOST], C[WGMMA_ROWS * MOST];
    static uint16_t in[LENGTH(x)];
    uint64_t seed = 5;
    (void)state;
    for (int n = 0; n < 6; n++) {
        const enum dtype dtype = n % 2 ? DTYPE_F16 : DTYPE_BF16;
        const int N = 64 << n / 2;
        const size_t bytes = sizeof(float) * WGMMA_ROWS * (size_t)N;
        fill_small(x, in, LENGTH(x), dtype, &seed);
        void *device = device_of(in, sizeof in);
        float *out = device_of(NULL, bytes);
        must(run_wgmma_registers(out, device, dtype, N, &error), &error);
        take(C, out, bytes);
        device_free(device);
        for (int row = 0; row < WGMMA_ROWS; row++)
            for (int col = 0; col < N; col++) {
                const float want =
                    1 + product(x + row * WGMMA_KEYS, x + A_COUNT + col, WGMMA_KEYS, N);
                if (C[row * N + col] != want)
                    fail_msg("%s, %d columns: C (%d, %d) is %g, not %g", dtype_name(dtype), N,
                             row, col, (double)C[row * N + col], (double)want);
            }
    }
}

static void test_named_barriers(void **state)
{
    struct error error;
    int log[2 * TURNS + 128];
    int *out = device_of(NULL, sizeof log);
    (void)state;
    must(run_named_barriers(out, &error), &error);
    take(log, out, sizeof log);
    for (int i = 0; i < 2 * TURNS; i++)
        assert_int_equal(log[i], i % 2);
    for (int i = 0; i < 128; i++)
        assert_int_equal(log[2 * TURNS + i], (i + 1) % 128 + 1);
}

static unsigned mixed(unsigned thread)
{
    unsigned x[MIXED], sum = 0;
    for (unsigned i = 0; i < MIXED; i++)
        x[i] = thread * 31 + i;
    for (int round = 0; round < MIXING_ROUNDS; round++)
        for (int i = 0; i < MIXED; i++)
            x[i] = x[i] * 3 + x[(i + 7) % MIXED];
    for (unsigned i = 0; i < MIXED; i++)
        sum ^= x[i] * (i + 1);
    return sum;
}

static void test_registers(void **state)
{
    struct error error;
    unsigned got[256], *out = device_of(NULL, sizeof got);
    (void)state;
    must(run_registers(out, &error), &error);
    take(got, out, sizeof got);
    for (unsigned thread = 0; thread < 256; thread++)
        assert_int_equal(got[thread], mixed(thread));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mbarrier),       cmocka_unit_test(test_tma_load),
        cmocka_unit_test(test_tma_bytes),      cmocka_unit_test(test_tma_store),
        cmocka_unit_test(test_ring),           cmocka_unit_test(test_wgmma_shared),
        cmocka_unit_test(test_wgmma_mixed),    cmocka_unit_test(test_wgmma_registers),
        cmocka_unit_test(test_named_barriers), cmocka_unit_test(test_registers),
    };
    struct device_info gpu;
    struct error error;
    if (device_query(&gpu, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (ladder_check_gpu(LADDER_OVERLAP, gpu.name, gpu.compute_major, gpu.compute_minor,
                         &error)) {
        printf("skipped: %s\n", error.text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
