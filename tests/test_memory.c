/* What tiles and warps read and write: the right elements, and only those.
 *
 * Protects: upload and download keep every value of every dtype; memory that nothing was
 * written to is NaN, in HBM and on chip, also where an earlier block left its data; what lies
 * past a tensor's edge is zero in a loaded tile and is left alone by stores, reductions and
 * warps. Tensors hold seeded random values everywhere, so a move that strays by one element
 * changes one that is compared. What is counted is tested in test_memory_traffic.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"

/* Fails at the first of count floats that differ in any bit. */
static void expect_floats(const char *what, const float *got, const float *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same_bits(got[i], want[i]))
            fail_msg("%s: element %zu is %a, expected %a", what, i, (double)got[i],
                     (double)want[i]);
}

static struct hbm_tensor random_tensor(struct gpu *gpu, struct rng *rng, enum dtype dtype)
{
    const int planes = random_int(rng, 1, 3), rows = random_int(rng, 1, 40);
    return new_tensor(gpu, "T", dtype, planes, rows, random_int(rng, 1, 50));
}

static size_t index_of(const struct hbm_tensor *t, int plane, int row, int col)
{
    return ((size_t)plane * (size_t)t->rows + (size_t)row) * (size_t)t->cols + (size_t)col;
}

/* Index of the tensor element under element (r, c) of the move's tile; -1 past the edge. */
static long under(const struct tile_move *move, int r, int c)
{
    const struct hbm_tensor *t = move->tensor;
    if (move->row + r >= t->rows || move->col + c >= t->cols)
        return -1;
    return (long)index_of(t, move->plane, move->row + r, move->col + c);
}

static void test_upload_and_download_round_trip(void **state)
{
    static const float special[] = {0.0f,     -0.0f,   INFINITY, -INFINITY, NAN,
                                    FLT_MAX,  FLT_MIN, 448.0f,   57344.0f,  65504.0f,
                                    0x1p-24f, 0x1p-9f, 1.0f / 3, -NAN,      FLT_TRUE_MIN};
    (void)state;
    struct rng rng = {1};
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPE_COUNT; dtype++) {
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        struct hbm_tensor before = new_tensor(&gpu, "before", dtype, 1, 1, 5);
        struct hbm_tensor t = new_tensor(&gpu, "T", dtype, 3, 11, 7);
        struct hbm_tensor after = new_tensor(&gpu, "after", dtype, 1, 1, 5);
        float *want_before = upload_random(&before, &rng);
        float *want_after = upload_random(&after, &rng);
        float *values = random_values(&rng, tensor_size(&t));
        memcpy(values + 40, special, sizeof special);
        hbm_upload(&t, values);
        dtype_round(values, dtype, values, tensor_size(&t));
        float *got[] = {downloaded(&before), downloaded(&t), downloaded(&after)};
        expect_floats("before", got[0], want_before, tensor_size(&before));
        expect_floats(dtype_name(dtype), got[1], values, tensor_size(&t));
        expect_floats("after", got[2], want_after, tensor_size(&after));
        for (int i = 0; i < 3; i++)
            free(got[i]);
        free(values), free(want_before), free(want_after);
        hbm_free(&before), hbm_free(&t), hbm_free(&after);
    }
}

static void test_fresh_hbm_is_nan(void **state)
{
    (void)state;
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPE_COUNT; dtype++) {
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        struct hbm_tensor t = new_tensor(&gpu, "T", dtype, 2, 9, 13);
        float *got = downloaded(&t);
        for (size_t i = 0; i < tensor_size(&t); i++)
            assert_true(isnan(got[i]));
        free(got);
        hbm_free(&t);
    }
}

/* Shapes of two tiles a block, growing and shrinking, so that storage is used again. */
static const int fresh_shapes[][4] = {
    {4, 4, 30, 7}, {8, 3, 1, 1}, {40, 40, 20, 20}, {2, 2, 64, 3}, {39, 41, 1, 2}, {1, 1, 8, 8},
};

struct fresh {
    int *stale; /* [blocks] elements that were not NaN, -1 if the block did not run */
};

static void fresh_block(struct thread_block *b, const void *args)
{
    const struct fresh *fresh = args;
    const int *shape = fresh_shapes[b->x % (int)LENGTH(fresh_shapes)];
    struct tile tiles[2];
    int stale = 0;
    tile_alloc(&tiles[0], b, LEVEL_SRAM, "first", DTYPE_F16, shape[0], shape[1]);
    tile_alloc(&tiles[1], b, LEVEL_REGISTERS, "second", DTYPE_F32, shape[2], shape[3]);
    for (int k = 0; k < 2; k++) {
        const size_t count = (size_t)tiles[k].rows * (size_t)tiles[k].cols;
        for (size_t i = 0; i < count; i++) {
            stale += !isnan(tiles[k].data[i]);
            tile_writable(&tiles[k])[i] = 7.0f;
        }
    }
    fresh->stale[b->x] = stale;
}

