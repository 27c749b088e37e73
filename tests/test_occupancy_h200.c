/* Occupancy beside what the driver of an NVIDIA H200 says (cuda/results/h200_occupancy.csv, by
 * make gpu-occupancy).
 *
 * Protects: the model's blocks an SM are the driver's in every row: each compiled size of each
 * of our kernels, and kernels of 8 to 250 registers with blocks of 32 to 1024 threads and 0 to
 * 227 KB of dynamic shared memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/csv.h"
#include "models/occupancy.h"

#define OCCUPANCY "../../cuda/results/h200_occupancy.csv" /* from tests/data */

static void test_every_row_of_the_driver(void **state)
{
    static struct csv table;
    int limited_by[OCCUPANCY_LIMITS] = {0};
    (void)state;
    csv_read(&table, OCCUPANCY);
    for (int row = 0; row < table.rows; row++) {
        const struct block_needs needs = {
            .threads = (int)csv_int(&table, row, "threads"),
            .registers = (int)csv_int(&table, row, "registers"),
            .shared_bytes =
                csv_int(&table, row, "static_shared") + csv_int(&table, row, "dynamic_shared"),
        };
        const struct occupancy o = occupancy_of(sm_limits_of_machine("H200"), &needs);
        if (o.blocks != csv_int(&table, row, "blocks"))
            fail_msg("row %d, %s, %d threads, %d registers, %d bytes of shared memory: the "
                     "driver says %s blocks, predicted %d, limited by %s",
                     row, csv_text(&table, row, "kernel"), needs.threads, needs.registers,
                     (int)needs.shared_bytes, csv_text(&table, row, "blocks"), o.blocks,
                     occupancy_limit_name(o.limit));
        limited_by[o.limit]++;
    }
    for (int k = 0; k < OCCUPANCY_LIMITS; k++)
        if (limited_by[k] < 4)
            fail_msg("%s limits only %d rows", occupancy_limit_name((enum occupancy_limit)k),
                     limited_by[k]);
    csv_free(&table);
}

static void test_every_kernel_has_a_row(void **state)
{
    static const char *const kernels[] = {"vector_add",     "matmul_naive",    "matmul_shared",
                                          "matmul_tiled",   "softmax_naive",   "softmax_safe",
                                          "softmax_online", "naive_attention", "flash1_forward",
                                          "flash2_forward"};
    static struct csv table;
    (void)state;
    csv_read(&table, OCCUPANCY);
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
        int found = 0;
        for (int row = 0; row < table.rows; row++)
            found += strcmp(csv_text(&table, row, "kernel"), kernels[k]) == 0;
        if (found == 0)
            fail_msg("%s has no row", kernels[k]);
    }
    csv_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_of_the_driver),
        cmocka_unit_test(test_every_kernel_has_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
