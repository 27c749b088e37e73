/* What fits on chip, and what is said when something does not.
 *
 * Protects: SRAM and registers are charged by the dtype's bytes, to the byte; a block whose
 * tiles exceed them never runs on, with data or without, and leaves no record behind; the
 * message names every tile with its bytes, what is needed and what there is, for every machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"

/* Small enough that tests can count on their fingers. */
static const struct machine tiny = {
    .name = "tiny", .sms = 1, .sram_bytes_per_block = 1000, .register_bytes = 600};

/* One tile a block wants. */
struct wanted {
    enum level level;
    const char *name;
    enum dtype dtype;
    int rows, cols;
};

/* What the blocks want, and what became of it. Only blocks from first_large on want the last
 * tile. */
struct wishes {
    int count, first_large;
    const struct wanted *tiles;
    int *completed; /* blocks that went on after their allocations */
};

static void wishing_block(struct thread_block *b, const void *args)
{
    const struct wishes *wishes = args;
    for (int i = 0; i < wishes->count - (b->x < wishes->first_large); i++) {
        const struct wanted *w = &wishes->tiles[i];
        struct tile tile;
        tile_alloc(&tile, b, w->level, w->name, w->dtype, w->rows, w->cols);
    }
    if (block_failed(b))
        return;
#pragma omp atomic
    ++*wishes->completed;
}

/* What a launch of two blocks with these tiles came to. */
struct outcome {
    enum status status;
    int completed;
    struct launch_record record; /* of the launch, if it made one */
    struct error error;
};

static struct outcome try_tiles(const struct machine *machine, enum gpu_mode mode,
                                bool unlimited, const struct wanted *tiles, int count)
{
    struct gpu gpu;
    struct outcome outcome = {.status = STATUS_OK};
    gpu_init(&gpu, machine, mode);
    const struct wishes wishes = {count, 0, tiles, &outcome.completed};
    omp_set_num_threads(1); /* teams for such small launches would mostly wait */
    outcome.status = gpu_launch(&gpu,
                                &(struct launch){.name = "wishing",
                                                 .grid = {2, 1, 1},
                                                 .block = wishing_block,
                                                 .args = &wishes,
                                                 .unlimited_on_chip = unlimited},
                                &outcome.error);
    omp_set_num_threads(omp_get_num_procs());
    assert_int_equal(gpu.launch_count, outcome.status == STATUS_OK);
    outcome.record = gpu.launches[0];
    return outcome;
}

static int64_t tile_bytes(const struct wanted *tile)
{
    return (int64_t)tile->rows * tile->cols * dtype_bytes(tile->dtype);
}

/* The line of the text that begins, after spaces, with label and a space; NULL if none. */
static const char *find_line(const char *text, const char *label)
{
    const size_t length = strlen(label);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n ");
        if (strncmp(line, label, length) == 0 && line[length] == ' ')
            return line + length;
    }
    return NULL;
}

/* True if the line of that label has exactly these count numbers. */
static bool has_line(const char *text, const char *label, const int64_t *numbers, int count)
{
    const char *at = find_line(text, label);
    int found = 0;
    while (at && *at != '\n' && *at != '\0') {
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        char *end;
        const long long number = strtoll(at, &end, 10);
        if (found == count || number != numbers[found++])
            return false;
        at = end;
    }
    return at && found == count;
}

static void expect_line(const char *text, const char *label, const int64_t *numbers, int count)
{
    if (!has_line(text, label, numbers, count))
        fail_msg("no line '%s %lld' in:\n%s", label, (long long)numbers[0], text);
}

/* The level's line: what is needed, what there is, and the difference. */
static void expect_level(const char *text, enum level level, int64_t needed, int64_t available)
{
    const char *label = level == LEVEL_SRAM ? "all in SRAM" : "all in registers";
    const int64_t over = needed - available;
    expect_line(text, label, (const int64_t[]){needed, available, llabs(over)}, 3);
    const char *end = find_line(text, label);
    const char *excess = strstr(end, "too much by");
    assert_int_equal(excess && excess<end + strcspn(end, "\n"), over> 0);
}

