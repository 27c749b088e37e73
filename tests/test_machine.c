/* The table of machines.
 *
 * Protects: every machine that lessons name is there, with the figures that their claims were
 * made with; figures are whole, sourced and agree with each other and with what is said to be
 * derived from what; a figure is read as it is printed, and what is not one is not read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core_fixture.h"
#include "core/machine_figures.h"

static void test_machines_are_found_in_any_case(void **state)
{
    static const char *unknown[] = {"", "H", "H2000", "H200 ", " H200", "A100", "RTX4090"};
    int count;
    const struct machine *table = machine_table(&count);
    (void)state;
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        char upper[64], lower[64];
        assert_true(strlen(table[i].name) < sizeof upper);
        for (size_t k = 0; k <= strlen(table[i].name); k++) {
            upper[k] = (char)toupper((unsigned char)table[i].name[k]);
            lower[k] = (char)tolower((unsigned char)table[i].name[k]);
        }
        assert_ptr_equal(machine_find(table[i].name), &table[i]); /* so names differ */
        assert_ptr_equal(machine_find(upper), &table[i]);
        assert_ptr_equal(machine_find(lower), &table[i]);
    }
    for (size_t i = 0; i < LENGTH(unknown); i++)
        assert_null(machine_find(unknown[i]));
    assert_string_equal(machine_default()->name, "H200");
    assert_ptr_equal(machine_default(), machine_find("h200"));
}

/* Written a second time, from the sources. The last columns are per SM and clock: FLOPs of the
 * fp32 units and of the tensor cores on fp16, by the whitepapers; 0: nothing to compare. */
static const struct {
    const char *name;
    int sms, hbm_gb, hbm_gb_per_second, l2_mb, sram_kb, block_kb;
    double tensor, fp32;
    int warps, blocks, fp32_a_clock, tensor_a_clock;
} known[] = {
    {"T4", 40, 16, 320, 4, 64, 64, 65, 8.1, 32, 16, 128, 1024},
    {"V100", 80, 32, 900, 6, 96, 96, 125, 15.7, 64, 32, 128, 1024},
    {"A100-40GB", 108, 40, 1555, 40, 164, 163, 312, 19.5, 64, 32, 128, 2048},
    {"A100-80GB", 108, 80, 2039, 40, 164, 163, 312, 19.5, 64, 32, 128, 2048},
    {"RTX-3090", 82, 24, 936, 6, 100, 99, 71.2, 35.6, 48, 16, 256, 512},
    {"RTX-4090", 128, 24, 1008, 72, 100, 99, 165, 82.6, 48, 24, 256, 512},
    {"H100", 132, 80, 3350, 50, 228, 227, 989, 67, 64, 32, 256, 4096},
    {"H200", 132, 141, 4800, 60, 228, 227, 989, 67, 64, 32, 256, 4096},
    {"B200", 148, 180, 7670, 126, 228, 227, 2250, 80, 64, 32, 0, 8192},
    {"teaching", 4, 1, 100, 1, 48, 48, 1, 0.1, 32, 8, 0, 0},
};

static void test_known_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++) {
        const struct machine *m = machine_find(known[i].name);
        if (!m)
            fail_msg("there is no %s", known[i].name);
        assert_int_equal(m->sms, known[i].sms);
        assert_int_equal(m->hbm_bytes, known[i].hbm_gb * INT64_C(1000000000));
        assert_true(m->hbm_bytes_per_second == known[i].hbm_gb_per_second * 1e9);
        assert_int_equal(m->l2_bytes, known[i].l2_mb << 20);
        assert_int_equal(m->sram_bytes_per_sm, known[i].sram_kb << 10);
        assert_int_equal(m->sram_bytes_per_block, known[i].block_kb << 10);
        assert_int_equal(m->register_bytes, 65536 * 4);
        assert_true(m->tensor_flops == round(known[i].tensor * 1e12));
        assert_true(m->fp32_flops == round(known[i].fp32 * 1e12));
        assert_int_equal(m->warps_per_sm, known[i].warps);
        assert_int_equal(m->threads_per_sm, known[i].warps * 32);
        assert_int_equal(m->blocks_per_sm, known[i].blocks);
        assert_int_equal(m->threads_per_block, 1024);
        assert_int_equal(m->l2_line_bytes, 128);
        assert_int_equal(m->l2_sector_bytes, 32);
        assert_in_range(m->l2_partitions, 0, 2); /* 0: not known to be divided */
    }
}

/* Fails unless got is want, but for the rounding of what is printed on datasheets. */
static void assert_near(double got, double want, const char *name, const char *what)
{
    if (!(fabs(got - want) <= 0.006 * want))
        fail_msg("%s: %s is %g, derived %g", name, what, got, want);
}

