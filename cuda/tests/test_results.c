/* Results of the CUDA kernels against float64, on shapes of every kind.
 *
 * The rule is that of common/tolerance.h: at most twice the error of the plain version in the
 * same precision, plus a rounding floor; NaN and infinities exactly where float64 has them.
 * Outputs start as NaN, so one that is not written fails. Sentinels around every array and the
 * inputs must be as they were, and a second run must give the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/tolerance.h"
#include "common/vectors.h"
#include "cuda/device.h"
#include "reference_basic.h"
#include "shapes.h"

static const struct variant gpu_variants[KERNEL_COUNT] = {
    [KERNEL_NAIVE] = {"naive_attention.cu", ALGORITHM_NAIVE, false},
    [KERNEL_STANDARD] = {"standard_attention.cu", ALGORITHM_STANDARD, true},
    [KERNEL_FLASH1] = {"flash1_forward.cu", ALGORITHM_FLASH1, false},
    [KERNEL_FLASH2] = {"flash2_forward.cu", ALGORITHM_FLASH2, false},
};

/* Launches on poisoned outputs, waits, and downloads them. */
static void launch_once(struct run *run)
{
    struct error error;
    if (run_poison(run, &error) || run_launch(run, &error) || stream_wait(NULL, &error) ||
        run_download(run, &error))
        fail_msg("%s: %s", run_text(run), error.text);
}

/* Runs twice: same bits, sentinels and inputs untouched. */
static void launch_twice(struct run *run)
{
    float *first[MAX_ARRAYS] = {NULL};
    struct error error;
    char text[128];
    launch_once(run);
    for (int i = 0; i < run->arrays; i++) {
        first[i] = allocate(run->array[i].count, sizeof(float));
        memcpy(first[i], run->array[i].host, run->array[i].count * sizeof(float));
    }
    launch_once(run);
    for (int i = 0; i < run->arrays; i++) {
        if (memcmp(first[i], run->array[i].host, run->array[i].count * sizeof(float)) != 0)
            fail_msg("%s: %s differs from run to run", run_text(run), run->array[i].name);
        free(first[i]);
    }
    if (run_damage(run, text, &error))
        fail_msg("%s: %s", run_text(run), text);
}

static void open_or_fail(struct run *run, uint64_t seed)
{
    struct error error;
    if (run_open(run, seed, &error))
        fail_msg("%s: %s", run_text(run), error.text);
}

/* O and LSE of a run on those inputs. */
static void assert_attention(struct run *run, const struct problem *p,
                             const struct truth *truth)
{
    struct yardsticks yardsticks;
    const size_t rows = count_lse(&run->a);
    float *lse = allocate(rows, sizeof *lse);
    yardsticks_make(&yardsticks, p);
    if (run->kernel == KERNEL_FLASH1) {
        const float *l = run_array(run, "l")->host, *m = run_array(run, "m")->host;
        for (size_t r = 0; r < rows; r++)
            lse[r] = l[r] == 0.0f ? -INFINITY : m[r] + logf(l[r]);
    } else {
        memcpy(lse, run_array(run, "LSE")->host, rows * sizeof *lse);
    }
    const struct answer answer = {.o = run_array(run, "O")->host, .lse = lse};
    assert_right(&run->a, &gpu_variants[run->kernel], &answer, &yardsticks, truth);
    yardsticks_free(&yardsticks);
    free(lse);
}

static void test_attention(enum kernel kernel)
{
    for (int n = 0; n < shapes_count(kernel); n++) {
        struct run run = shape_of(kernel, n);
        struct truth truth;
        open_or_fail(&run, 1 + (uint64_t)n);
        launch_twice(&run);
        const struct problem p = {run.a, run_array(&run, "Q")->host, run_array(&run, "K")->host,
                                  run_array(&run, "V")->host};
        reference_attention(&truth, &p, (double)run.a.scale);
        assert_attention(&run, &p, &truth);
        truth_free(&truth);
        run_close(&run);
    }
}

static void set_input(struct run *run, const char *name, const float *values)
{
    struct array *array = run_array(run, name);
    struct error error;
    memcpy(array->host, values, array->count * sizeof *values);
    if (device_upload(array->guarded + SENTINELS, values, array->count * sizeof *values,
                      &error))
        fail_msg("%s: %s", name, error.text);
}

