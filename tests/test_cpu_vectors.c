/* The attention kernels' CUDA source on the CPU, on the stored problems with PyTorch's answers.
 *
 * Protects: results by the rule of common/tolerance.h, with every access watched: masks, rows
 * without keys, grouped heads, lengths that differ, large and very negative scores; and that a
 * correct kernel reports nothing. Softmaxes of rows of -inf.
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
#include "cuda/cpu/run.h"

static const struct variant cpu_variants[CPU_KERNELS] = {
    [CPU_NAIVE_ATTENTION] = {"naive_attention.cu", ALGORITHM_NAIVE, false},
    [CPU_STANDARD_ATTENTION] = {"standard_attention.cu", ALGORITHM_STANDARD, true},
    [CPU_FLASH1_FORWARD] = {"flash1_forward.cu", ALGORITHM_FLASH1, false},
    [CPU_FLASH2_FORWARD] = {"flash2_forward.cu", ALGORITHM_FLASH2, false},
};

static void open_or_fail(struct cpu_run *run)
{
    struct error error;
    if (cpu_run_open(run, &error))
        fail_msg("%s: %s", cpu_kernel_name(run->kernel), error.text);
}

static void set_input(const struct cpu_run *run, const char *name, const float *values)
{
    for (int n = 0; n < run->arrays; n++)
        if (strcmp(run->array[n].name, name) == 0)
            memcpy(run->array[n].memory, values, (size_t)run->array[n].count * sizeof *values);
}

static void launch_or_fail(const struct cpu_run *run)
{
    struct error error;
    if (cpu_run_launch(run, &(struct cpu_options){0}, &error))
        fail_msg("%s: %s", cpu_kernel_name(run->kernel), error.text);
}

static void check_stored(const struct stored *stored, enum cpu_kernel kernel)
{
    struct cpu_run run = {.kernel = kernel, .a = stored->problem.a};
    struct yardsticks yardsticks;
    run.a.tiled_gemm = kernel == CPU_STANDARD_ATTENTION;
    open_or_fail(&run);
    set_input(&run, "Q", stored->problem.q);
    set_input(&run, "K", stored->problem.k);
    set_input(&run, "V", stored->problem.v);
    launch_or_fail(&run);
    float *lse = allocate(count_lse(&run.a), sizeof *lse);
    cpu_run_lse(lse, &run);
    yardsticks_make(&yardsticks, &stored->problem);
    const struct answer answer = {.o = cpu_run_data(&run, "O"), .lse = lse};
    assert_right(&run.a, &cpu_variants[kernel], &answer, &yardsticks, &stored->truth);
    yardsticks_free(&yardsticks);
    free(lse);
    cpu_run_close(&run);
}

static void test_stored_problems(void **state)
{
    struct csv manifest;
    int runs = 0;
    (void)state;
    csv_read(&manifest, STORED_MANIFEST);
    for (int row = 0; row < manifest.rows; row++) {
        struct stored stored;
        stored_read(&stored, &manifest, row);
        for (int kernel = CPU_NAIVE_ATTENTION; kernel < CPU_KERNELS; kernel++, runs++)
            check_stored(&stored, (enum cpu_kernel)kernel);
        stored_free(&stored);
    }
    assert_true(runs > 0 && runs == 4 * manifest.rows);
    print_message("%d runs\n", runs);
    csv_free(&manifest);
}

/* A row of -inf gives zeros, and a row with one finite element gives 1 there. */
static void test_softmax_of_infinities(void **state)
{
    enum { COLS = 300, FINITE = COLS + 277 };
    float x[2 * COLS];
    (void)state;
    for (int i = 0; i < 2 * COLS; i++)
        x[i] = i == FINITE ? -3.0e38f : -INFINITY;
    for (int kernel = CPU_SOFTMAX_SAFE; kernel <= CPU_SOFTMAX_ONLINE; kernel++) {
        struct cpu_run run = {.kernel = (enum cpu_kernel)kernel, .rows = 2, .cols = COLS};
        open_or_fail(&run);
        set_input(&run, "X", x);
        launch_or_fail(&run);
        for (int i = 0; i < 2 * COLS; i++)
            assert_float_equal(cpu_run_data(&run, "Y")[i], i == FINITE ? 1.0f : 0.0f, 0);
        cpu_run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stored_problems),
                                       cmocka_unit_test(test_softmax_of_infinities)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
