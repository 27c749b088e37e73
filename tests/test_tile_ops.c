/* Every operation on tiles against its formula in double precision.
 *
 * Protects: values within the rounding that the operation may do (bounds and their reasons
 * stand beside each formula), over random extents; padding is neither read (it is NaN or
 * huge) nor written; operands that are only read stay as they were; FLOPs are those of the
 * header; counts-only mode counts the same and computes nothing. -inf, NaN and rows without
 * keys: test_tile_ops_special.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/tile_op_table.h"

enum { MOST_ROWS = 48, MOST_FLOATS = MOST_ROWS * MOST_ROWS };

/* Half a unit in the last place of 1: what one rounding to fp32 can change, relatively. */
static const double U = 0x1p-24;

/* One operation on one set of operands, before and after. */
struct trial {
    const struct tile_op *op;
    struct extents e;
    int rows[MOST_OPERANDS], cols[MOST_OPERANDS]; /* of the tiles, padding included */
    float before[MOST_OPERANDS][MOST_FLOATS];
    float after[MOST_OPERANDS][MOST_FLOATS];
};

static double at(const struct trial *t, int operand, int row, int col)
{
    return t->before[operand][row * t->cols[operand] + col];
}

/* What an element must be, and by how much it may differ. */
struct expected {
    double value, tolerance;
};

static struct expected expected_round(const struct trial *t, int r, int c)
{
    float value;
    dtype_round(&value, tile_op_cast, &t->before[0][r * t->cols[0] + c], 1);
    return (struct expected){value, 0};
}

/* Dot products of n terms: each term passes at most n roundings, whatever the order. */
static struct expected expected_scores(const struct trial *t, int r, int c)
{
    double sum = 0, size = 0;
    for (int k = 0; k < t->e.d; k++) {
        sum += at(t, 1, r, k) * at(t, 2, c, k);
        size += fabs(at(t, 1, r, k) * at(t, 2, c, k));
    }
    const double scale = tile_op_scale;
    return (struct expected){scale * sum, (t->e.d + 2) * U * scale * size};
}

static struct expected expected_add_product(const struct trial *t, int r, int c)
{
    double sum = at(t, 0, r, c), size = fabs(sum);
    for (int k = 0; k < t->e.c; k++) {
        sum += at(t, 1, r, k) * at(t, 2, k, c);
        size += fabs(at(t, 1, r, k) * at(t, 2, k, c));
    }
    return (struct expected){sum, (t->e.c + 2) * U * size};
}

static struct expected expected_row_max(const struct trial *t, int r, int c)
{
    double max = at(t, 1, r, 0);
    for (int k = 0; k < t->e.c; k++)
        max = fmax(max, at(t, 2, r, k));
    (void)c;
    return (struct expected){max, 0};
}

/* exp is within 1.5 units in the last place (3 U relative at most); the difference is rounded
 * once, which exp multiplies by the value. */
static struct expected exp_of_difference(double x, double y)
{
    const double value = exp(x - y);
    return (struct expected){value, value * U * (3 + fabs(x - y)) * 1.01};
}

static struct expected expected_exp(const struct trial *t, int r, int c)
{
    return exp_of_difference(at(t, 0, r, c), at(t, 1, r, 0));
}

/* The scores of tile_exp_sum; m is its third operand. */
static struct expected expected_exp_of_sum(const struct trial *t, int r, int c)
{
    return exp_of_difference(at(t, 0, r, c), at(t, 2, r, 0));
}

static struct expected expected_correction(const struct trial *t, int r, int c)
{
    return exp_of_difference(at(t, 1, r, c), at(t, 2, r, c));
}

/* The sum l of tile_exp_sum. Each exp is off by its own bound, and each term passes at most as
 * many additions as there are terms. */
static struct expected expected_exp_sum(const struct trial *t, int r, int c)
{
    double sum = at(t, 3, r, c) * at(t, 1, r, c), size = fabs(sum), off = 0;
    for (int k = 0; k < t->e.c; k++) {
        const struct expected p = exp_of_difference(at(t, 0, r, k), at(t, 2, r, 0));
        sum += p.value;
        size += p.value;
        off += p.tolerance;
    }
    return (struct expected){sum, off + (t->e.c + 2) * U * size};
}

static struct expected expected_scale_rows(const struct trial *t, int r, int c)
{
    const double value = at(t, 0, r, c) * at(t, 1, r, 0);
    return (struct expected){value, U * fabs(value)};
}

static struct expected expected_add(const struct trial *t, int r, int c)
{
    const double value = at(t, 0, r, c) + at(t, 1, r, c);
    return (struct expected){value, U * fabs(value)};
}

/* A reciprocal, then a product. */
static struct expected expected_divide_rows(const struct trial *t, int r, int c)
{
    const double value = at(t, 0, r, c) / at(t, 1, r, 0);
    return (struct expected){value, 2.01 * U * fabs(value)};
}

