/* A launch: every block once, the same result on any number of threads, and its record.
 *
 * Protects: the grid is covered exactly; memory, counts, peaks and reductions do not depend on
 * the number of threads (1, 2 and 7 are tried, and early blocks are made the slowest, so that
 * blocks end out of order); records keep launches apart and gpu_account() adds them up.
 * What counts-only mode leaves out: test_launch_counts.c. The order of traces: test_trace.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core_fixture.h"

static const int thread_counts[] = {1, 2, 7};

/* Launches on that many threads. */
static void launch_on(int threads, struct gpu *gpu, const struct launch *launch)
{
    omp_set_num_threads(threads);
    launch_ok(gpu, launch);
    omp_set_num_threads(omp_get_num_procs());
}

/* How often each block ran; index x + X * (y + Y * z). */
struct visits {
    struct grid grid;
    int *count;
    int outside; /* blocks that are not in the grid */
};

static void visiting_block(struct thread_block *b, const void *args)
{
    struct visits *v = *(struct visits *const *)args;
    const struct grid g = v->grid;
    if (b->x < 0 || b->x >= g.x || b->y < 0 || b->y >= g.y || b->z < 0 || b->z >= g.z) {
#pragma omp atomic
        v->outside++;
        return;
    }
#pragma omp atomic
    v->count[b->x + (int64_t)g.x * (b->y + (int64_t)g.y * b->z)]++;
}

static void test_every_block_of_the_grid_runs_once(void **state)
{
    static const struct grid grids[] = {{1, 1, 1}, {7, 1, 1},    {1, 5, 1},  {1, 1, 6},
                                        {3, 4, 5}, {2000, 1, 1}, {2, 1, 99}, {1, 31, 17}};
    (void)state;
    for (size_t k = 0; k < LENGTH(grids) * 2 * LENGTH(thread_counts); k++) {
        const struct grid grid = grids[k % LENGTH(grids)];
        const int blocks = grid.x * grid.y * grid.z;
        struct gpu gpu;
        struct visits visits = {grid, calloc((size_t)blocks, sizeof(int)), 0}, *args = &visits;
        assert_non_null(visits.count);
        gpu_init(&gpu, machine_default(), k / LENGTH(grids) % 2 ? GPU_COUNTS : GPU_DATA);
        launch_on(thread_counts[k / LENGTH(grids) / 2], &gpu,
                  &(struct launch){
                      .name = "visits", .grid = grid, .block = visiting_block, .args = &args});
        assert_int_equal(visits.outside, 0);
        for (int i = 0; i < blocks; i++)
            assert_int_equal(visits.count[i], 1);
        free(visits.count);
    }
}

enum { BLOCKS = 60, ROWS = 6, COLS = 5 };

/* The block's tile of In, doubled, goes to Out; its first row is added to Sum. Traffic, FLOPs
 * and tiles depend on the block. */
struct work {
    struct hbm_tensor *in, *out, *sum;
};

static void working_block(struct thread_block *b, const void *args)
{
    const struct work *w = args;
    const int rows = 1 + b->x % ROWS;
    struct tile tile, first;
    tile_alloc(&tile, b, LEVEL_SRAM, "tile", DTYPE_F32, rows, COLS);
    tile_alloc(&first, b, LEVEL_REGISTERS, "first", DTYPE_F32, 1 + b->x * 7 % 11, COLS);
    usleep(b->x % 4 == 0 ? 400 : 0); /* later blocks overtake */
    for (int repeat = 0; repeat <= b->x % 3; repeat++)
        tile_load(&tile, w->in, 0, b->x * ROWS, 0);
    count_flops(b, b->x, 1, 2);
    for (int i = 0; tile.data && i < rows * COLS; i++)
        tile_writable(&tile)[i] *= 2.0f;
    for (int i = 0; first.data && i < first.rows * COLS; i++)
        tile_writable(&first)[i] = tile.data[i % COLS];
    tile_store(w->out, 0, b->x * ROWS, 0, &tile);
    tile_reduce_add(w->sum, 0, 0, 0, &first);
    tile_reduce_add(w->sum, 0, 0, 0, &first);
}

