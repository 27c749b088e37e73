/* Step records and their JSON lines.
 *
 * Protects: records come in the order of blocks and of steps whatever the number of threads,
 * with what the block had moved by then and what its tiles held, NaN for what a step does not
 * know; the JSON lines say the same, to the last bit of every float, -inf and NaN included;
 * tracing changes no count, and without a trace nothing is recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core_fixture.h"
#include "core/trace.h"

enum { X = 4, Y = 3, Z = 2, BLOCKS = X * Y * Z, TILE_ROWS = 5, COLS = 6, MOST_STEPS = 3 };

/* The kernel under trace: 1 to 3 iterations; statistics of 1 to 5 rows after each. */
struct kernel {
    struct hbm_tensor *in, *out, *sum;
    bool reduces; /* at its end the block adds O to sum */
    int untraced; /* blocks that had records although there was no trace */
};

/* m, l and O of row r, column c in iteration j of a block. */
static float value_of(int block, int j, char tile, int r, int c)
{
    struct rng rng = {((uint64_t)block * 64 + (uint64_t)j) * 4096 +
                      (uint64_t)(tile * 8 + r) * 8 + (uint64_t)c};
    const float value = random_value(&rng);
    if (tile == 'm' && r == 0)
        return j == 0 ? -INFINITY : j == 1 ? INFINITY : NAN;
    if (tile == 'l' && r == 1)
        return j == 0 ? 0.0f : value * 1e30f;
    if (tile == 'O' && r == 2) /* a norm whose square is beyond fp32 */
        return value * 1e25f;
    return r == 3 && c == 1 && tile == 'O' && j == 1 ? NAN : value;
}

static int steps_of(int block)
{
    return 1 + block % MOST_STEPS;
}

static int rows_of(int block)
{
    return 1 + block % TILE_ROWS;
}

/* Which of its tiles the step names. */
enum known { KNOWN_ALL, KNOWN_M_L, KNOWN_O, KNOWN_COUNT };

static enum known known_of(int block, int j)
{
    return (enum known)((block + j) % KNOWN_COUNT);
}

static void fill_statistics(struct tile *t, int block, int j, char tile)
{
    for (int r = 0; t->data && r < t->rows; r++)
        for (int c = 0; c < t->cols; c++)
            tile_writable(t)[r * t->cols + c] = value_of(block, j, tile, r, c);
}

static void kernel_block(struct thread_block *b, const void *args)
{
    struct kernel *k = *(struct kernel *const *)args;
    const int block = b->x + X * (b->y + Y * b->z);
    struct tile m, l, O;
    tile_alloc(&m, b, LEVEL_REGISTERS, "m", DTYPE_F32, TILE_ROWS, 1);
    tile_alloc(&l, b, LEVEL_REGISTERS, "l", DTYPE_F32, TILE_ROWS, 1);
    tile_alloc(&O, b, LEVEL_REGISTERS, "O", DTYPE_F32, TILE_ROWS, COLS);
    usleep(block % 3 == 0 ? 500 : 0); /* later blocks overtake */
    tile_load(&O, k->in, 0, 0, 0);
    block_step(b, "load", block, -1);
    for (int j = loop_begin(b, 0); j < steps_of(block); j = loop_next(b, j, steps_of(block))) {
        fill_statistics(&m, block, j, 'm');
        fill_statistics(&l, block, j, 'l');
        fill_statistics(&O, block, j, 'O');
        tile_store(k->out, 0, 0, 0, &m);
        const enum known known = known_of(block, j);
        block_step_rows(b, "update", block, j, rows_of(block), known == KNOWN_O ? NULL : &m,
                        known == KNOWN_O ? NULL : &l, known == KNOWN_M_L ? NULL : &O);
        if (!b->gpu->trace && b->steps) {
#pragma omp atomic
            k->untraced++;
        }
    }
    if (k->reduces)
        tile_reduce_add(k->sum, 0, 0, 0, &O);
    block_step(b, "end", -1, -1);
}

/* Checks each record as it comes, and writes it as JSON. */
struct checker {
    bool data, reduces;
    int block, step; /* the record that is due */
    int wrong;       /* records that were not what was due */
    FILE *json;
};

static bool close_to(float got, double want)
{
    if (isnan(want))
        return isnan(got);
    if (isinf(want))
        return got == want;
    return fabs((double)got - want) <= 1e-6 * fabs(want);
}

static bool right_statistics(const struct step_record *record, int block, int j)
{
    const enum known known = known_of(block, j);
    for (int r = 0; r < record->rows; r++) {
        double square = known == KNOWN_M_L ? NAN : 0.0;
        for (int c = 0; c < COLS; c++)
            square += pow((double)value_of(block, j, 'O', r, c), 2);
        const float m = known == KNOWN_O ? NAN : value_of(block, j, 'm', r, 0);
        const float l = known == KNOWN_O ? NAN : value_of(block, j, 'l', r, 0);
        if (!same_bits(record->m[r], m) || !same_bits(record->l[r], l) ||
            !close_to(record->o_norm[r], sqrt(square)))
            return false;
    }
    return true;
}

