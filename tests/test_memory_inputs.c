/* Tensors that kernels only read: they may stand for the host's array, but nobody can tell.
 *
 * Protects: tiles of an input hold what tiles of an uploaded tensor hold, in every dtype and at
 * every edge, and count the same; a tile that is written to leaves the input, and the host's
 * array, as they were; a kernel that stores into an input, and a second upload, are bugs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/fault.h"
#include "ops/tile_ops.h"

static struct hbm_tensor new_input(struct gpu *gpu, enum dtype dtype, int planes, int rows,
                                   int cols, const float *values)
{
    struct hbm_tensor t;
    struct error error = {0};
    if (hbm_alloc_input(&t, gpu, "X", dtype, planes, rows, cols, values, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return t;
}

static void test_inputs_load_as_uploaded_tensors_do(void **state)
{
    (void)state;
    struct rng rng = {7};
    for (int round = 0; round < 300; round++) {
        const enum dtype dtype = (enum dtype)(round % DTYPE_COUNT);
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        struct hbm_tensor t =
            new_tensor(&gpu, "T", dtype, 2, random_int(&rng, 1, 40), random_int(&rng, 1, 40));
        float *values = random_values(&rng, tensor_size(&t));
        hbm_upload(&t, values);
        struct hbm_tensor x = new_input(&gpu, dtype, 2, t.rows, t.cols, values);
        struct tile_move move = random_move(&rng, DIRECTION_READ, &t);
        const size_t bytes = (size_t)move.rows * (size_t)move.cols * sizeof(float);
        float *want = malloc(bytes), *got = malloc(bytes);
        move.values = want;
        run_one_block(&gpu, move_block, &move);
        move.tensor = &x;
        move.values = got;
        run_one_block(&gpu, move_block, &move);
        assert_memory_equal(got, want, bytes);
        const struct account account = gpu_account(&gpu);
        assert_memory_equal(&account.tensor[0].traffic, &account.tensor[1].traffic,
                            sizeof account.tensor[0].traffic);
        free(want), free(got), free(values);
        hbm_free(&t), hbm_free(&x);
    }
}

enum { ROWS = 8, COLS = 6 };

struct edit {
    const struct hbm_tensor *x;
    float before[ROWS * COLS], after[ROWS * COLS], again[ROWS * COLS];
};

/* Loads rows, doubles them in the tile, loads them again. */
static void edit_block(struct thread_block *b, const void *args)
{
    struct edit *edit = *(struct edit *const *)args;
    struct tile t, factor;
    tile_alloc(&t, b, LEVEL_SRAM, "t", DTYPE_F32, ROWS, COLS);
    tile_alloc(&factor, b, LEVEL_SRAM, "factor", DTYPE_F32, ROWS, 1);
    tile_fill(&factor, 2.0f);
    tile_load(&t, edit->x, 0, ROWS, 0);
    memcpy(edit->before, t.data, sizeof edit->before);
    tile_scale_rows(&t, &factor, ROWS, COLS);
    memcpy(edit->after, t.data, sizeof edit->after);
    tile_load(&t, edit->x, 0, ROWS, 0);
    memcpy(edit->again, t.data, sizeof edit->again);
}

static void test_editing_a_tile_leaves_its_input_alone(void **state)
{
    (void)state;
    struct rng rng = {9};
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    float *values = random_values(&rng, 3 * ROWS * COLS), *kept = malloc(3 * sizeof(float[48]));
    memcpy(kept, values, 3 * sizeof(float[ROWS * COLS]));
    struct hbm_tensor x = new_input(&gpu, DTYPE_F32, 1, 3 * ROWS, COLS, values);
    struct edit edit = {.x = &x}, *args = &edit;
    run_one_block(&gpu, edit_block, &args);
    assert_memory_equal(values, kept, 3 * sizeof(float[ROWS * COLS]));
    assert_memory_equal(edit.before, values + ROWS * COLS, sizeof edit.before);
    assert_memory_equal(edit.again, edit.before, sizeof edit.again);
    for (int i = 0; i < ROWS * COLS; i++)
        assert_true(same_bits(edit.after[i], 2.0f * edit.before[i]));
    hbm_free(&x);
    free(values), free(kept);
}

/* Stores into an input; with upload, writes to it from the host instead. */
struct write_fault {
    enum dtype dtype;
    enum gpu_mode mode;
    bool upload;
};

static void commit_write(void *context)
{
    const struct write_fault *f = context;
    float values[ROWS * COLS] = {0};
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), f->mode);
    struct hbm_tensor x = new_input(&gpu, f->dtype, 1, ROWS, COLS, values);
    const struct tile_move move = {DIRECTION_WRITE, &x, 0, 0, 0, DTYPE_F32, 2, COLS, values};
    if (f->upload)
        hbm_upload(&x, values);
    else
        run_one_block(&gpu, move_block, &move);
    hbm_free(&x);
}

static void expect_write_fault(struct write_fault fault, const char *message)
{
    const struct fault got = fault_of(commit_write, &fault);
    if (!fault_is_bug(&got, "sim/core/memory.c", message))
        fail_msg("expected '%s', got (aborted: %d) %s", message, got.aborted, got.text);
}

static void test_writing_to_an_input_is_a_bug(void **state)
{
    (void)state;
    for (enum dtype dtype = DTYPE_F32; dtype < DTYPE_COUNT; dtype++) {
        expect_write_fault((struct write_fault){dtype, GPU_DATA, false},
                           "writes to the input tensor X");
        expect_write_fault((struct write_fault){dtype, GPU_COUNTS, false},
                           "writes to the input tensor X");
        expect_write_fault((struct write_fault){dtype, GPU_DATA, true},
                           "upload to the input tensor X");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs_load_as_uploaded_tensors_do),
        cmocka_unit_test(test_editing_a_tile_leaves_its_input_alone),
        cmocka_unit_test(test_writing_to_an_input_is_a_bug),
    };
    return cmocka_run_group_tests_name("memory inputs", tests, NULL, NULL);
}