/* All that a launch leaves behind. */
struct result {
    float out[BLOCKS * ROWS * COLS];
    float sum[COLS];
    struct launch_record record;
};

/* Inputs of very different size, so that the order of additions shows. */
static void fill_input(float *values)
{
    struct rng rng = {21};
    for (int i = 0; i < BLOCKS * ROWS * COLS; i++)
        values[i] = random_value(&rng) * (random_int(&rng, 0, 3) == 0 ? 4000.0f : 1.0f);
}

static void run_work(struct result *result, enum gpu_mode mode, int threads)
{
    float input[BLOCKS * ROWS * COLS], zeros[COLS] = {0};
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), mode);
    struct hbm_tensor in = new_tensor(&gpu, "In", DTYPE_F32, 1, BLOCKS * ROWS, COLS);
    struct hbm_tensor out = new_tensor(&gpu, "Out", DTYPE_F32, 1, BLOCKS * ROWS, COLS);
    struct hbm_tensor sum = new_tensor(&gpu, "Sum", DTYPE_F32, 1, 1, COLS);
    fill_input(input);
    hbm_upload(&in, input);
    hbm_upload(&sum, zeros);
    launch_on(threads, &gpu,
              &(struct launch){.name = "work",
                               .grid = {BLOCKS, 1, 1},
                               .block = working_block,
                               .args = &(struct work){&in, &out, &sum},
                               .reduces = true});
    memset(result, 0, sizeof *result);
    if (mode == GPU_DATA) {
        hbm_download(result->out, &out);
        hbm_download(result->sum, &sum);
    }
    result->record = gpu.launches[0];
    hbm_free(&in), hbm_free(&out), hbm_free(&sum);
}

/* The sums that blocks from first on, step apart, give when added one after the other. */
static void add_in_order(float *sum, int first, int step)
{
    float input[BLOCKS * ROWS * COLS];
    fill_input(input);
    memset(sum, 0, COLS * sizeof *sum);
    for (int block = first; block >= 0 && block < BLOCKS; block += step) {
        for (int twice = 0; twice < 2; twice++)
            for (int c = 0; c < COLS; c++)
                sum[c] += 2.0f * input[block * ROWS * COLS + c];
    }
}

static void test_results_do_not_depend_on_threads(void **state)
{
    static struct result first, other;
    (void)state;
    float want[COLS], backward[COLS];
    add_in_order(want, 0, 1);
    add_in_order(backward, BLOCKS - 1, -1);
    assert_memory_not_equal(want, backward, sizeof want); /* or order would not show */
    for (enum gpu_mode mode = GPU_DATA; mode <= GPU_COUNTS; mode++) {
        run_work(&first, mode, 1);
        if (mode == GPU_DATA)
            assert_memory_equal(first.sum, want, sizeof want);
        for (size_t k = 0; k < 3 * LENGTH(thread_counts); k++) {
            run_work(&other, mode, thread_counts[k % LENGTH(thread_counts)]);
            assert_memory_equal(other.out, first.out, sizeof first.out);
            assert_memory_equal(other.sum, first.sum, sizeof first.sum);
            assert_true(account_equal(&other.record.account, &first.record.account));
            assert_memory_equal(other.record.peak_bytes, first.record.peak_bytes,
                                sizeof first.record.peak_bytes);
        }
    }
}

enum { QUICK_BLOCKS = 4, QUICK_TILES = 14 };

static void quick_block(struct thread_block *b, const void *args)
{
    struct hbm_tensor *const *tensors = args;
    struct tile tile;
    tile_alloc(&tile, b, LEVEL_SRAM, "tile", DTYPE_F32, 1, 1);
    for (int t = 0; t < QUICK_TILES; t++)
        tile_load(&tile, &(*tensors)[t], 0, 0, 0);
}