/* The record of a block's step: 0 load, then its updates, then end. */
static bool right_record(const struct checker *c, const struct step_record *record)
{
    const int block = c->block, updates = steps_of(block), j = c->step - 1;
    const bool load = c->step == 0, end = j == updates;
    const char *step = load ? "load" : end ? "end" : "update";
    const int rows = load || end || !c->data ? 0 : rows_of(block);
    const int written = load ? 0 : end ? updates : j + 1;
    return strcmp(record->kernel, "traced") == 0 && strcmp(record->step, step) == 0 &&
           record->block[0] == block % X && record->block[1] == block / X % Y &&
           record->block[2] == block / X / Y && record->i == (end ? -1 : block) &&
           record->j == (load || end ? -1 : j) && record->rows == rows &&
           record->read_bytes == TILE_ROWS * COLS * 2 &&
           record->written_bytes == written * TILE_ROWS * 4 &&
           record->reduced_bytes == (end && c->reduces) * TILE_ROWS * COLS * 4 &&
           right_statistics(record, block, j);
}

static void check_record(void *context, const struct step_record *record)
{
    struct checker *c = context;
    c->wrong += c->block >= BLOCKS || !right_record(c, record);
    if (c->step++ == steps_of(c->block) + 1) {
        c->block++;
        c->step = 0;
    }
    if (c->json)
        trace_write_json(c->json, record);
}

/* Runs the kernel; checker NULL: without a trace. */
static struct account run_kernel(enum gpu_mode mode, bool reduces, int threads,
                                 struct checker *checker)
{
    struct gpu gpu;
    struct trace trace = {check_record, checker};
    gpu_init(&gpu, machine_default(), mode);
    gpu.trace = checker ? &trace : NULL;
    struct hbm_tensor in = new_tensor(&gpu, "in", DTYPE_F16, 1, TILE_ROWS, COLS);
    struct hbm_tensor out = new_tensor(&gpu, "out", DTYPE_F32, 1, TILE_ROWS, 1);
    struct hbm_tensor sum = new_tensor(&gpu, "sum", DTYPE_F32, 1, TILE_ROWS, COLS);
    struct kernel kernel = {&in, &out, &sum, reduces, 0}, *args = &kernel;
    omp_set_num_threads(threads);
    launch_ok(&gpu, &(struct launch){.name = "traced",
                                     .grid = {X, Y, Z},
                                     .block = kernel_block,
                                     .args = &args,

                                     .reduces = reduces});
    omp_set_num_threads(omp_get_num_procs());
    assert_int_equal(kernel.untraced, 0);
    hbm_free(&in), hbm_free(&out), hbm_free(&sum);
    return gpu_account(&gpu);
}

static void test_records_are_complete_and_in_block_order(void **state)
{
    static const int threads[] = {1, 2, 7};
    (void)state;
    for (int k = 0; k < 4 * (int)LENGTH(threads); k++) {
        const enum gpu_mode mode = k & 1 ? GPU_COUNTS : GPU_DATA;
        const bool reduces = k & 2;
        struct checker checker = {.data = mode == GPU_DATA, .reduces = reduces};
        const struct account untraced = run_kernel(mode, reduces, 2, NULL);
        const struct account traced = run_kernel(mode, reduces, threads[k / 4], &checker);
        assert_int_equal(checker.wrong, 0);
        assert_int_equal(checker.block, BLOCKS);
        assert_true(account_equal(&traced, &untraced));
    }
}

static void test_the_checker_rejects_wrong_records(void **state)
{
    (void)state;
    float m[] = {value_of(0, 0, 'm', 0, 0)}, l[] = {value_of(0, 0, 'l', 0, 0)}, norm[1];
    double square = 0;
    for (int c = 0; c < COLS; c++)
        square += pow((double)value_of(0, 0, 'O', 0, c), 2);
    norm[0] = (float)sqrt(square);
    const struct checker due = {.data = true, .block = 0, .step = 1};
    const struct step_record right = {"traced", {0, 0, 0}, 0, 0, "update", 60,
                                      20,       0,         1, m, l,        norm};
    assert_true(right_record(&due, &right));
    struct step_record wrong = right;
    int *numbers[] = {&wrong.block[0], &wrong.block[1], &wrong.block[2], &wrong.i, &wrong.j};
    int64_t *bytes[] = {&wrong.read_bytes, &wrong.written_bytes, &wrong.reduced_bytes};
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        ++*numbers[i];
        assert_false(right_record(&due, &wrong));
        --*numbers[i];
    }
    for (size_t i = 0; i < LENGTH(bytes); i++) {
        ++*bytes[i];
        assert_false(right_record(&due, &wrong));
        --*bytes[i];
    }
    float *statistics[] = {m, l, norm};
    for (size_t i = 0; i < LENGTH(statistics); i++) {
        const float good = *statistics[i];
        *statistics[i] = NAN;
        assert_false(right_record(&due, &right));
        *statistics[i] = i == 2 ? good * 1.0001f : nextafterf(good, 1.0f);
        assert_false(right_record(&due, &right));
        *statistics[i] = good;
    }
}