/* The stored problems with PyTorch's answers in float64. */
static void test_stored(enum kernel kernel)
{
    struct csv manifest;
    csv_read(&manifest, STORED_MANIFEST);
    for (int row = 0; row < manifest.rows; row++) {
        struct stored stored;
        stored_read(&stored, &manifest, row);
        struct run run = {.kernel = kernel, .a = stored.problem.a};
        open_or_fail(&run, 1);
        set_input(&run, "Q", stored.problem.q);
        set_input(&run, "K", stored.problem.k);
        set_input(&run, "V", stored.problem.v);
        launch_twice(&run);
        assert_attention(&run, &stored.problem, &stored.truth);
        run_close(&run);
        stored_free(&stored);
    }
    csv_free(&manifest);
}

static void test_naive(void **state)
{
    (void)state;
    test_attention(KERNEL_NAIVE);
    test_stored(KERNEL_NAIVE);
}

static void test_standard(void **state)
{
    (void)state;
    test_attention(KERNEL_STANDARD);
    test_stored(KERNEL_STANDARD);
}

static void test_flash1(void **state)
{
    (void)state;
    test_attention(KERNEL_FLASH1);
    test_stored(KERNEL_FLASH1);
}

static void test_flash2(void **state)
{
    (void)state;
    test_attention(KERNEL_FLASH2);
    test_stored(KERNEL_FLASH2);
}

static void test_basic(enum kernel kernel)
{
    for (int n = 0; n < shapes_count(kernel); n++) {
        struct run run = shape_of(kernel, n);
        open_or_fail(&run, 1 + (uint64_t)n);
        launch_twice(&run);
        struct basic_reference reference;
        reference_basic(&reference, &run);
        const struct array *output = &run.array[run.arrays - 1];
        const struct verdict verdict =
            judge(DTYPE_F32, output->host, reference.plain, reference.truth, output->count);
        if (!verdict.right)
            fail_msg("%s: off by %g; the plain version by %g, rounding allows %g; element %ld",
                     run_text(&run), verdict.error, verdict.plain, verdict.floor,
                     verdict.misplaced);
        basic_reference_free(&reference);
        run_close(&run);
    }
}

static void test_vector_add(void **state)
{
    (void)state;
    test_basic(KERNEL_VECTOR_ADD);
}

static void test_matmul_naive(void **state)
{
    (void)state;
    test_basic(KERNEL_MATMUL_NAIVE);
}

static void test_matmul_shared(void **state)
{
    (void)state;
    test_basic(KERNEL_MATMUL_SHARED);
}

static void test_matmul_tiled(void **state)
{
    (void)state;
    test_basic(KERNEL_MATMUL_TILED);
}

static void test_softmax_naive(void **state)
{
    (void)state;
    test_basic(KERNEL_SOFTMAX_NAIVE);
}

static void test_softmax_safe(void **state)
{
    (void)state;
    test_basic(KERNEL_SOFTMAX_SAFE);
}

static void test_softmax_online(void **state)
{
    (void)state;
    test_basic(KERNEL_SOFTMAX_ONLINE);
}

/* A row of -inf gives zeros, and a row with one finite element gives 1 there. */
static void test_softmax_of_infinities(void **state)
{
    enum { COLS = 300 };
    float x[2 * COLS];
    (void)state;
    for (int i = 0; i < 2 * COLS; i++)
        x[i] = i == COLS + 277 ? -3.0e38f : -INFINITY;
    for (enum kernel kernel = KERNEL_SOFTMAX_SAFE; kernel <= KERNEL_SOFTMAX_ONLINE; kernel++) {
        struct run run = {.kernel = kernel, .rows = 2, .cols = COLS};
        open_or_fail(&run, 1);
        set_input(&run, "X", x);
        launch_twice(&run);
        for (int i = 0; i < 2 * COLS; i++)
            if (run.array[1].host[i] != (i == COLS + 277 ? 1.0f : 0.0f))
                fail_msg("%s: element %d is %g", run_text(&run), i,
                         (double)run.array[1].host[i]);
        run_close(&run);
    }
}

/* An argument is a pattern: test_results 'test_flash*'. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_add),     cmocka_unit_test(test_matmul_naive),
        cmocka_unit_test(test_matmul_shared),  cmocka_unit_test(test_matmul_tiled),
        cmocka_unit_test(test_softmax_naive),  cmocka_unit_test(test_softmax_safe),
        cmocka_unit_test(test_softmax_online), cmocka_unit_test(test_softmax_of_infinities),
        cmocka_unit_test(test_naive),          cmocka_unit_test(test_standard),
        cmocka_unit_test(test_flash1),         cmocka_unit_test(test_flash2),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
