/* CHECK(): bugs in kernels stop the program with file, line and what was wrong.
 *
 * Protects: whatever a block function may get wrong (an index outside a tensor or tile, tiles
 * of two blocks mixed, a wrong dtype, too many of anything) ends in abort() and one line on
 * stderr, with data and in counts-only mode alike, before anything outside is touched. Each
 * fault is committed in a child process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/fault.h"

/* Commits the fault; fails unless it stops with that message from that file. */
static void expect_bug(const char *what, void (*function)(void *context), void *context,
                       const char *file, const char *message)
{
    const struct fault fault = fault_of(function, context);
    if (!fault_is_bug(&fault, file, message))
        fail_msg("%s: expected '%s' from %s, got (aborted: %d) %s", what, message, file,
                 fault.aborted, fault.text);
}

/* A launch of one block in a child; a status other than OK is told by the exit status. */
static void launch_block(struct gpu *gpu, block_function *block, const void *args, bool reduces)
{
    struct error error = {0};
    const struct launch launch = {
        .name = "faulty", .grid = {1, 1, 1}, .block = block, .args = args, .reduces = reduces};
    if (gpu_launch(gpu, &launch, &error) != STATUS_OK) {
        fprintf(stderr, "not a bug but a status: %s\n", error.text);
        exit(1);
    }
}

static struct hbm_tensor child_tensor(struct gpu *gpu, enum dtype dtype)
{
    struct hbm_tensor t;
    struct error error;
    if (hbm_alloc(&t, gpu, "T", dtype, 2, 10, 8, &error) != STATUS_OK)
        exit(1);
    return t;
}

/* One tile_load(), tile_store() or tile_reduce_add() of a 4 x 4 tile and T of 2 x 10 x 8. */
struct move_fault {
    const char *message;
    enum direction direction;
    enum dtype tensor, tile;
    int plane, row, col;
    bool reduces;
    enum gpu_mode mode;
};

static void commit_move(void *context)
{
    const struct move_fault *f = context;
    float values[16] = {0};
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), f->mode);
    struct hbm_tensor t = child_tensor(&gpu, f->tensor);
    const struct tile_move move = {f->direction, &t, f->plane, f->row, f->col,
                                   f->tile,      4,  4,        values};
    launch_block(&gpu, move_block, &move, f->reduces);
    hbm_free(&t);
}

static void expect_move_fault(struct move_fault *fault)
{
    for (fault->mode = GPU_DATA; fault->mode <= GPU_COUNTS; fault->mode++)
        expect_bug(fault->message, commit_move, fault, "sim/core/memory.c", fault->message);
}

static void test_tiles_outside_a_tensor(void **state)
{
    static const int places[][3] = {{0, 10, 0}, {0, -1, 0}, {0, 0, 8},      {0, 0, -1},
                                    {2, 0, 0},  {-1, 0, 0}, {1, 1 << 30, 0}};
    (void)state;
    for (size_t i = 0; i < LENGTH(places) * DIRECTION_COUNT; i++) {
        const int *place = places[i / DIRECTION_COUNT];
        struct move_fault fault = {"outside tensor T of 2 x 10 x 8",
                                   (enum direction)(i % DIRECTION_COUNT),
                                   DTYPE_F32,
                                   DTYPE_F32,
                                   place[0],
                                   place[1],
                                   place[2],
                                   true,
                                   GPU_DATA};
        expect_move_fault(&fault);
    }
}

static void test_wrong_dtypes_and_reductions(void **state)
{
    struct move_fault faults[] = {
        {"tile tile of f16 cannot hold tensor T of f32", DIRECTION_READ, DTYPE_F32, DTYPE_F16,
         0, 0, 0, false, GPU_DATA},
        {"of bf16 cannot hold tensor T of f16", DIRECTION_READ, DTYPE_F16, DTYPE_BF16, 0, 0, 0,
         false, GPU_DATA},
        {"of e5m2 cannot hold tensor T of e4m3", DIRECTION_READ, DTYPE_E4M3, DTYPE_E5M2, 0, 0,
         0, false, GPU_DATA},
        {"reduction into tensor T of f16", DIRECTION_REDUCE, DTYPE_F16, DTYPE_F32, 0, 0, 0,
         true, GPU_DATA},
        {"does not say .reduces", DIRECTION_REDUCE, DTYPE_F32, DTYPE_F32, 0, 0, 0, false,
         GPU_DATA},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(faults); i++)
        expect_move_fault(&faults[i]);
}

