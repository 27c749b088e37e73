/* The model of time (models/time), the work of our kernels (models/kernel_work), and both
 * against times of an H200 (lessons/common/time_rows).
 *
 * Protects: bounds and estimates on machines of round numbers; passes over shared memory, equal
 * to the hardware's counters; and the errors that docs/times.md states, kind by kind: their
 * median, their worst, and how many rows lie within a quarter. The bounds are those numbers and
 * a percent or two, so that a better model passes and a worse one does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/csv.h"
#include "common/time_rows.h"
#include "models/kernel_work.h"

#define COUNTERS "../../cuda/results/h200_counters.csv" /* from tests/data */
#define RATES "../../cuda/results/h200_rates.csv"
#define OCCUPANCY "../../cuda/results/h200_occupancy.csv"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want)))
        fail_msg("%.9g, not %.9g", got, want);
}

/* 10 SMs of 1 GHz; issues 1e12 a second, exp2 1e11; HBM 1e12 bytes. */
static struct machine round_machine(void)
{
    return (struct machine){.name = "round",
                            .sms = 10,
                            .clock_hz = 1e9,
                            .fp32_flops = 2e12,
                            .exp2_f32_per_second = 1e11,
                            .hbm_bytes_per_second = 1e12};
}

/* Issue 1 ms, exp2 2 ms, L1 0.5 ms, HBM 3 ms. */
static struct time_work round_work(enum time_overlap overlap)
{
    return (struct time_work){
        .overlap = overlap,
        .amount = {[TIME_ISSUE] = 1e9, [TIME_EXP2] = 2e8, [TIME_L1] = 5e6, [TIME_HBM] = 3e9},
        .blocks = 1000,
        .blocks_per_sm = 1,
        .steps = 1000,
        .most_steps = 1};
}

static void test_units_add_up_or_overlap(void **state)
{
    const struct machine m = round_machine();
    struct time_work full = round_work(OVERLAP_FULL), none = round_work(OVERLAP_NONE);
    struct time_work half = round_work(OVERLAP_HALF);
    (void)state;
    struct time_estimate t = time_of(&m, &full);
    assert_near(t.unit[TIME_ISSUE], 1e-3, 1e-9);
    assert_near(t.unit[TIME_EXP2], 2e-3, 1e-9);
    assert_near(t.unit[TIME_L1], 0.5e-3, 1e-9);
    assert_near(t.unit[TIME_HBM], 3e-3, 1e-9);
    assert_int_equal(t.longest, TIME_HBM);
    assert_near(t.estimate - time_launch_seconds, 3e-3, 1e-9);
    t = time_of(&m, &none); /* units of the SM: 3.5 ms, longer than HBM beside them */
    assert_near(t.estimate - time_launch_seconds, 3.5e-3, 1e-9);
    t = time_of(&m, &half);
    assert_near(t.estimate - time_launch_seconds, 3.25e-3, 1e-9);
    none.amount[TIME_HBM] = 4e9;
    t = time_of(&m, &none);
    assert_near(t.estimate - time_launch_seconds, 4e-3, 1e-9);
}

/* 11 blocks on 10 SMs take as long as 20 would. */
static void test_uneven_blocks(void **state)
{
    const struct machine m = round_machine();
    struct time_work w = round_work(OVERLAP_NONE);
    (void)state;
    w.amount[TIME_HBM] = 0;
    w.blocks = w.steps = 11;
    w.blocks_per_sm = 2;
    assert_near(time_of(&m, &w).in_turn, 3.5e-3 * 20 / 11, 1e-9);
    w.blocks = w.steps = 21; /* more than are resident: the next takes the first free place */
    assert_near(time_of(&m, &w).in_turn, 3.5e-3, 1e-9);
}

/* One block of 100 steps of 1 us and nothing to compute; then 40 blocks, two resident on each
 * of 10 SMs: two rounds. */
static void test_latency_comes_in_rounds(void **state)
{
    const struct machine m = round_machine();
    struct time_work w = {.overlap = OVERLAP_NONE,
                          .blocks = 1,
                          .blocks_per_sm = 2,
                          .steps = 100,
                          .most_steps = 100,
                          .step_clocks = 1000};
    (void)state;
    assert_near(time_of(&m, &w).alone, 100e-6, 1e-9);
    w.blocks = 40;
    w.steps = 4000;
    assert_near(time_of(&m, &w).alone, 200e-6, 1e-9);
    assert_near(time_of(&m, &w).estimate, 200e-6 + time_launch_seconds, 1e-9);
}