/* Threads that end at the same moment do not lose each other's counts. */
static void test_no_count_is_lost_between_threads(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 200; repeat++) {
        struct gpu gpu;
        struct hbm_tensor tensors[QUICK_TILES], *args = tensors;
        gpu_init(&gpu, machine_default(), GPU_COUNTS);
        for (int t = 0; t < QUICK_TILES; t++) {
            static const char names[QUICK_TILES + 1] = "ABCDEFGHIJKLMN";
            tensors[t] = new_tensor(&gpu, names + t, DTYPE_F32, 1, 1, 1);
        }
        launch_on(2, &gpu,
                  &(struct launch){.name = "quick",
                                   .grid = {QUICK_BLOCKS, 1, 1},
                                   .block = quick_block,
                                   .args = &args});
        const struct account account = gpu_account(&gpu);
        assert_int_equal(account.tensor_count, QUICK_TILES);
        for (int t = 0; t < QUICK_TILES; t++) {
            const struct amount read = account.tensor[t].traffic.of[DIRECTION_READ];
            assert_int_equal(read.bytes, 4 * QUICK_BLOCKS);
            assert_int_equal(read.sectors, QUICK_BLOCKS);
        }
    }
}

/* The record of working_block, from its text. */
static void test_record_of_a_launch(void **state)
{
    static struct result result;
    (void)state;
    struct account want = {0};
    int64_t most_rows = 0;
    for (int x = 0; x < BLOCKS; x++) {
        const int rows = 1 + x % ROWS;
        const int64_t bytes = rows * COLS * 4, start = (int64_t)x * ROWS * COLS * 4;
        const int64_t sectors = (start + bytes - 1) / 32 - start / 32 + 1;
        assert_true(rows * COLS <= 32); /* one request */
        struct amount *read = &account_tensor(&want, "In")->of[DIRECTION_READ];
        struct amount *written = &account_tensor(&want, "Out")->of[DIRECTION_WRITE];
        struct amount *reduced = &account_tensor(&want, "Sum")->of[DIRECTION_REDUCE];
        read->bytes += (1 + x % 3) * bytes, read->sectors += (1 + x % 3) * sectors;
        written->bytes += bytes, written->sectors += sectors;
        reduced->bytes += 2 * COLS * 4, reduced->sectors += 2;
        want.flops.matrix += x, want.flops.other += 1, want.flops.exp += 2;
        most_rows = 1 + x * 7 % 11 > most_rows ? 1 + x * 7 % 11 : most_rows;
    }
    for (enum gpu_mode mode = GPU_DATA; mode <= GPU_COUNTS; mode++) {
        run_work(&result, mode, 2);
        assert_true(account_equal(&result.record.account, &want));
        assert_string_equal(result.record.name, "work");
        assert_int_equal(result.record.grid.x, BLOCKS);
        assert_int_equal(result.record.grid.y * result.record.grid.z, 1);
        assert_int_equal(result.record.peak_bytes[LEVEL_SRAM], ROWS * COLS * 4);
        assert_int_equal(result.record.peak_bytes[LEVEL_REGISTERS], most_rows * COLS * 4);
        assert_int_equal(result.record.tile_count, 2);
        assert_string_equal(result.record.tiles[0].name, "tile");
        assert_int_equal(result.record.tiles[0].bytes, COLS * 4);
        assert_int_equal(result.record.tiles[1].level, LEVEL_REGISTERS);
    }
}

static void test_account_adds_launches_up(void **state)
{
    (void)state;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_COUNTS);
    struct account want = {0};
    struct account now = gpu_account(&gpu);
    assert_true(account_equal(&now, &want));
    struct hbm_tensor a = new_tensor(&gpu, "A", DTYPE_F32, 1, 8, 8);
    const struct tile_move moves[] = {
        {DIRECTION_READ, &a, 0, 0, 0, DTYPE_F32, 8, 8, NULL},
        {DIRECTION_WRITE, &a, 0, 4, 0, DTYPE_F32, 8, 8, NULL},
        {DIRECTION_READ, NULL, 0, 0, 0, DTYPE_F32, 1, 16, NULL}, /* of B, made in between */
    };
    run_one_block(&gpu, move_block, &moves[0]);
    run_one_block(&gpu, move_block, &moves[1]);
    struct hbm_tensor b = new_tensor(&gpu, "B", DTYPE_F16, 1, 1, 16);
    struct tile_move last = moves[2];
    last.tensor = &b;
    run_one_block(&gpu, move_block, &last);
    run_one_block(&gpu, move_block, &last);

    assert_int_equal(gpu.launch_count, 4);
    assert_int_equal(gpu.launches[0].account.tensor_count, 1);
    assert_int_equal(account_total(&gpu.launches[1].account).of[DIRECTION_READ].bytes, 0);
    assert_int_equal(account_total(&gpu.launches[1].account).of[DIRECTION_WRITE].bytes, 128);
    account_tensor(&want, "A")->of[DIRECTION_READ] = (struct amount){256, 8};
    account_tensor(&want, "A")->of[DIRECTION_WRITE] = (struct amount){128, 4};
    account_tensor(&want, "B")->of[DIRECTION_READ] = (struct amount){64, 2};
    now = gpu_account(&gpu);
    assert_true(account_equal(&now, &want));
    const struct traffic total = account_total(&now);
    assert_int_equal(total.of[DIRECTION_READ].bytes, 320);
    assert_int_equal(total.of[DIRECTION_READ].sectors, 10);
    assert_int_equal(total.of[DIRECTION_WRITE].bytes, 128);
    assert_int_equal(total.of[DIRECTION_REDUCE].bytes, 0);
}