/* One request of a warp to T of 2 x 10 x 8. */
struct warp_fault {
    const char *message;
    int plane, active, lane; /* lane: the one that goes to element; others go to 79 */
    int64_t element;
    bool store;
    enum gpu_mode mode;
    struct hbm_tensor *tensor;
};

static void warp_fault_block(struct thread_block *b, const void *args)
{
    const struct warp_fault *f = args;
    int64_t element[2 * WARP_LANES];
    float value[2 * WARP_LANES] = {0};
    for (int lane = 0; lane < 2 * WARP_LANES; lane++)
        element[lane] = lane == f->lane ? f->element : 79;
    if (f->store)
        warp_store(b, f->tensor, f->plane, element, value, f->active);
    else
        warp_load(b, value, f->tensor, f->plane, element, f->active);
}

static void commit_warp(void *context)
{
    struct warp_fault *f = context;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), f->mode);
    struct hbm_tensor t = child_tensor(&gpu, DTYPE_F16);
    f->tensor = &t;
    launch_block(&gpu, warp_fault_block, f, false);
    hbm_free(&t);
}

static void test_lanes_outside_a_tensor(void **state)
{
    static const struct warp_fault faults[] = {
        {.message = "lane 0: element -1 outside tensor T", .active = 32, .element = -1},
        {.message = "lane 5: element 80 outside tensor T",
         .active = 6,
         .lane = 5,
         .element = 80},
        {.message = "lane 31: element 160 outside", .active = 32, .lane = 31, .element = 160},
        {.message = "plane 2 of tensor T", .active = 1, .plane = 2},
        {.message = "plane -1 of tensor T", .active = 1, .plane = -1},
        {.message = "request of 0 lanes", .active = 0},
        {.message = "request of 33 lanes", .active = 33},
    };
    (void)state;
    for (size_t i = 0; i < 4 * LENGTH(faults); i++) {
        struct warp_fault fault = faults[i / 4];
        fault.store = i & 1;
        fault.mode = i & 2 ? GPU_COUNTS : GPU_DATA;
        expect_bug(fault.message, commit_warp, &fault, "sim/core/memory.c", fault.message);
    }
}

/* Faults without parameters. */
static void idle_block(struct thread_block *b, const void *args)
{
    (void)b, (void)args;
}

static void tiles_block(struct thread_block *b, const void *args)
{
    const int *shape = args; /* count, rows, cols */
    struct tile t;
    for (int i = 0; i < shape[0]; i++)
        tile_alloc(&t, b, LEVEL_SRAM, "t", DTYPE_F32, shape[1], shape[2]);
}

static void commit_tiles(void *context)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    launch_block(&gpu, tiles_block, context, false);
}

static void commit_grid(void *context)
{
    struct gpu gpu;
    struct error error = {0};
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    const struct grid *grid = context;
    gpu_launch(&gpu, &(struct launch){.name = "faulty", .grid = *grid, .block = idle_block},
               &error);
}

static void commit_many_launches(void *context)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    for (int i = 0; i < *(int *)context; i++)
        launch_block(&gpu, idle_block, NULL, false);
}

static void commit_many_tensors(void *context)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    for (int i = 0; i < *(int *)context; i++)
        child_tensor(&gpu, DTYPE_F32);
}

static void commit_many_names(void *context)
{
    struct account account = {0};
    static const char names[] = "abcdefghijklmnopqrstuvwxyz";
    for (int i = 0; i < *(int *)context; i++)
        account_tensor(&account, names + i);
}

static void commit_shape(void *context)
{
    const int *shape = context;
    struct gpu gpu;
    struct hbm_tensor t;
    struct error error = {0};
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    hbm_alloc(&t, &gpu, "T", DTYPE_F32, shape[0], shape[1], shape[2], &error);
}

static void commit_download(void *context)
{
    float values[160];
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), *(enum gpu_mode *)context);
    struct hbm_tensor t = child_tensor(&gpu, DTYPE_F32);
    hbm_download(values, &t);
    hbm_free(&t);
}