/* Both modes refuse the tiles, with the whole table. */
static void expect_refusal(const struct machine *machine, const struct wanted *tiles, int count)
{
    for (enum gpu_mode mode = GPU_DATA; mode <= GPU_COUNTS; mode++) {
        const struct outcome outcome = try_tiles(machine, mode, false, tiles, count);
        const char *text = outcome.error.text;
        int64_t needed[LEVEL_COUNT] = {0};
        assert_int_equal(outcome.status, STATUS_ON_CHIP_FULL);
        assert_int_equal(outcome.error.status, STATUS_ON_CHIP_FULL);
        assert_int_equal(outcome.completed, 0);
        for (int i = 0; i < count; i++) {
            const int64_t bytes = tile_bytes(&tiles[i]);
            expect_line(text, tiles[i].name, &bytes, 1);
            needed[tiles[i].level] += bytes;
        }
        expect_level(text, LEVEL_SRAM, needed[LEVEL_SRAM], machine->sram_bytes_per_block);
        expect_level(text, LEVEL_REGISTERS, needed[LEVEL_REGISTERS], machine->register_bytes);
        assert_non_null(strstr(text, machine->name));
        assert_non_null(strstr(text, "wishing"));
        assert_true(text[strlen(text) - 1] == '.'); /* not cut short */
    }
}

/* Both modes run the tiles, and report them as the most that was live. */
static void expect_fit(const struct machine *machine, bool unlimited,
                       const struct wanted *tiles, int count)
{
    for (enum gpu_mode mode = GPU_DATA; mode <= GPU_COUNTS; mode++) {
        const struct outcome outcome = try_tiles(machine, mode, unlimited, tiles, count);
        int64_t used[LEVEL_COUNT] = {0};
        if (outcome.status != STATUS_OK)
            fail_msg("%s", outcome.error.text);
        assert_int_equal(outcome.completed, 2);
        for (int i = 0; i < count; i++)
            used[tiles[i].level] += tile_bytes(&tiles[i]);
        for (int level = 0; level < LEVEL_COUNT; level++)
            assert_int_equal(outcome.record.peak_bytes[level], used[level]);
    }
}

/* Tiles that fill their level to the last byte. One more row of the last one is too much. */
static const struct {
    int count;
    struct wanted tiles[4];
} exact[] = {
    {1, {{LEVEL_SRAM, "Qi", DTYPE_E4M3, 1000, 1}}},
    {1, {{LEVEL_SRAM, "Qi", DTYPE_F16, 500, 1}}},
    {1, {{LEVEL_SRAM, "Qi", DTYPE_F32, 250, 1}}},
    {1, {{LEVEL_REGISTERS, "Oi", DTYPE_F32, 150, 1}}},
    {1, {{LEVEL_REGISTERS, "Oi", DTYPE_E5M2, 600, 1}}},
    {2, {{LEVEL_SRAM, "Kj", DTYPE_BF16, 10, 40}, {LEVEL_SRAM, "Vj", DTYPE_F32, 50, 1}}},
    {3,
     {{LEVEL_REGISTERS, "Sij, Pij", DTYPE_F32, 10, 14},
      {LEVEL_SRAM, "Kj", DTYPE_F32, 10, 25},
      {LEVEL_REGISTERS, "m_new", DTYPE_F32, 10, 1}}},
    {4,
     {{LEVEL_REGISTERS, "l", DTYPE_F32, 150, 1},
      {LEVEL_SRAM, "Qi", DTYPE_F32, 10, 5},
      {LEVEL_SRAM, "Kj", DTYPE_E4M3, 3, 100},
      {LEVEL_SRAM, "Vj", DTYPE_E5M2, 500, 1}}},
};

static void test_the_last_byte_fits_and_one_more_does_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(exact); i++) {
        struct wanted tiles[4];
        const int last = exact[i].count - 1;
        memcpy(tiles, exact[i].tiles, sizeof tiles);
        expect_fit(&tiny, false, tiles, exact[i].count);
        tiles[last].rows++;
        expect_refusal(&tiny, tiles, exact[i].count);
        expect_fit(&tiny, true, tiles, exact[i].count);
    }
}

/* Tiles asked for after the one that did not fit are in the table too. */
static void test_the_table_is_complete(void **state)
{
    static const struct wanted after[] = {
        {LEVEL_SRAM, "Qi", DTYPE_F32, 100, 2},
        {LEVEL_SRAM, "Kj", DTYPE_F32, 100, 1}, /* too much from here */
        {LEVEL_SRAM, "Vj", DTYPE_F16, 7, 3},
        {LEVEL_REGISTERS, "Oi", DTYPE_F32, 2, 2},
        {LEVEL_SRAM, "Vj+1", DTYPE_E4M3, 1, 1},
        {LEVEL_REGISTERS, "Sij", DTYPE_F32, 13, 13}, /* and the registers from here */
        {LEVEL_SRAM, "Vj+2", DTYPE_E4M3, 1, 1},
    };
    (void)state;
    for (int count = 2; count <= (int)LENGTH(after); count++)
        expect_refusal(&tiny, after, count);
    struct wanted most[MAX_TILES];
    static char names[MAX_TILES][16];
    for (int i = 0; i < MAX_TILES; i++) {
        snprintf(names[i], sizeof names[i], "statistic %02d", i);
        most[i] = (struct wanted){LEVEL_REGISTERS, names[i], DTYPE_F32, 1 << 16, 100 + i};
    }
    expect_refusal(&tiny, most, MAX_TILES);
    expect_refusal(machine_default(), most, MAX_TILES);
}