static void test_fresh_tiles_are_nan_also_in_used_storage(void **state)
{
    enum { BLOCKS = 3 * LENGTH(fresh_shapes) };
    (void)state;
    int stale[BLOCKS];
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    omp_set_num_threads(1);
    for (int again = 0; again < 2; again++) {
        memset(stale, -1, sizeof stale);
        launch_ok(&gpu, &(struct launch){.name = "fresh",
                                         .grid = {BLOCKS, 1, 1},
                                         .block = fresh_block,
                                         .args = &(struct fresh){stale}});
        for (int i = 0; i < BLOCKS; i++)
            assert_int_equal(stale[i], 0);
    }
    omp_set_num_threads(omp_get_num_procs());
}

static void check_load(struct tile_move *move, const float *tensor)
{
    const size_t count = (size_t)move->rows * (size_t)move->cols;
    float *want = calloc(count, sizeof *want);
    move->values = calloc(count, sizeof *move->values);
    assert_true(want && move->values);
    for (int r = 0; r < move->rows; r++)
        for (int c = 0; c < move->cols; c++)
            if (under(move, r, c) >= 0)
                want[r * move->cols + c] = tensor[under(move, r, c)];
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    gpu.tensor_count = move->tensor->id + 1;
    gpu.tensor_name[move->tensor->id] = "T";
    run_one_block(&gpu, move_block, move);
    expect_floats("loaded tile", move->values, want, count);
    free(want);
    free(move->values);
}

static void test_loads_fill_with_zero_past_the_edge(void **state)
{
    (void)state;
    struct rng rng = {2};
    for (int n = 0; n < 400; n++) {
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        struct hbm_tensor t = random_tensor(&gpu, &rng, (enum dtype)(n % DTYPE_COUNT));
        float *values = upload_random(&t, &rng);
        for (int k = 0; k < 4; k++) {
            struct tile_move move = random_move(&rng, DIRECTION_READ, &t);
            check_load(&move, values);
        }
        free(values);
        hbm_free(&t);
    }
}

/* What the tensor holds after a store or reduction of the move's values, everywhere. */
static void apply(float *tensor, const struct tile_move *move)
{
    for (int r = 0; r < move->rows; r++) {
        for (int c = 0; c < move->cols; c++) {
            const long at = under(move, r, c);
            const float value = move->values[r * move->cols + c];
            if (at >= 0 && move->direction == DIRECTION_REDUCE)
                tensor[at] += value;
            else if (at >= 0)
                dtype_round(&tensor[at], move->tensor->dtype, &value, 1);
        }
    }
}

static void check_into_tensor(struct rng *rng, enum direction direction, enum dtype dtype)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    struct hbm_tensor t = random_tensor(&gpu, rng, dtype);
    float *want = upload_random(&t, rng);
    for (int k = 0; k < 3; k++) {
        struct tile_move move = random_move(rng, direction, &t);
        move.values = random_values(rng, (size_t)move.rows * (size_t)move.cols);
        dtype_round(move.values, move.dtype, move.values, (size_t)move.rows * move.cols);
        run_one_block(&gpu, move_block, &move);
        apply(want, &move);
        free(move.values);
    }
    float *got = downloaded(&t);
    expect_floats(direction == DIRECTION_WRITE ? "stored" : "reduced", got, want,
                  tensor_size(&t));
    free(got);
    free(want);
    hbm_free(&t);
}

static void test_stores_round_and_leave_the_rest_alone(void **state)
{
    (void)state;
    struct rng rng = {3};
    for (int n = 0; n < 500; n++)
        check_into_tensor(&rng, DIRECTION_WRITE, (enum dtype)(n % DTYPE_COUNT));
}

static void test_reductions_add_and_leave_the_rest_alone(void **state)
{
    (void)state;
    struct rng rng = {4};
    for (int n = 0; n < 300; n++)
        check_into_tensor(&rng, DIRECTION_REDUCE, DTYPE_F32);
}

/* Several reductions of one block into the same place, in the order of the calls. */
struct repeated {
    struct hbm_tensor *tensor;
    const float *values; /* [times] */
    int times;
};

static void repeated_block(struct thread_block *b, const void *args)
{
    const struct repeated *repeated = args;
    struct tile tile;
    tile_alloc(&tile, b, LEVEL_REGISTERS, "tile", DTYPE_F32, 1, 1);
    for (int i = 0; i < repeated->times; i++) {
        tile_writable(&tile)[0] =
            repeated->values[i]; /* the tile is free again after each call */
        tile_reduce_add(repeated->tensor, 0, 0, 0, &tile);
    }
}

