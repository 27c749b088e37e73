/* What lesson 02 counts and models of matrix products, beside what can be said without it.
 *
 * Protects: a row of thread blocks, multiplied, is the whole product; DRAM reads are A and B
 * once where both fit L2, and grow where they do not; results against float64; a
 * transposition's wavefronts by the model, on an H200 and on the CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/kernel_twin.h"
#include "common/product_kernels.h"
#include "common/transpose_banks.h"

static void check_count(const struct cpu_run *run)
{
    struct product_counts counts;
    struct kernel_twin twin;
    struct error error = {0};
    assert_int_equal(product_count(&counts, run, machine_default(), &error), STATUS_OK);
    assert_int_equal(kernel_twin_count(&twin, run, machine_default(), &error), STATUS_OK);
    if (!account_equal(&counts.simulated, &twin.simulated) ||
        !account_equal(&counts.predicted, &twin.predicted))
        fail_msg("%s, %d x %d x %d, tile %d", cpu_kernel_name(run->kernel), run->rows,
                 run->cols, run->depth, run->tile);
}

/* Also where rows of blocks begin inside a sector, or the last is smaller. */
static void test_a_row_of_blocks_stands_for_all(void **state)
{
    static const int shapes[][3] = {{128, 128, 128}, {64, 100, 36}, {64, 3, 5},
                                    {32, 33, 1},     {100, 96, 64}, {63, 64, 64}};
    (void)state;
    for (int n = 0; n < PRODUCTS; n++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            const struct cpu_run run =
                product_run(&products[n], shapes[i][0], shapes[i][1], shapes[i][2]);
            check_count(&run);
        }
    }
}

static struct product_dram dram_of(const struct product *product, int N)
{
    const struct io_matmul shape = {N, N, N};
    struct product_dram dram;
    struct error error = {0};
    if (product_dram_predict(&dram, &product->blocks, &shape, machine_find("H200"), &error))
        fail_msg("%s", error.text);
    return dram;
}

static void test_dram(void **state)
{
    (void)state;
    for (int n = 0; n < PRODUCTS; n++) {
        const struct product_blocks *b = &products[n].blocks;
        const struct product_dram small = dram_of(&products[n], 512);
        assert_int_equal(small.l2_bytes, 4 * (INT64_C(512) * 512 * (512 / b->cols) +
                                              INT64_C(512) * 512 * (512 / b->rows)));
        const int64_t once = INT64_C(2) * 512 * 512 * 4;
        if (small.dram_bytes < once || small.dram_bytes > once + once / 10)
            fail_msg("product %d: %lld bytes", n, (long long)small.dram_bytes);
    }
    const struct product_dram large = dram_of(&products[PRODUCT_TILED_64], 4096);
    assert_true(large.dram_bytes > 3 * INT64_C(2) * 4096 * 4096 * 4);
    assert_true(large.dram_bytes < large.l2_bytes);
}

static void test_a_machine_without_l2_is_refused(void **state)
{
    const struct io_matmul shape = {64, 64, 64};
    struct machine machine = *machine_find("H200");
    struct product_dram dram;
    struct error error = {0};
    (void)state;
    machine.l2_bytes = 0;
    assert_int_equal(product_dram_predict(&dram, &products[0].blocks, &shape, &machine, &error),
                     STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "L2"));
}

static void test_errors_are_those_of_rounding(void **state)
{
    (void)state;
    for (int n = 0; n < PRODUCTS; n++) {
        const struct cpu_run run = product_run(&products[n], 33, 47, 70);
        double share = -1;
        struct error error = {0};
        assert_int_equal(product_error(&share, &run, machine_default(), &error), STATUS_OK);
        assert_true(share > 0 && share < 1);
    }
}

static void test_wavefronts_of_columns(void **state)
{
    static const int wavefronts[TRANSPOSE_LAYOUTS] = {32 * 32, 32, 32};
    (void)state;
    for (int layout = 0; layout < TRANSPOSE_LAYOUTS; layout++) {
        struct transpose_banks banks;
        struct error error = {0};
        assert_int_equal(transpose_banks_count(&banks, (enum transpose_layout)layout, &error),
                         STATUS_OK);
        assert_int_equal(banks.predicted, wavefronts[layout]);
        assert_int_equal(banks.measured, wavefronts[layout]);
        assert_int_equal(banks.on_cpu, wavefronts[layout]);
        assert_true(banks.transposed && banks.probes >= 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_row_of_blocks_stands_for_all),
        cmocka_unit_test(test_dram),
        cmocka_unit_test(test_a_machine_without_l2_is_refused),
        cmocka_unit_test(test_errors_are_those_of_rounding),
        cmocka_unit_test(test_wavefronts_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
