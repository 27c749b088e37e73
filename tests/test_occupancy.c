/* Occupancy: the blocks that an SM holds at once.
 *
 * Protects: equality in every row with the CUDA Toolkit's calculator for each compute
 * capability (data/occupancy_calculator.csv); known cases; every machine has its limits, which
 * agree with core/machine.h. What a driver says: test_occupancy_h200.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/csv.h"
#include "core/machine.h"
#include "models/occupancy.h"

static void test_every_block_of_the_calculator(void **state)
{
    static struct csv table;
    int limited_by[OCCUPANCY_LIMITS] = {0};
    (void)state;
    csv_read(&table, "occupancy_calculator.csv");
    for (int row = 0; row < table.rows; row++) {
        const struct sm_limits *sm = sm_limits_find((int)csv_int(&table, row, "major"),
                                                    (int)csv_int(&table, row, "minor"));
        const struct block_needs needs = {
            .threads = (int)csv_int(&table, row, "threads"),
            .registers = (int)csv_int(&table, row, "registers"),
            .shared_bytes = csv_int(&table, row, "shared"),
        };
        assert_non_null(sm);
        const struct occupancy o = occupancy_of(sm, &needs);
        if (o.blocks != csv_int(&table, row, "blocks") ||
            o.by[OCCUPANCY_WARPS] != csv_int(&table, row, "by_warps") ||
            o.by[OCCUPANCY_REGISTERS] != csv_int(&table, row, "by_registers") ||
            o.by[OCCUPANCY_SHARED] != csv_int(&table, row, "by_shared"))
            fail_msg("row %d: %d blocks; by warps %d, registers %d, shared memory %d", row,
                     o.blocks, o.by[OCCUPANCY_WARPS], o.by[OCCUPANCY_REGISTERS],
                     o.by[OCCUPANCY_SHARED]);
        limited_by[o.limit]++;
    }
    for (int k = 0; k < OCCUPANCY_LIMITS; k++)
        if (limited_by[k] < 4)
            fail_msg("%s limits only %d rows", occupancy_limit_name((enum occupancy_limit)k),
                     limited_by[k]);
    csv_free(&table);
}

/* On an H200. */
static const struct {
    int threads, registers;
    int64_t shared_bytes;
    int blocks, warps;
    enum occupancy_limit limit;
} cases[] = {
    {32, 16, 0, 32, 32, OCCUPANCY_BLOCKS},     {1024, 32, 0, 2, 64, OCCUPANCY_WARPS},
    {1024, 33, 0, 1, 32, OCCUPANCY_REGISTERS}, /* 40 a thread are given out */
    {1024, 65, 0, 0, 0, OCCUPANCY_REGISTERS},  {256, 128, 0, 2, 16, OCCUPANCY_REGISTERS},
    {160, 168, 0, 2, 10, OCCUPANCY_REGISTERS}, /* 12 warps by registers, 5 each */
    {288, 224, 0, 0, 0, OCCUPANCY_REGISTERS},  /* 9 warps count as 12 */
    {128, 32, 232448, 1, 4, OCCUPANCY_SHARED}, {128, 32, 232449, 0, 0, OCCUPANCY_SHARED},
    {128, 32, 115712, 2, 8, OCCUPANCY_SHARED}, /* 113 KB and the 1 KB reserved */
    {128, 32, 115713, 1, 4, OCCUPANCY_SHARED}, {1025, 16, 0, 0, 0, OCCUPANCY_WARPS},
    {64, 256, 0, 0, 0, OCCUPANCY_REGISTERS},
};

static void test_known_blocks(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const struct block_needs needs = {cases[n].threads, cases[n].registers,
                                          cases[n].shared_bytes};
        const struct occupancy o = occupancy_of(sm_limits_of_machine("h200"), &needs);
        if (o.blocks != cases[n].blocks || o.warps != cases[n].warps ||
            o.limit != cases[n].limit)
            fail_msg("case %zu: %d blocks, %d warps, limited by %s", n, o.blocks, o.warps,
                     occupancy_limit_name(o.limit));
        assert_int_equal(o.by[o.limit], o.blocks);
    }
}

static void test_units_of_a_block(void **state)
{
    const struct block_needs needs = {100, 33, 1000};
    (void)state;
    const struct occupancy o = occupancy_of(sm_limits_find(9, 0), &needs);
    assert_int_equal(o.registers_allocated, 4 * 1280); /* 33 * 32 in units of 256 */
    assert_int_equal(o.shared_allocated, 2048);        /* 1024 + 1000 in units of 128 */
}

static void test_every_machine_has_limits(void **state)
{
    int count;
    const struct machine *machines = machine_table(&count);
    (void)state;
    for (int i = 0; i < count; i++) {
        const struct sm_limits *sm = sm_limits_of_machine(machines[i].name);
        if (strcmp(machines[i].name, "Ascend-910B") == 0) { /* no CUDA: no such limits */
            assert_null(sm);
            continue;
        }
        if (!sm)
            fail_msg("%s has no limits", machines[i].name);
        assert_int_equal(sm->threads, machines[i].warps_per_sm * WARP_THREADS);
        assert_int_equal(sm->shared_bytes, machines[i].sram_bytes_per_sm);
        assert_int_equal(sm->shared_per_block, machines[i].sram_bytes_per_block);
        assert_int_equal(sm->registers * INT64_C(4), machines[i].register_bytes);
    }
    assert_null(sm_limits_of_machine("P100"));
    assert_null(sm_limits_find(6, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_of_the_calculator),
        cmocka_unit_test(test_known_blocks),
        cmocka_unit_test(test_units_of_a_block),
        cmocka_unit_test(test_every_machine_has_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