static void test_reductions_of_a_block_keep_their_order(void **state)
{
    static const float values[] = {0x1p30f, 1.0f, 3.0f, -0x1p30f, 0.25f, 0x1p20f, 1e-3f};
    (void)state;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    struct hbm_tensor t = new_tensor(&gpu, "T", DTYPE_F32, 1, 1, 1);
    float forward = 0.5f, backward = 0.5f, got;
    hbm_upload(&t, &forward);
    for (size_t i = 0; i < LENGTH(values); i++) {
        forward += values[i];
        backward += values[LENGTH(values) - 1 - i];
    }
    assert_false(same_bits(forward, backward)); /* or the order would not show */
    run_one_block(&gpu, repeated_block, &(struct repeated){&t, values, LENGTH(values)});
    hbm_download(&got, &t);
    assert_true(same_bits(got, forward));
    hbm_free(&t);
}

/* One warp_load() and one warp_store() of the same lanes. */
struct warp {
    struct hbm_tensor *src, *dst;
    int plane, active;
    const int64_t *element; /* [WARP_LANES] */
    const float *stored;    /* [WARP_LANES] */
    float *loaded;          /* [WARP_LANES] */
};

static void warp_block(struct thread_block *b, const void *args)
{
    const struct warp *w = args;
    warp_load(b, w->loaded, w->src, w->plane, w->element, w->active);
    warp_store(b, w->dst, w->plane, w->element, w->stored, w->active);
}

static void check_warp(struct rng *rng, enum dtype dtype)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    struct hbm_tensor src = random_tensor(&gpu, rng, dtype);
    struct hbm_tensor dst = new_tensor(&gpu, "dst", dtype, src.planes, src.rows, src.cols);
    float *from = upload_random(&src, rng), *want = upload_random(&dst, rng);
    const int plane = random_int(rng, 0, src.planes - 1), active = random_int(rng, 1, 32);
    int64_t element[WARP_LANES];
    float stored[WARP_LANES], loaded[WARP_LANES], want_loaded[WARP_LANES];
    for (int lane = 0; lane < WARP_LANES; lane++) {
        const bool on = lane < active;
        element[lane] = on ? random_int(rng, 0, src.rows * src.cols - 1) : INT64_MAX;
        stored[lane] = random_value(rng);
        loaded[lane] = want_loaded[lane] = -99.0f;
        if (!on)
            continue;
        const size_t at = index_of(&src, plane, 0, 0) + (size_t)element[lane];
        want_loaded[lane] = from[at];
        dtype_round(&want[at], dtype, &stored[lane], 1); /* the last of equal lanes stays */
    }
    run_one_block(&gpu, warp_block,
                  &(struct warp){&src, &dst, plane, active, element, stored, loaded});
    float *got = downloaded(&dst);
    expect_floats("lanes", loaded, want_loaded, WARP_LANES);
    expect_floats("stored by lanes", got, want, tensor_size(&dst));
    free(from), free(want), free(got);
    hbm_free(&src), hbm_free(&dst);
}

static void test_warps_move_what_their_active_lanes_name(void **state)
{
    (void)state;
    struct rng rng = {5};
    for (int n = 0; n < 500; n++)
        check_warp(&rng, (enum dtype)(n % DTYPE_COUNT));
}

static void test_tensors_larger_than_the_host_are_refused(void **state)
{
    (void)state;
    static const int shapes[][3] = {
        {1 << 20, 1 << 20, 1}, {1, 1 << 30, 1 << 16}, {1 << 30, 1 << 30, 1 << 30}};
    for (size_t i = 0; i < LENGTH(shapes); i++) {
        struct gpu gpu;
        struct hbm_tensor t;
        struct error error = {0};
        gpu_init(&gpu, machine_default(), GPU_DATA);
        const enum status status = hbm_alloc(&t, &gpu, "Scores", DTYPE_F32, shapes[i][0],
                                             shapes[i][1], shapes[i][2], &error);
        assert_int_equal(status, STATUS_OUT_OF_MEMORY);
        assert_int_equal(error.status, STATUS_OUT_OF_MEMORY);
        assert_non_null(strstr(error.text, "Scores"));
        assert_int_equal(gpu.tensor_count, 0);
        hbm_free(&t);
        gpu_init(&gpu, machine_default(), GPU_COUNTS); /* without data any shape will do */
        t = new_tensor(&gpu, "Scores", DTYPE_F32, shapes[i][0], shapes[i][1], shapes[i][2]);
        assert_null(t.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upload_and_download_round_trip),
        cmocka_unit_test(test_fresh_hbm_is_nan),
        cmocka_unit_test(test_fresh_tiles_are_nan_also_in_used_storage),
        cmocka_unit_test(test_loads_fill_with_zero_past_the_edge),
        cmocka_unit_test(test_stores_round_and_leave_the_rest_alone),
        cmocka_unit_test(test_reductions_add_and_leave_the_rest_alone),
        cmocka_unit_test(test_reductions_of_a_block_keep_their_order),
        cmocka_unit_test(test_warps_move_what_their_active_lanes_name),
        cmocka_unit_test(test_tensors_larger_than_the_host_are_refused),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
