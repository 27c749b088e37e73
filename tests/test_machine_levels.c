/* lessons/common/machine_levels: the levels of a machine as lesson 01 shows them.
 *
 * Protects: sizes and rates by hand for an H200 and an A100; lines of at most 80 columns for
 * every machine; figures that are not known; the machine that a GPU's name says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/machine_levels.h"

static void test_the_h200(void **state)
{
    char text[MACHINE_LEVELS_SIZE];
    (void)state;
    machine_levels_format(text, machine_find("H200"));
    /* 132 x 256 KiB, 67 TFLOP/s x 8 B; 132 x 228 KiB, 132 x 128 B x 1.98 GHz */
    assert_non_null(strstr(text, "registers  SM        256 KB      33 MB     536 TB/s"));
    assert_non_null(strstr(text, "SRAM       SM        228 KB   29.39 MB    33.5 TB/s"));
    assert_non_null(strstr(text, "L2         GPU        60 MB      60 MB      unknown"));
    assert_non_null(strstr(text, "HBM        GPU       141 GB     141 GB     4.8 TB/s"));
}

static void test_every_machine_fits(void **state)
{
    int count;
    const struct machine *table = machine_table(&count);
    (void)state;
    for (int n = 0; n < count; n++) {
        char text[MACHINE_LEVELS_SIZE];
        int lines = 0;
        machine_levels_format(text, &table[n]);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1, lines++)
            assert_true(strcspn(line, "\n") <= 80);
        assert_int_equal(lines, 5);
    }
}

static void test_unknown_figures(void **state)
{
    char text[MACHINE_LEVELS_SIZE];
    struct machine m = *machine_find("H200");
    (void)state;
    m.clock_hz = 0;
    m.l2_bytes = 0;
    assert_true(machine_sram_bytes_per_second(&m) == 0);
    machine_levels_format(text, &m);
    assert_non_null(strstr(text, "29.39 MB      unknown"));
    assert_non_null(strstr(text, "GPU      unknown    unknown"));
    assert_true(machine_sram_bytes_per_second(machine_find("Ascend-910B")) == 0);
}

static void test_sram_of_an_a100(void **state)
{
    const double rate = machine_sram_bytes_per_second(machine_find("A100-40GB"));
    (void)state;
    assert_true(rate > 19.4e12 && rate < 19.6e12); /* 108 x 128 B x 1.41 GHz */
}

static void test_names_of_gpus(void **state)
{
    (void)state;
    assert_ptr_equal(machine_of_gpu("NVIDIA H200"), machine_find("H200"));
    assert_null(machine_of_gpu("NVIDIA H200 NVL"));
    assert_null(machine_of_gpu(""));
    assert_null(machine_of_gpu("NVIDIA GeForce GTX 1080"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_h200),        cmocka_unit_test(test_every_machine_fits),
        cmocka_unit_test(test_unknown_figures), cmocka_unit_test(test_sram_of_an_a100),
        cmocka_unit_test(test_names_of_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
