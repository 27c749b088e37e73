/* What counts-only mode leaves out: iterations of loop_begin() and loop_next(), and blocks that
 * a launch says are alike.
 *
 * Protects: with data, or with a trace, nothing is left out; in counts-only mode the bytes,
 * sectors and FLOPs are those of the whole, for every loop length from 0 to 200, grids around
 * whole periods on each axis, every misalignment that equal steps can have and ragged last
 * tiles; and what remains to run is little.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "core/trace.h"

/* What each iteration j of a loop does with the tensors A and C. */
enum body {
    BODY_ROW_TILES,    /* loads rows j h .. of A, stores them to C */
    BODY_COLUMN_TILES, /* loads columns j h .. of a wide A: the last may be ragged */
    BODY_REQUESTS,     /* a warp loads 20 elements of row j */
    BODY_COUNT
};

/* A loop: its body, and the steps. */
struct loop {
    enum body body;
    int first, end, step; /* step: rows or columns an iteration */
    bool plain;           /* an ordinary for */
    struct hbm_tensor *a, *c;
};

struct loop_tiles {
    struct tile rows, columns;
};

static void iterate(const struct loop *loop, struct thread_block *b, struct loop_tiles *t,
                    int j)
{
    const int at = j * loop->step, plane = loop->a->planes - 1;
    count_flops(b, loop->step, 3, 1);
    if (loop->body == BODY_ROW_TILES) {
        tile_load(&t->rows, loop->a, plane, at, 0);
        tile_store(loop->c, plane, at, 0, &t->rows);
    } else if (loop->body == BODY_COLUMN_TILES) {
        tile_load(&t->columns, loop->a, plane, 0, at);
    } else {
        float value[WARP_LANES];
        int64_t element[WARP_LANES];
        for (int lane = 0; lane < 20; lane++)
            element[lane] = (int64_t)at * loop->a->cols + lane % loop->a->cols;
        warp_load(b, value, loop->a, plane, element, 20);
    }
}

/* The loop twice, with traffic before, between and after that must not be multiplied. */
static void loop_block(struct thread_block *b, const void *args)
{
    const struct loop *loop = args;
    struct loop_tiles t;
    tile_alloc(&t.rows, b, LEVEL_SRAM, "rows", DTYPE_F32, loop->step, loop->a->cols);
    tile_alloc(&t.columns, b, LEVEL_SRAM, "columns", DTYPE_F32, 3, loop->step);
    for (int twice = 0; twice < 2; twice++) {
        tile_load(&t.rows, loop->a, 0, 0, 0);
        count_flops(b, 1000, 2000, 3000);
        if (loop->plain)
            for (int j = loop->first; j < loop->end; j++)
                iterate(loop, b, &t, j);
        else
            for (int j = loop_begin(b, loop->first); j < loop->end;
                 j = loop_next(b, j, loop->end))
                iterate(loop, b, &t, j);
    }
    tile_load(&t.rows, loop->a, 0, 0, 0);
}

/* The tensor in which the loop ends exactly at, or just short of, the edge. */
struct loop_shape {
    enum dtype dtype;
    int width; /* row tiles: columns of the tensor; columns tiles: rows of it */
    int short_by;
};

static struct account count_loop(const struct loop *loop, const struct loop_shape *shape,
                                 bool plain, bool tma)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    gpu.tma = tma;
    int length = (loop->end > 0 ? loop->end : 1) * loop->step - shape->short_by;
    length = length > 0 ? length : 1;
    const bool wide = loop->body == BODY_COLUMN_TILES;
    struct hbm_tensor a = new_tensor(&gpu, "A", shape->dtype, 2, wide ? shape->width : length,
                                     wide ? length : shape->width);
    struct hbm_tensor c = new_tensor(&gpu, "C", DTYPE_F32, 2, a.rows, a.cols);
    struct loop run = *loop;
    run.plain = plain;
    run.a = &a;
    run.c = &c;
    omp_set_num_threads(1);
    launch_ok(&gpu, &(struct launch){.name = "loop",
                                     .grid = {1, 1, 1},
                                     .block = loop_block,
                                     .args = &run,
                                     .unlimited_on_chip = true});
    return gpu_account(&gpu);
}

static void check_loop(const struct loop *loop, const struct loop_shape *shape, bool tma)
{
    const struct account want = count_loop(loop, shape, true, tma);
    const struct account got = count_loop(loop, shape, false, tma);
    if (!account_equal(&got, &want))
        fail_msg("body %d, %s, width %d, step %d, from %d to %d, short by %d, tma %d",
                 loop->body, dtype_name(shape->dtype), shape->width, loop->step, loop->first,
                 loop->end, shape->short_by, tma);
}