/* A float as the JSON has it: a number, or the name of what is none. */
static bool json_is(const cJSON *item, float want)
{
    if (!isfinite(want))
        return cJSON_IsString(item) && strcmp(item->valuestring, isnan(want) ? "nan"
                                                                 : want > 0  ? "inf"
                                                                             : "-inf") == 0;
    return cJSON_IsNumber(item) && (float)item->valuedouble == want;
}

static void expect_floats(const cJSON *line, const char *key, const float *want, int count)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(line, key);
    if (count == 0) {
        assert_null(array);
        return;
    }
    assert_true(cJSON_IsArray(array));
    assert_int_equal(cJSON_GetArraySize(array), count);
    for (int i = 0; i < count; i++)
        if (!json_is(cJSON_GetArrayItem(array, i), want[i]))
            fail_msg("%s[%d] should be %a", key, i, (double)want[i]);
}

static void expect_number(const cJSON *line, const char *key, int64_t want)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
    assert_true(cJSON_IsNumber(item));
    assert_true(item->valuedouble == (double)want);
}

static void expect_text(const cJSON *line, const char *key, const char *want)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, key);
    assert_true(cJSON_IsString(item));
    assert_string_equal(item->valuestring, want);
}

/* The line of one record, parsed; it must be the whole text. cJSON_Delete() it. */
static cJSON *line_of(const struct step_record *record)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    trace_write_json(stream, record);
    assert_int_equal(fclose(stream), 0);
    assert_true(size > 0 && strchr(text, '\n') == text + size - 1);
    const char *end = NULL;
    cJSON *line = cJSON_ParseWithOpts(text, &end, 0);
    assert_non_null(line);
    assert_string_equal(end, "\n");
    free(text);
    return line;
}

static void test_json_has_every_field(void **state)
{
    (void)state;
    float m[] = {-INFINITY, INFINITY, NAN, -0.1f, 3.40282347e38f, 1e-45f, 16777217.0f};
    float l[] = {0.0f, 1.0f / 3, -NAN, 0x1.fffffep-1f, 0x1.000002p0f, 1e10f, -7.0f};
    float norm[] = {1, 2, 3, 0x1.e6c3f2p-7f, 0x1.bcfbbp-4f, 6, INFINITY}; /* 9 digits */
    const struct step_record records[] = {
        {"flash2_forward",
         {3, 1, 2},
         5,
         6,
         "Oi = diag(c) Oi + Pij Vj",
         INT64_C(1) << 52,
         7,
         9,
         7,
         m,
         l,
         norm},
        {"k", {0, 0, 0}, -1, -1, "load", 0, 0, 0, 0, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < LENGTH(records); i++) {
        const struct step_record *r = &records[i];
        cJSON *line = line_of(r);
        expect_text(line, "kernel", r->kernel);
        expect_text(line, "step", r->step);
        const cJSON *block = cJSON_GetObjectItemCaseSensitive(line, "block");
        assert_int_equal(cJSON_GetArraySize(block), 3);
        for (int k = 0; k < 3; k++)
            assert_int_equal(cJSON_GetArrayItem(block, k)->valueint, r->block[k]);
        expect_number(line, "i", r->i);
        expect_number(line, "j", r->j);
        expect_number(line, "read_bytes", r->read_bytes);
        expect_number(line, "written_bytes", r->written_bytes);
        expect_number(line, "reduced_bytes", r->reduced_bytes);
        expect_floats(line, "m", r->m, r->rows);
        expect_floats(line, "l", r->l, r->rows);
        expect_floats(line, "o_norm", r->o_norm, r->rows);
        cJSON_Delete(line);
    }
}

/* The file of a whole launch: the same text for any number of threads, one object a line. */
static void test_json_lines_do_not_depend_on_threads(void **state)
{
    (void)state;
    char *text[3] = {NULL};
    size_t size[3] = {0};
    for (int k = 0; k < 3; k++) {
        struct checker checker = {.data = true, .json = open_memstream(&text[k], &size[k])};
        assert_non_null(checker.json);
        run_kernel(GPU_DATA, false, 1 + 3 * k, &checker);
        assert_int_equal(fclose(checker.json), 0);
        assert_string_equal(text[k], text[0]);
    }
    int lines = 0, expected = 0;
    for (int block = 0; block < BLOCKS; block++)
        expected += steps_of(block) + 2;
    for (char *line = strtok(text[0], "\n"); line; line = strtok(NULL, "\n"), lines++) {
        cJSON *object = cJSON_ParseWithOpts(line, NULL, 1);
        assert_true(cJSON_IsObject(object));
        cJSON_Delete(object);
    }
    assert_int_equal(lines, expected);
    for (int k = 0; k < 3; k++)
        free(text[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_checker_rejects_wrong_records),
        cmocka_unit_test(test_records_are_complete_and_in_block_order),
        cmocka_unit_test(test_json_has_every_field),
        cmocka_unit_test(test_json_lines_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