/* Rows of the counter table whose tiles are full and whose rows are multiples of 32 elements:
 * the closed forms of shared memory's passes and of requests to global memory. */
static double shared_passes(const struct csv *table, int row, const char *kernel)
{
    const struct machine *h200 = machine_find("H200");
    struct time_work work[KERNEL_WORK_LAUNCHES];
    double passes = 0;
    int launches = 1;
    if (strcmp(kernel, "matmul_tiled") == 0) {
        const struct io_matmul shape = {(int)csv_int(table, row, "rows"),
                                        (int)csv_int(table, row, "cols"),
                                        (int)csv_int(table, row, "depth")};
        work[0] = kernel_work_matmul_tiled(&shape, (int)csv_int(table, row, "tile"), h200);
    } else {
        const struct attention a = {.batch = (int)csv_int(table, row, "batch"),
                                    .heads_q = (int)csv_int(table, row, "heads_q"),
                                    .heads_kv = (int)csv_int(table, row, "heads_kv"),
                                    .seqlen_q = (int)csv_int(table, row, "seqlen_q"),
                                    .seqlen_k = (int)csv_int(table, row, "seqlen_k"),
                                    .head_dim = (int)csv_int(table, row, "head_dim"),
                                    .head_dim_v = (int)csv_int(table, row, "head_dim_v"),
                                    .block_q = (int)csv_int(table, row, "block_q"),
                                    .block_k = (int)csv_int(table, row, "block_k"),
                                    .tiled_gemm = true};
        launches =
            kernel_work_attention(work,
                                  strcmp(kernel, "flash1_forward") == 0   ? ALGORITHM_FLASH1
                                  : strcmp(kernel, "flash2_forward") == 0 ? ALGORITHM_FLASH2
                                                                          : ALGORITHM_STANDARD,
                                  &a, h200);
    }
    for (int i = 0; i < launches; i++)
        passes += work[i].amount[TIME_L1];
    /* a request of 32 lanes to global memory is one pass as well: four sectors */
    return passes - (csv_double(table, row, "measured_load") +
                     csv_double(table, row, "measured_store")) /
                        4;
}

/* The largest run of each tiled kernel. */
static void test_passes_are_those_counted(void **state)
{
    static const struct {
        const char *kernel, *seqlen, *rows;
    } large[] = {{"flash2_forward", "4096", ""},
                 {"flash1_forward", "4096", ""},
                 {"standard_attention", "4096", ""},
                 {"matmul_tiled", "", "2048"}};
    static struct csv table;
    (void)state;
    csv_read(&table, COUNTERS);
    for (size_t k = 0; k < LENGTH(large); k++) {
        int found = 0;
        for (int row = 0; row < table.rows; row++) {
            if (strcmp(csv_text(&table, row, "kernel"), large[k].kernel) != 0 ||
                strcmp(csv_text(&table, row, "seqlen_q"), large[k].seqlen) != 0 ||
                strcmp(csv_text(&table, row, "rows"), large[k].rows) != 0)
                continue;
            const double counted = csv_double(&table, row, "shared_load_wavefronts") +
                                   csv_double(&table, row, "shared_store_wavefronts");
            const double modelled = shared_passes(&table, row, large[k].kernel);
            print_message("%-20s passes counted %.0f, modelled %.0f\n", large[k].kernel,
                          counted, modelled);
            assert_true(modelled == counted);
            found++;
        }
        assert_true(found > 0);
    }
    csv_free(&table);
}

/* Registers and shared memory are those that the driver knew: so are the resident blocks. */
static void test_resident_blocks_are_the_drivers(void **state)
{
    static struct csv table;
    static const int head_dims[] = {8, 40, 64, 80, 128, 192, 256};
    int row = 0, compared = 0;
    (void)state;
    csv_read(&table, OCCUPANCY);
    while (strcmp(csv_text(&table, row, "kernel"), "flash2_forward") != 0)
        row++;
    for (int block = 16; block <= 64; block *= 2)
        for (size_t i = 0; i < LENGTH(head_dims); i++, row++) {
            const struct attention a = {.batch = 1,
                                        .heads_q = 1,
                                        .heads_kv = 1,
                                        .seqlen_q = 64,
                                        .seqlen_k = 64,
                                        .head_dim = head_dims[i],
                                        .head_dim_v = head_dims[i],
                                        .block_q = block,
                                        .block_k = block};
            struct time_work work[KERNEL_WORK_LAUNCHES];
            assert_string_equal(csv_text(&table, row, "kernel"), "flash2_forward");
            kernel_work_attention(work, ALGORITHM_FLASH2, &a, machine_find("H200"));
            assert_int_equal(work[0].blocks_per_sm, csv_int(&table, row, "blocks"));
            compared++;
        }
    assert_int_equal(compared, 21);
    csv_free(&table);
}