/* Lengths 0 to 200 from several first values; width and step vary along. */
static void test_every_length_counts_like_a_plain_loop(void **state)
{
    static const int firsts[] = {0, 1, 2, 31, 32, 33, 100};
    (void)state;
    int k = 0;
    for (int n = 0; n <= 200; n++) {
        for (size_t f = 0; f < LENGTH(firsts); f++, k++) {
            const int step = 1 + k % 5;
            const struct loop loop = {.body = (enum body)(k % BODY_COUNT),
                                      .first = firsts[f],
                                      .end = firsts[f] + n,
                                      .step = step};
            const struct loop_shape shape = {(enum dtype)(k / 3 % DTYPE_COUNT), 1 + k % 37,
                                             k % 2 ? k % step : 0};
            check_loop(&loop, &shape, k % 7 == 0);
        }
    }
}

/* Every number of bytes modulo 32 that a step can advance, in loops around whole periods. */
static void test_every_misalignment_counts_like_a_plain_loop(void **state)
{
    static const int ends[] = {33, 64, 65, 66, 97, 130};
    (void)state;
    for (int width = 1; width <= 40; width++) {
        for (int k = 0; k < (int)LENGTH(ends) * BODY_COUNT * 2; k++) {
            const struct loop loop = {.body = (enum body)(k / 2 % BODY_COUNT),
                                      .end = ends[k / 2 / BODY_COUNT],
                                      .step = k % 2 ? 3 : 1};
            const struct loop_shape shape = {(width + k / 2) % 2 ? DTYPE_E4M3 : DTYPE_F16,
                                             width, k % 2 ? width % 3 : 0};
            check_loop(&loop, &shape, width % 5 == 0);
        }
    }
}

/* Which iterations ran. */
struct visited {
    int first, end;
    int count, out_of_order;
    int lowest, highest;
};

static void visiting_block(struct thread_block *b, const void *args)
{
    struct visited *v = *(struct visited *const *)args;
    v->count = v->out_of_order = 0;
    v->lowest = v->highest = -1;
    for (int j = loop_begin(b, v->first); j < v->end; j = loop_next(b, j, v->end)) {
        v->out_of_order += j != v->first + v->count;
        v->lowest = v->count == 0 ? j : v->lowest;
        v->highest = j;
        v->count++;
        count_flops(b, 0, 1, 0);
        block_step(b, "step", -1, j);
    }
}

static void ignore_record(void *context, const struct step_record *record)
{
    (void)record;
    ++*(int *)context;
}

static struct account visit(struct visited *v, enum gpu_mode mode, struct trace *trace)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), mode);
    gpu.trace = trace;
    run_one_block(&gpu, visiting_block, &v);
    return gpu_account(&gpu);
}

/* With data, or when a trace wants every step, nothing is left out. */
static void test_data_and_traces_visit_every_iteration(void **state)
{
    static const int firsts[] = {0, 5, 32};
    (void)state;
    for (int n = 0; n <= 200; n++) {
        for (size_t f = 0; f < LENGTH(firsts); f++) {
            int records = 0;
            struct trace trace = {ignore_record, &records};
            struct visited v = {.first = firsts[f], .end = firsts[f] + n};
            visit(&v, GPU_DATA, NULL);
            assert_true(v.count == n && v.out_of_order == 0);
            visit(&v, GPU_DATA, &trace);
            assert_true(v.count == n && v.out_of_order == 0);
            visit(&v, GPU_COUNTS, &trace);
            assert_true(v.count == n && v.out_of_order == 0);
            assert_int_equal(records, 2 * n);
        }
    }
}

/* Counts-only loops of a billion iterations take less than a hundred, the last among them. */
static void test_long_loops_are_short_in_counts_mode(void **state)
{
    static const int ends[] = {1, 32, 33, 64, 1000, 100000, 1 << 30, (1 << 30) + 17, INT_MAX};
    (void)state;
    for (size_t i = 0; i < LENGTH(ends); i++) {
        struct visited v = {.first = 0, .end = ends[i]};
        const struct account account = visit(&v, GPU_COUNTS, NULL);
        assert_int_equal(account.flops.other, ends[i]);
        assert_in_range(v.count, 1, 100);
        assert_int_equal(v.lowest, 0);
        assert_int_equal(v.highest, ends[i] - 1);
    }
}

/* Blocks that each move a tile of a matrix, or of a row of matrices. */
struct tiling {
    struct hbm_tensor *tensor;
    int rows, cols; /* of a tile */
    int *ran;       /* blocks that ran */
};

static void tiling_block(struct thread_block *b, const void *args)
{
    const struct tiling *tiling = args;
    struct tile tile, last;
    tile_alloc(&tile, b, LEVEL_SRAM, "tile", DTYPE_F32, tiling->rows, tiling->cols);
    if ((b->x + 1) * tiling->cols >= tiling->tensor->cols) /* more on chip at the edge */
        tile_alloc(&last, b, LEVEL_SRAM, "last", DTYPE_F32, 1, 1);
    tile_load(&tile, tiling->tensor, b->z, b->y * tiling->rows, b->x * tiling->cols);
    count_flops(b, 1 + b->x % 32, 1 + b->y % 32, 1 + b->z % 32);
    block_step(b, "load", b->y, b->x);
#pragma omp atomic
    ++*tiling->ran;
}