static void test_derived_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++) {
        const struct machine *m = machine_find(known[i].name);
        const double tensor_hz = m->tensor_clock_hz > 0 ? m->tensor_clock_hz : m->clock_hz;
        assert_near(m->exp2_f32_per_second, 16 * m->sms * tensor_hz, m->name, "exp2_f32");
        if (known[i].fp32_a_clock > 0)
            assert_near(m->fp32_flops, known[i].fp32_a_clock * m->sms * m->clock_hz, m->name,
                        "fp32");
        if (known[i].tensor_a_clock > 0)
            assert_near(m->tensor_flops, known[i].tensor_a_clock * m->sms * tensor_hz, m->name,
                        "tensor_f16");
    }
    static const struct {
        const char *name;
        double bytes_a_clock;
    } l2[] = {{"V100", 2048}, {"A100-40GB", 5120}, {"A100-80GB", 5120}};
    for (size_t i = 0; i < LENGTH(l2); i++) {
        const struct machine *m = machine_find(l2[i].name);
        assert_near(m->l2_bytes_per_second, l2[i].bytes_a_clock * m->clock_hz, m->name,
                    "l2_bandwidth");
    }
    const struct machine *ascend = machine_find("Ascend-910B");
    assert_non_null(ascend);
    assert_near(ascend->tensor_flops, 24 * 8192 * 1.8e9, "Ascend-910B", "tensor_f16");
    assert_near(ascend->fp32_flops, 48 * 128 * 1.8e9, "Ascend-910B", "fp32");
    assert_int_equal(ascend->register_bytes, (64 + 64 + 128) << 10);
    assert_int_equal(ascend->warps_per_sm, 0); /* unknown, as it has none */
}

static void test_figures_are_sound(void **state)
{
    int count;
    const struct machine *m = machine_table(&count);
    (void)state;
    assert_int_equal(count, LENGTH(known) + 1); /* and the Ascend */
    for (const struct machine *end = m + count; m < end; m++) {
        for (int f = 0; f < FIGURE_COUNT; f++) {
            const struct machine_figure_info *info = &machine_figures[f];
            const double value = machine_figure_get(m, (enum machine_figure)f);
            if (!(value > 0 && value <= info->most) && !(value == 0 && !info->required) &&
                !(value == MACHINE_NONE && info->may_be_none))
                fail_msg("%s: %s is %g", m->name, info->key, value);
            /* So that a figure and its source fit a line of 80 columns. */
            if (strlen(m->source[f]) > 44 || (value != 0) != (*m->source[f] != '\0'))
                fail_msg("%s: %s is from \"%s\"", m->name, info->key, m->source[f]);
        }
        assert_true(m->sram_bytes_per_block <= m->sram_bytes_per_sm);
        assert_true(m->sram_bytes_per_sm < m->l2_bytes && m->l2_bytes < m->hbm_bytes);
        assert_true(m->fp32_flops < m->tensor_flops);
        assert_true(strlen(m->note) > 0);
    }
}

static void test_figures_are_read_as_they_are_printed(void **state)
{
    int count;
    const struct machine *m = machine_table(&count);
    (void)state;
    for (const struct machine *end = m + count; m < end; m++)
        for (int i = 0; i < FIGURE_COUNT; i++) {
            const enum machine_figure f = (enum machine_figure)i;
            char text[FIGURE_TEXT_SIZE];
            double value = -7;
            const double want = machine_figure_get(m, f);
            const bool read =
                machine_figure_parse(&value, f, machine_figure_format(text, m, f));
            if (read != (want != 0) || value != (read ? want : -7))
                fail_msg("%s: %s = %s is read as %g", m->name, machine_figures[f].key, text,
                         value);
        }
}