/* logf is within 1 unit in the last place (glibc manual, "Known Maximum Errors"). */
static struct expected expected_log_sum_exp(const struct trial *t, int r, int c)
{
    const double m = at(t, 1, r, c), logarithm = log(at(t, 2, r, c));
    return (struct expected){m + logarithm, 2 * U * fabs(logarithm) + U * fabs(m + logarithm)};
}

static const struct {
    const char *name;
    struct expected (*of[2])(const struct trial *t, int r, int c); /* by operand written */
} formulas[] = {
    {"tile_round", {expected_round}},
    {"tile_scores", {expected_scores}},
    {"tile_add_product", {expected_add_product}},
    {"tile_row_max", {expected_row_max}},
    {"tile_exp", {expected_exp}},
    {"tile_exp_sum", {expected_exp_of_sum, expected_exp_sum}},
    {"tile_correction", {expected_correction}},
    {"tile_scale_rows", {expected_scale_rows}},
    {"tile_add", {expected_add}},
    {"tile_divide_rows", {expected_divide_rows}},
    {"tile_log_sum_exp", {expected_log_sum_exp}},
};

/* Which element of an operand that was written differs, or -1. */
static int first_mistake(const struct trial *t, int operand)
{
    size_t f = 0;
    while (strcmp(formulas[f].name, t->op->name) != 0)
        f++;
    const int rows = tile_op_extent(t->op->shape[operand][0], &t->e);
    const int cols = tile_op_extent(t->op->shape[operand][1], &t->e);
    for (int i = 0; i < t->rows[operand] * t->cols[operand]; i++) {
        const int r = i / t->cols[operand], c = i % t->cols[operand];
        const float got = t->after[operand][i];
        if (r >= rows || c >= cols) {
            if (!same_bits(got, t->before[operand][i]))
                return i;
            continue;
        }
        const struct expected want = formulas[f].of[operand](t, r, c);
        if (!(fabs((double)got - want.value) <= want.tolerance))
            return i;
    }
    return -1;
}

static void op_block(struct thread_block *b, const void *args)
{
    struct trial *t = *(struct trial *const *)args;
    struct tile tiles[MOST_OPERANDS], *operands[MOST_OPERANDS];
    for (int k = 0; k < tile_op_operands(t->op); k++) {
        operands[k] = &tiles[k];
        tile_alloc(&tiles[k], b, LEVEL_SRAM, "operand", DTYPE_F32, t->rows[k], t->cols[k]);
        if (tiles[k].data)
            memcpy(tile_writable(&tiles[k]), t->before[k],
                   (size_t)t->rows[k] * (size_t)t->cols[k] * sizeof(float));
    }
    t->op->call(operands, &t->e);
    for (int k = 0; k < tile_op_operands(t->op); k++)
        if (tiles[k].data)
            memcpy(t->after[k], tiles[k].data,
                   (size_t)t->rows[k] * (size_t)t->cols[k] * sizeof(float));
}

/* The value, moved where the operation expects it: the maximum that exp subtracts is no less
 * than the scores, and sums are positive. */
static float meaningful(const struct tile_op *op, int operand, float value)
{
    const bool is_max = (strcmp(op->name, "tile_exp") == 0 && operand == 1) ||
                        (strcmp(op->name, "tile_exp_sum") == 0 && operand == 2) ||
                        (strcmp(op->name, "tile_correction") == 0 && operand == 2);
    if (is_max)
        return value + 4.0f;
    if (strcmp(op->name, "tile_log_sum_exp") == 0 && operand == 2)
        return fabsf(value) * 50.0f;
    return value;
}

/* Random operands: the extents hold values, up to 5 more rows and columns the padding. The
 * inner extent d has no padding. */
static void fill_trial(struct trial *t, struct rng *rng, float padding)
{
    for (int k = 0; k < tile_op_operands(t->op); k++) {
        const char *shape = t->op->shape[k];
        const int rows = tile_op_extent(shape[0], &t->e),
                  cols = tile_op_extent(shape[1], &t->e);
        t->rows[k] = rows + (shape[0] == 'd' ? 0 : random_int(rng, 0, 5));
        t->cols[k] = cols + (shape[1] == 'c' ? random_int(rng, 0, 5) : 0);
        for (int i = 0; i < t->rows[k] * t->cols[k]; i++) {
            const bool inside = i / t->cols[k] < rows && i % t->cols[k] < cols;
            const float value = random_value(rng);
            t->before[k][i] = inside ? meaningful(t->op, k, value) : padding;
        }
    }
    memcpy(t->after, t->before, sizeof t->after);
}

static void expect_flops(const struct gpu *gpu, const struct trial *t)
{
    const struct tile_op *op = t->op;
    const struct extents e = t->e;
    struct account want = {0};
    want.flops.matrix = (int64_t)op->matrix_rcd * e.r * e.c * e.d;
    want.flops.other = (int64_t)op->other_rc * e.r * e.c + op->other_r * e.r;
    want.flops.exp = (int64_t)op->exp_rc * e.r * e.c + op->exp_r * e.r;
    const struct account got = gpu_account(gpu);
    if (!account_equal(&got, &want))
        fail_msg("%s of %d x %d, %d: %lld matrix, %lld other, %lld exp", op->name, e.r, e.c,
                 e.d, (long long)got.flops.matrix, (long long)got.flops.other,
                 (long long)got.flops.exp);
}