static void test_limits_and_shapes(void **state)
{
    enum gpu_mode counts = GPU_COUNTS;
    int numbers[] = {MAX_TILES + 1, MAX_LAUNCHES + 1, MAX_TENSORS + 1};
    int shapes[][3] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, 1, 1}, {1, 1, -5}};
    struct grid grids[] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-2, 1, 1}, {1, -1, -1}};
    (void)state;
    expect_bug("tiles", commit_tiles, (int[]){numbers[0], 1, 1}, "sim/core/on_chip.c",
               "faulty: more than 24 tiles");
    expect_bug("launches", commit_many_launches, &numbers[1], "sim/core/launch.c",
               "more than 16 launches");
    expect_bug("tensors", commit_many_tensors, &numbers[2], "sim/core/memory.c",
               "more than 16 tensors");
    expect_bug("names", commit_many_names, &numbers[2], "sim/core/traffic.c",
               "more than 16 tensors");
    expect_bug("download", commit_download, &counts, "sim/core/memory.c",
               "T: download in counts-only mode");
    for (size_t i = 0; i < LENGTH(grids); i++)
        expect_bug("grid", commit_grid, &grids[i], "sim/core/launch.c", "faulty: grid ");
    for (size_t i = 0; i < LENGTH(shapes); i++) {
        expect_bug("tensor", commit_shape, shapes[i], "sim/core/memory.c", "T: shape ");
        if (shapes[i][0] == 1)
            expect_bug("tile", commit_tiles, shapes[i], "sim/core/on_chip.c",
                       "faulty: tile t of ");
    }
}

/* The same calls within their limits return: it is the fault that aborts. */
static void test_the_last_of_what_is_allowed(void **state)
{
    enum gpu_mode data = GPU_DATA;
    int numbers[] = {MAX_TILES, MAX_LAUNCHES, MAX_TENSORS};
    struct grid grid = {1, 1, 1};
    struct move_fault move = {"",   DIRECTION_REDUCE, DTYPE_F32, DTYPE_F32, 1, 9, 7,
                              true, GPU_DATA};
    struct warp_fault warp = {.active = 32, .plane = 1, .lane = 31, .element = 79};
    const struct {
        void (*function)(void *context);
        void *context;
    } calls[] = {
        {commit_tiles, (int[]){numbers[0], 1, 1}},
        {commit_many_launches, &numbers[1]},
        {commit_many_tensors, &numbers[2]},
        {commit_many_names, &numbers[2]},
        {commit_download, &data},
        {commit_grid, &grid},
        {commit_shape, (int[]){1, 1, 1}},
        {commit_move, &move},
        {commit_warp, &warp},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(calls); i++) {
        const struct fault fault = fault_of(calls[i].function, calls[i].context);
        if (fault.aborted || fault.text[0] != '\0')
            fail_msg("call %zu: %s", i, fault.text);
    }
}

/* The helper itself. */
static void crash(void *context)
{
    if (*(int *)context == 0)
        return;
    fputs("tests/x.c:12: bug: some message\n", stderr);
    if (*(int *)context == 1)
        abort();
    if (*(int *)context == 2)
        exit(1);
    fputs("and more\n", stderr);
    abort();
}

static void test_the_fault_helper(void **state)
{
    (void)state;
    int how = 0;
    struct fault fault = fault_of(crash, &how);
    assert_false(fault.aborted);
    assert_string_equal(fault.text, "");
    how = 1;
    fault = fault_of(crash, &how);
    assert_true(fault.aborted);
    assert_string_equal(fault.text, "tests/x.c:12: bug: some message\n");
    assert_true(fault_is_bug(&fault, "tests/x.c", "some message"));
    assert_false(fault_is_bug(&fault, "tests/x.c", "other"));
    assert_false(fault_is_bug(&fault, "tests/x", "some message"));
    assert_false(fault_is_bug(&fault, "sim/x.c", "some message"));
    how = 2;
    fault = fault_of(crash, &how);
    assert_false(fault.aborted || fault_is_bug(&fault, "tests/x.c", "some message"));
    how = 3;
    fault = fault_of(crash, &how);
    assert_true(fault.aborted);
    assert_false(fault_is_bug(&fault, "tests/x.c", "some message"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fault_helper),
        cmocka_unit_test(test_the_last_of_what_is_allowed),
        cmocka_unit_test(test_limits_and_shapes),
        cmocka_unit_test(test_tiles_outside_a_tensor),
        cmocka_unit_test(test_wrong_dtypes_and_reductions),
        cmocka_unit_test(test_lanes_outside_a_tensor),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