static const struct {
    enum machine_figure f;
    const char *text;
    double value; /* 0: refused */
    const char *printed;
} values[] = {
    {FIGURE_SMS, "132", 132, "132"},
    {FIGURE_SMS, "1.0", 1, "1"},
    {FIGURE_SMS, "65536", 65536, "65536"},
    {FIGURE_SMS, "65537", 0, NULL},
    {FIGURE_SMS, "0", 0, NULL},
    {FIGURE_SMS, "-1", 0, NULL},
    {FIGURE_SMS, "+1", 0, NULL},
    {FIGURE_SMS, "1.5", 0, NULL},
    {FIGURE_SMS, "1e2", 0, NULL},
    {FIGURE_SMS, "0x10", 0, NULL},
    {FIGURE_SMS, "inf", 0, NULL},
    {FIGURE_SMS, "nan", 0, NULL},
    {FIGURE_SMS, "none", 0, NULL},
    {FIGURE_SMS, "unknown", 0, NULL},
    {FIGURE_SMS, "", 0, NULL},
    {FIGURE_SMS, "4 SMs", 0, NULL},
    {FIGURE_SMS, "1.", 0, NULL},
    {FIGURE_SMS, ".5", 0, NULL},
    {FIGURE_SMS, "0000000000000000000001", 0, NULL},
    {FIGURE_L2_SIZE, "50 MiB", 50 * 0x1p20, "50 MiB"},
    {FIGURE_L2_SIZE, "0.5MiB", 0x1p19, "512 KiB"},
    {FIGURE_L2_SIZE, "2 MB", 2e6, "2 MB"},
    {FIGURE_L2_SIZE, "1025 B", 1025, "1025 B"},
    {FIGURE_L2_SIZE, "0.5 B", 0, NULL},
    {FIGURE_L2_SIZE, "1.001 GB", 1001e6, "1001 MB"},
    {FIGURE_L2_SIZE, "1.0000000001 GB", 0, NULL},
    {FIGURE_L2_SIZE, "50", 0, NULL},
    {FIGURE_L2_SIZE, "50 KB", 0, NULL}, /* 1000 or 1024? */
    {FIGURE_L2_SIZE, "50 MiB x", 0, NULL},
    {FIGURE_L2_SIZE, "50 mib", 0, NULL},
    {FIGURE_HBM_SIZE, "64 GiB", 64 * 0x1p30, "64 GiB"},
    {FIGURE_HBM_SIZE, "1001 TB", 0, NULL},
    {FIGURE_SRAM_PER_SM, "1 GiB", 0x1p30, "1 GiB"},
    {FIGURE_SRAM_PER_SM, "1073741825 B", 0, NULL},
    {FIGURE_CLOCK, "1410 MHz", 1.41e9, "1.41 GHz"},
    {FIGURE_CLOCK, "1.41 kHz", 0, NULL},
    {FIGURE_CLOCK, "999999 Hz", 999999, "0.999999 MHz"},
    {FIGURE_CLOCK, "1 MHz", 1e6, "0.001 GHz"},
    {FIGURE_NVLINK, "1.8 TB/s", 1.8e12, "1800 GB/s"},
    {FIGURE_NVLINK, "none", MACHINE_NONE, "none"},
    {FIGURE_NVLINK, "0 GB/s", 0, NULL},
    {FIGURE_NVLINK, "0.0000000001 GB/s", 0, NULL},
    {FIGURE_FP32, "100 GFLOP/s", 1e11, "0.1 TFLOP/s"},
    {FIGURE_FP32, "100 TB/s", 0, NULL},
    {FIGURE_FP32, "1.5 GFLOP/s", 1.5e9, "0.0015 TFLOP/s"},
    {FIGURE_FP32, "0.000001234567 TFLOP/s", 1234567, "0.001234567 GFLOP/s"},
    {FIGURE_FP32, "0.000000001234 TFLOP/s", 1234, "1234 FLOP/s"},
    {FIGURE_FP32, "123456789.012345 TFLOP/s", 123456789012345e6, "123456789.012345 TFLOP/s"},
    {FIGURE_FP32, "1234567890123456 FLOP/s", 0, NULL},
    {FIGURE_EXP2_F32, "3.9 Top/s", 3.9e12, "3.9 Top/s"},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(values); i++) {
        struct machine m = {.sms = 0};
        char printed[FIGURE_TEXT_SIZE];
        double value = 0;
        const bool read = machine_figure_parse(&value, values[i].f, values[i].text);
        if (read != (values[i].value != 0) || value != values[i].value)
            fail_msg("%s \"%s\" is read as %g", machine_figures[values[i].f].key,
                     values[i].text, value);
        if (!read)
            continue;
        machine_figure_set(&m, values[i].f, value);
        assert_true(machine_figure_get(&m, values[i].f) == value);
        assert_string_equal(machine_figure_format(printed, &m, values[i].f), values[i].printed);
    }
}

/* Each key sets a field of its own. */
static void test_figures_do_not_share_fields(void **state)
{
    struct machine m = {.sms = 0};
    (void)state;
    for (int f = 0; f < FIGURE_COUNT; f++)
        machine_figure_set(&m, (enum machine_figure)f, 100 + f);
    for (int f = 0; f < FIGURE_COUNT; f++) {
        assert_true(machine_figure_get(&m, (enum machine_figure)f) == 100 + f);
        for (int g = 0; g < f; g++)
            assert_string_not_equal(machine_figures[f].key, machine_figures[g].key);
    }
    assert_int_equal(m.register_bytes, 100 + FIGURE_REGISTERS_PER_SM);
    assert_true(m.tensor_flops == 100 + FIGURE_TENSOR_F16);
    assert_true(m.pcie_bytes_per_second == 100 + FIGURE_PCIE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machines_are_found_in_any_case),
        cmocka_unit_test(test_known_figures),
        cmocka_unit_test(test_derived_figures),
        cmocka_unit_test(test_figures_are_sound),
        cmocka_unit_test(test_figures_are_read_as_they_are_printed),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_figures_do_not_share_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