/* The comparison that tests and lessons rest on sees a difference of 1 anywhere. */
static void test_account_equal_sees_every_field(void **state)
{
    (void)state;
    struct account a = {0};
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        account_tensor(&a, "Q")->of[k] = (struct amount){100 + k, 10 + k};
        account_tensor(&a, "K")->of[k] = (struct amount){200 + k, 20 + k};
    }
    a.flops = (struct flops){7, 8, 9};
    struct account swapped = a; /* same tensors in the other order, and one without traffic */
    swapped.tensor[0] = a.tensor[1];
    swapped.tensor[1] = a.tensor[0];
    account_tensor(&swapped, "unused");
    assert_true(account_equal(&a, &a) && account_equal(&a, &swapped));
    assert_true(account_equal(&swapped, &a));
    struct account other = a;
    int64_t *fields[2 * DIRECTION_COUNT + 3] = {&other.flops.matrix, &other.flops.other,
                                                &other.flops.exp};
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        fields[3 + 2 * k] = &other.tensor[1].traffic.of[k].bytes;
        fields[4 + 2 * k] = &other.tensor[1].traffic.of[k].sectors;
    }
    for (size_t i = 0; i < LENGTH(fields); i++) {
        ++*fields[i];
        assert_false(account_equal(&a, &other) || account_equal(&other, &a));
        --*fields[i];
    }
    account_tensor(&other, "extra")->of[0].bytes = 1;
    assert_false(account_equal(&a, &other) || account_equal(&other, &a));
    other = a;
    other.tensor[1].name = "V";
    assert_false(account_equal(&a, &other) || account_equal(&other, &a));
}

enum { SLOW_BLOCKS = 60 };

struct calls {
    int count, wrong;
    int64_t last;
};

static void note_progress(void *context, const char *launch, int64_t done, int64_t total)
{
    struct calls *calls = context;
    calls->count++;
    calls->wrong += strcmp(launch, "slow") != 0 || total != SLOW_BLOCKS || done < 1 ||
                    done > total || done <= calls->last;
    calls->last = done;
}

static void slow_block(struct thread_block *b, const void *args)
{
    (void)b, (void)args;
    usleep(8000);
}

static void test_long_launches_report_progress(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct calls calls = {0};
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), GPU_COUNTS);
        gpu.progress = note_progress;
        gpu.progress_context = &calls;
        launch_on(
            threads, &gpu,
            &(struct launch){.name = "slow", .grid = {SLOW_BLOCKS, 1, 1}, .block = slow_block});
        assert_int_equal(calls.wrong, 0);
        assert_in_range(calls.count, 1, 2 * 5 * 2); /* a few times a second, not every block */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_of_the_grid_runs_once),
        cmocka_unit_test(test_results_do_not_depend_on_threads),
        cmocka_unit_test(test_no_count_is_lost_between_threads),
        cmocka_unit_test(test_record_of_a_launch),
        cmocka_unit_test(test_account_adds_launches_up),
        cmocka_unit_test(test_account_equal_sees_every_field),
        cmocka_unit_test(test_long_launches_report_progress),
    };
    return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