/* What the units did when nothing else was asked of them: near to the model's rates. Three runs
 * gave the tensor cores 658 to 693 TFLOP/s: their clock is what the GPU's power allows. */
static void test_rates_are_those_measured(void **state)
{
    static const struct {
        const char *probe;
        enum time_unit unit;
        double least, most; /* measured over the model's */
    } rates[] = {{"fp32", TIME_ISSUE, 0.93, 1},
                 {"exp2", TIME_EXP2, 1, 1.09}, /* at 1.98 GHz; the table has the tensor clock */
                 {"L2 16 MiB", TIME_L2, 0.99, 1.01},
                 {"L2 8 MiB", TIME_L2, 0.9, 1},
                 {"HBM 4 GiB", TIME_HBM, 0.9, 1},
                 {"tensor fp16 cuBLAS 8192^3", TIME_TENSOR, 0.8, 1}};
    static struct csv table;
    const struct machine *h200 = machine_find("H200");
    (void)state;
    csv_read(&table, RATES);
    for (size_t i = 0; i < LENGTH(rates); i++) {
        int row = 0;
        while (row < table.rows && strcmp(csv_text(&table, row, "probe"), rates[i].probe) != 0)
            row++;
        assert_true(row < table.rows);
        const double ratio = csv_double(&table, row, "a_second") /
                             time_rate(h200, rates[i].unit, ROOFLINE_TENSOR_F16);
        if (!(ratio >= rates[i].least && ratio <= rates[i].most))
            fail_msg("%s: %.3f of the model's rate", rates[i].probe, ratio);
    }
    csv_free(&table);
}

/* Of a kind: rows at least, the median at most, the worst at most, and how many within 25 %. */
static const struct {
    enum time_kind kind;
    int rows;
    double median, worst;
    int within_quarter;
} documented[] = {
    {TIME_KIND_STREAM, 10, 0.12, 0.35, 8}, {TIME_KIND_ELEMENT, 5, 0.19, 0.75, 4},
    {TIME_KIND_FULL, 44, 0.16, 0.63, 34},  {TIME_KIND_THIN, 125, 0.11, 0.68, 105},
    {TIME_KIND_ROW, 44, 0.13, 0.75, 37},   {TIME_KIND_FA2, 15, 0.14, 0.28, 14},
    {TIME_KIND_CUDNN, 15, 0.12, 0.30, 13}, {TIME_KINDS, 258, 0.13, 0.75, 215},
};

static void test_errors_are_those_documented(void **state)
{
    struct time_rows rows;
    struct error error;
    (void)state;
    if (time_rows_read(&rows, &error))
        fail_msg("%s", error.text);
    for (size_t i = 0; i < LENGTH(documented); i++) {
        const struct time_errors e = time_rows_errors(&rows, documented[i].kind);
        print_message(
            "%-20s %3d rows: median %4.1f %%, worst %+5.1f %% (%s), %d within 25 %%\n",
            time_kind_name(documented[i].kind), e.rows, 100 * e.median, 100 * e.worst,
            e.where ? e.where->kernel : "-", e.within_quarter);
        assert_int_equal(e.rows, documented[i].rows);
        assert_true(e.median <= documented[i].median);
        assert_true(fabs(e.worst) <= documented[i].worst);
        assert_true(e.within_quarter >= documented[i].within_quarter);
    }
    time_rows_free(&rows);
}

/* Twice the time, or NaN, would not pass for these errors. */
static void test_errors_are_noticed(void **state)
{
    struct time_rows rows;
    struct error error;
    (void)state;
    assert_false(time_rows_read(&rows, &error));
    for (int i = 0; i < rows.count; i++)
        rows.row[i].measured *= 2;
    const struct time_errors e = time_rows_errors(&rows, TIME_KINDS);
    assert_true(e.median > 0.4);
    time_rows_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_add_up_or_overlap),
        cmocka_unit_test(test_uneven_blocks),
        cmocka_unit_test(test_latency_comes_in_rounds),
        cmocka_unit_test(test_passes_are_those_counted),
        cmocka_unit_test(test_resident_blocks_are_the_drivers),
        cmocka_unit_test(test_rates_are_those_measured),
        cmocka_unit_test(test_errors_are_those_documented),
        cmocka_unit_test(test_errors_are_noticed),
    };
    return cmocka_run_group_tests_name("time", tests, NULL, NULL);
}