/* One grid, and how it is run. */
struct tiled_launch {
    struct grid grid, alike;
    int rows, cols, short_by; /* the last tiles lack so many rows and columns */
    enum dtype dtype;
    enum gpu_mode mode;
    struct trace *trace;
};

static struct launch_record run_tiling(const struct tiled_launch *t, int *ran)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), t->mode);
    gpu.trace = t->trace;
    const int rows = t->grid.y * t->rows - (t->rows > t->short_by ? t->short_by : 0);
    const int cols = t->grid.x * t->cols - (t->cols > t->short_by ? t->short_by : 0);
    struct hbm_tensor tensor = new_tensor(&gpu, "T", t->dtype, t->grid.z, rows, cols);
    const struct tiling tiling = {&tensor, t->rows, t->cols, ran};
    *ran = 0;
    omp_set_num_threads(1);
    launch_ok(&gpu, &(struct launch){.name = "tiling",
                                     .grid = t->grid,
                                     .block = tiling_block,
                                     .args = &tiling,
                                     .alike = t->alike});
    hbm_free(&tensor);
    return gpu.launches[0];
}

static const struct grid grids[] = {
    {1, 1, 1},   {2, 3, 1},   {32, 1, 1},  {33, 2, 1},  {34, 1, 2},   {63, 1, 1},
    {64, 5, 1},  {65, 1, 1},  {66, 2, 2},  {97, 1, 1},  {200, 1, 1},  {1, 33, 1},
    {1, 34, 3},  {2, 65, 1},  {1, 98, 1},  {2, 1, 33},  {1, 1, 34},   {3, 2, 66},
    {1, 1, 130}, {34, 35, 1}, {1, 40, 67}, {70, 1, 66}, {35, 34, 36},
};

static void test_blocks_that_are_alike_count_like_all_blocks(void **state)
{
    (void)state;
    struct rng rng = {71};
    for (int n = 0; n < 12 * (int)LENGTH(grids); n++) {
        struct tiled_launch t = {.grid = grids[n % (int)LENGTH(grids)],
                                 .rows = random_int(&rng, 1, 4),
                                 .cols = random_int(&rng, 1, 9),
                                 .short_by = random_int(&rng, 0, 2),
                                 .dtype = (enum dtype)random_int(&rng, 0, DTYPE_COUNT - 1),
                                 .mode = GPU_COUNTS};
        int all, few;
        const struct launch_record want = run_tiling(&t, &all);
        assert_int_equal(all, t.grid.x * t.grid.y * t.grid.z);
        t.alike = (struct grid){n % 2 ? 32 : 0, n % 3 ? 32 : 0, n % 5 ? 32 : 0};
        const struct launch_record got = run_tiling(&t, &few);
        if (!account_equal(&got.account, &want.account))
            fail_msg("grid %d x %d x %d of %d x %d %s, short by %d", t.grid.x, t.grid.y,
                     t.grid.z, t.rows, t.cols, dtype_name(t.dtype), t.short_by);
        assert_memory_equal(got.peak_bytes, want.peak_bytes, sizeof want.peak_bytes);
        assert_int_equal(got.grid.x, t.grid.x);
        assert_true(few <= (n % 2 ? 33 : t.grid.x) * (n % 3 ? 33 : t.grid.y) *
                               (n % 5 ? 33 : t.grid.z));
    }
}

/* With data, and for a trace, each block runs whatever the launch says. */
static void test_data_and_traces_run_every_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(grids); i++) {
        int records = 0, ran;
        struct trace trace = {ignore_record, &records};
        struct tiled_launch t = {.grid = grids[i], .alike = {32, 32, 32}, .rows = 1, .cols = 1};
        const int blocks = t.grid.x * t.grid.y * t.grid.z;
        run_tiling(&t, &ran); /* GPU_DATA */
        assert_int_equal(ran, blocks);
        t.mode = GPU_COUNTS;
        t.trace = &trace;
        run_tiling(&t, &ran);
        assert_int_equal(ran, blocks);
        assert_int_equal(records, blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_and_traces_visit_every_iteration),
        cmocka_unit_test(test_long_loops_are_short_in_counts_mode),
        cmocka_unit_test(test_every_length_counts_like_a_plain_loop),
        cmocka_unit_test(test_every_misalignment_counts_like_a_plain_loop),
        cmocka_unit_test(test_blocks_that_are_alike_count_like_all_blocks),
        cmocka_unit_test(test_data_and_traces_run_every_block),
    };
    return cmocka_run_group_tests_name("launch_counts", tests, NULL, NULL);
}