static void run_trial(struct trial *t, enum gpu_mode mode)
{
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), mode);
    run_one_block(&gpu, op_block, &t);
    expect_flops(&gpu, t);
    for (int k = mode == GPU_COUNTS ? 0 : t->op->written; k < tile_op_operands(t->op); k++)
        assert_memory_equal(t->after[k], t->before[k], sizeof t->after[k]);
}

/* The n-th trial of an operation: small, large and ragged extents. */
static void make_trial(struct trial *t, const struct tile_op *op, struct rng *rng, int n)
{
    memset(t, 0, sizeof *t);
    t->op = op;
    t->e = (struct extents){random_int(rng, 1, 43), random_int(rng, 1, 43),
                            random_int(rng, 1, 43)};
    if (n % 4 == 0)
        t->e.c = 16 * (1 + n / 4 % 2);       /* whole vectors */
    fill_trial(t, rng, n % 2 ? NAN : 1e30f); /* a maximum passes over NaN */
}

static void test_operations_match_their_formulas(void **state)
{
    static struct trial trial;
    struct rng rng = {41};
    int count;
    const struct tile_op *op = tile_op_table(&count);
    (void)state;
    assert_int_equal(count, LENGTH(formulas));
    for (const struct tile_op *end = op + count; op < end; op++) {
        for (int n = 0; n < 60; n++) {
            make_trial(&trial, op, &rng, n);
            run_trial(&trial, GPU_COUNTS);
            run_trial(&trial, GPU_DATA);
            for (int k = 0; k < op->written; k++) {
                const int i = first_mistake(&trial, k), cols = trial.cols[k];
                if (i >= 0)
                    fail_msg("%s of %d x %d, %d: element (%d, %d) of operand %d is %a",
                             op->name, trial.e.r, trial.e.c, trial.e.d, i / cols, i % cols, k,
                             (double)trial.after[k][i]);
            }
        }
    }
}

/* NaN, a constant, another element's value, and 3 % too much are all mistakes. */
static void test_the_comparison_rejects_wrong_results(void **state)
{
    static struct trial trial;
    struct rng rng = {42};
    int count;
    const struct tile_op *op = tile_op_table(&count);
    (void)state;
    for (const struct tile_op *end = op + count; op < end; op++) {
        make_trial(&trial, op, &rng, 1);
        run_trial(&trial, GPU_DATA);
        for (int k = 0; k < op->written; k++) {
            const int last = (tile_op_extent(op->shape[k][0], &trial.e) - 1) * trial.cols[k];
            const float right = trial.after[k][last];
            const float wrong[] = {NAN,  INFINITY,          0.0f,
                                   1.0f, trial.after[k][0], right * (1 + 0x1p-5f)};
            for (size_t i = 0; i < LENGTH(wrong); i++) {
                trial.after[k][last] = wrong[i];
                assert_int_equal(first_mistake(&trial, k), last);
            }
            trial.after[k][last] = right;
            assert_int_equal(first_mistake(&trial, k), -1);
        }
    }
}

/* tile_fill and tile_copy. */
struct pair {
    float filled[3 * 4], copied[3 * 4];
};

static void fill_and_copy_block(struct thread_block *b, const void *args)
{
    struct pair *pair = *(struct pair *const *)args;
    struct tile a, c;
    tile_alloc(&a, b, LEVEL_SRAM, "a", DTYPE_F32, 3, 4);
    tile_alloc(&c, b, LEVEL_REGISTERS, "c", DTYPE_F16, 3, 4);
    tile_fill(&a, 2.5f);
    if (a.data) {
        memcpy(pair->filled, a.data, sizeof pair->filled);
        for (int i = 0; i < 12; i++)
            tile_writable(&a)[i] = (float)i - 3;
    }
    tile_copy(&c, &a);
    if (c.data)
        memcpy(pair->copied, c.data, sizeof pair->copied);
}

static void test_fill_and_copy(void **state)
{
    (void)state;
    for (enum gpu_mode mode = GPU_DATA; mode <= GPU_COUNTS; mode++) {
        struct pair pair = {{0}, {0}}, *args = &pair;
        struct gpu gpu;
        gpu_init(&gpu, machine_default(), mode);
        run_one_block(&gpu, fill_and_copy_block, &args);
        for (int i = 0; i < 12; i++) {
            assert_true(pair.filled[i] == (mode == GPU_DATA ? 2.5f : 0.0f));
            assert_true(pair.copied[i] == (mode == GPU_DATA ? (float)i - 3 : 0.0f));
        }
        const struct account got = gpu_account(&gpu), nothing = {0};
        assert_true(account_equal(&got, &nothing));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_match_their_formulas),
        cmocka_unit_test(test_the_comparison_rejects_wrong_results),
        cmocka_unit_test(test_fill_and_copy),
    };
    return cmocka_run_group_tests_name("tile_ops", tests, NULL, NULL);
}