static void test_every_machine_has_its_own_limits(void **state)
{
    (void)state;
    int count;
    const struct machine *machine = machine_table(&count);
    for (const struct machine *end = machine + count; machine < end; machine++) {
        struct wanted sram = {LEVEL_SRAM, "Kj", DTYPE_E4M3, 1, 1};
        struct wanted registers = {LEVEL_REGISTERS, "Oi", DTYPE_F32, 1, 1};
        sram.cols = (int)machine->sram_bytes_per_block;
        registers.cols = (int)(machine->register_bytes / 4);
        const struct wanted both[] = {sram, registers};
        expect_fit(machine, false, both, 2);
        sram.cols++;
        expect_refusal(machine, &sram, 1);
        registers.cols++;
        expect_refusal(machine, &registers, 1);
    }
}

/* One large block among many small ones is enough, on any number of threads. What the GPU
 * counted before stays, and the GPU can be used again. */
static void test_a_refused_launch_leaves_no_record(void **state)
{
    static const struct wanted tiles[] = {{LEVEL_SRAM, "small", DTYPE_F32, 1, 1},
                                          {LEVEL_SRAM, "large", DTYPE_F32, 250, 1}};
    static const int threads[] = {1, 2, 7};
    (void)state;
    for (size_t k = 0; k < LENGTH(threads); k++) {
        struct gpu gpu;
        struct error error = {0};
        int completed = 0;
        gpu_init(&gpu, &tiny, k % 2 ? GPU_COUNTS : GPU_DATA);
        struct hbm_tensor t = new_tensor(&gpu, "T", DTYPE_F32, 1, 4, 4);
        float values[16] = {0};
        run_one_block(
            &gpu, move_block,
            &(struct tile_move){DIRECTION_WRITE, &t, 0, 0, 0, DTYPE_F32, 4, 4, values});
        const struct account before = gpu_account(&gpu);
        const struct wishes wishes = {2, 20, tiles, &completed};
        const struct launch launch = {
            .name = "wishing", .grid = {21, 1, 1}, .block = wishing_block, .args = &wishes};
        omp_set_num_threads(threads[k]);
        assert_int_equal(gpu_launch(&gpu, &launch, &error), STATUS_ON_CHIP_FULL);
        omp_set_num_threads(omp_get_num_procs());
        assert_int_equal(completed, 20);
        expect_level(error.text, LEVEL_SRAM, 1004, 1000);
        assert_int_equal(gpu.launch_count, 1);
        const struct account after = gpu_account(&gpu);
        assert_true(account_equal(&before, &after));
        assert_int_equal(account_total(&after).of[DIRECTION_WRITE].bytes, 64);
        run_one_block(
            &gpu, move_block,
            &(struct tile_move){DIRECTION_WRITE, &t, 0, 0, 0, DTYPE_F32, 4, 4, values});
        assert_int_equal(gpu.launch_count, 2);
        hbm_free(&t);
    }
}

/* A cut, missing or additional number, or another label, is not accepted. */
static void test_has_line_by_hand(void **state)
{
    static const char text[] = "x:\n  Kj  SRAM   100\n  all in SRAM  20 of 30: left 10\n  a 1";
    static const int64_t numbers[] = {20, 30, 10, 0};
    static const int64_t hundred = 100, ten = 10, one = 1;
    (void)state;
    assert_true(has_line(text, "Kj", &hundred, 1) && has_line(text, "a", &one, 1));
    assert_true(has_line(text, "all in SRAM", numbers, 3));
    assert_false(has_line(text, "all in SRAM", numbers, 2));
    assert_false(has_line(text, "all in SRAM", numbers, 4));
    assert_false(has_line(text, "Kj", &ten, 1) || has_line(text, "K", &hundred, 1));
    assert_false(has_line(text, "Vj", &hundred, 1) || has_line("", "", &one, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_has_line_by_hand),
        cmocka_unit_test(test_the_last_byte_fits_and_one_more_does_not),
        cmocka_unit_test(test_the_table_is_complete),
        cmocka_unit_test(test_every_machine_has_its_own_limits),
        cmocka_unit_test(test_a_refused_launch_leaves_no_record),
    };
    return cmocka_run_group_tests_name("memory_capacity", tests, NULL, NULL);
}
