/* The CUDA kernels, compiled for the CPU and observed access by access, against the counters
 * that an NVIDIA H200 recorded while it ran the same files (cuda/results/h200_counters.csv).
 *
 * Protects: load and store sectors of every recorded launch that is not too large, of all nine
 * kernels, are the measured ones; results are those of float64; accesses outside the arrays and
 * reads of what nobody has written stop the program with the source line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/csv.h"
#include "common/fault.h"
#include "common/problem.h"
#include "common/reference.h"
#include "cpu/run.h"

#define COUNTERS "../../cuda/results/h200_counters.csv" /* from tests/data */

/* The rows that run: up to so many accesses of single threads. */
enum { MOST_ACCESSES = 1 << 21 };

/* rows: how many of the file are small enough, so that none goes missing. */
static const struct {
    const char *name;
    int rows;
} kernels[KERNELS] = {
    [ADD] = {"vector_add", 43},
    [MATMUL] = {"matmul_naive", 25},
    [TILED] = {"matmul_tiled", 42},
    [SAFE] = {"softmax_safe", 42},
    [ONLINE] = {"softmax_online", 42},
    [NAIVE] = {"naive_attention", 24},
    [STANDARD] = {"standard_attention", 41},
    [FLASH1] = {"flash1_forward", 45},
    [FLASH2] = {"flash2_forward", 48},
};

static int extent(const struct csv *table, int row, const char *column)
{
    return *csv_text(table, row, column) ? (int)csv_int(table, row, column) : 0;
}

static struct run run_of(const struct csv *table, int row, enum kernel kernel)
{
    struct run run = {.kernel = kernel,
                      .rows = extent(table, row, "rows"),
                      .cols = extent(table, row, "cols"),
                      .depth = extent(table, row, "depth"),
                      .tile = extent(table, row, "tile"),
                      .sectors = {csv_int(table, row, "measured_load"),
                                  csv_int(table, row, "measured_store")}};
    if (kernel < NAIVE)
        return run;
    run.a = (struct attention){.batch = extent(table, row, "batch"),
                               .heads_q = extent(table, row, "heads_q"),
                               .heads_kv = extent(table, row, "heads_kv"),
                               .seqlen_q = extent(table, row, "seqlen_q"),
                               .seqlen_k = extent(table, row, "seqlen_k"),
                               .head_dim = extent(table, row, "head_dim"),
                               .head_dim_v = extent(table, row, "head_dim_v"),
                               .dtype = DTYPE_F32,
                               .block_q = extent(table, row, "block_q"),
                               .block_k = extent(table, row, "block_k"),
                               .tiled_gemm = kernel == STANDARD};
    run.a.scale = 1.0f / sqrtf((float)run.a.head_dim);
    if (!mask_parse(&run.a.mask, csv_text(table, row, "mask")))
        fail_msg("row %d: mask %s", row, csv_text(table, row, "mask"));
    return run;
}

/* Accesses of the run, at most. */
static int64_t most_accesses(const struct run *run)
{
    if (run->kernel == MATMUL) /* lanes share elements */
        return 2 * (int64_t)run->rows * run->cols * run->depth;
    return 8 * (run->sectors[CPU_LOAD] + run->sectors[CPU_STORE]);
}

static void check_close(int row, const char *name, const float *got, const double *want,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double far = fabs((double)got[i] - want[i]);
        const bool same = isinf(want[i]) && (double)got[i] == want[i];
        if (!same && !(far <= 1e-5 * (1 + fabs(want[i]))))
            fail_msg("row %d: %s[%zu] is %.9g, in float64 %.9g", row, name, i, (double)got[i],
                     want[i]);
    }
}

static void check_attention(const struct run *run, int row)
{
    const struct problem p = {run->a, data_of(run, "Q"), data_of(run, "K"), data_of(run, "V")};
    const size_t rows = count_lse(&run->a);
    struct truth truth;
    reference_attention(&truth, &p, (double)run->a.scale);
    check_close(row, "O", data_of(run, "O"), truth.o, count_o(&run->a));
    float *lse = allocate(rows, sizeof *lse);
    const float *m = data_of(run, "m"), *l = data_of(run, "l");
    for (size_t i = 0; i < rows; i++)
        lse[i] = !m ? data_of(run, "LSE")[i] : l[i] == 0.0f ? -INFINITY : m[i] + logf(l[i]);
    check_close(row, "LSE", lse, truth.lse, rows);
    free(lse);
    truth_free(&truth);
}

static void product(double *want, const struct run *run)
{
    const size_t cols = (size_t)run->cols, depth = (size_t)run->depth;
    const float *A = data_of(run, "A"), *B = data_of(run, "B");
    for (size_t i = 0; i < (size_t)run->rows; i++)
        for (size_t k = 0; k < depth; k++)
            for (size_t j = 0; j < cols; j++)
                want[i * cols + j] += (double)A[i * depth + k] * (double)B[k * cols + j];
}

static void softmax(double *want, const struct run *run)
{
    const size_t cols = (size_t)run->cols;
    for (size_t i = 0; i < (size_t)run->rows; i++) {
        const float *x = data_of(run, "X") + i * cols;
        double sum = 0; /* of exp(x): normal numbers need no maximum */
        for (size_t j = 0; j < cols; j++)
            sum += exp((double)x[j]);
        for (size_t j = 0; j < cols; j++)
            want[i * cols + j] = exp((double)x[j]) / sum;
    }
}

static void check_results(const struct run *run, int row)
{
    if (run->kernel >= NAIVE) {
        check_attention(run, row);
        return;
    }
    const struct array *output = &run->array[run->arrays - 1];
    const size_t count = (size_t)output->count;
    double *want = allocate(count, sizeof *want);
    if (run->kernel == ADD)
        for (size_t i = 0; i < count; i++)
            want[i] = (double)data_of(run, "a")[i] + (double)data_of(run, "b")[i];
    else if (run->kernel == MATMUL || run->kernel == TILED)
        product(want, run);
    else
        softmax(want, run);
    check_close(row, output->name, output->memory + run->pad, want, count);
    free(want);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All rows of one kernel, *state: its number. */
static void test_sectors_are_the_measured_ones(void **state)
{
    const enum kernel kernel = *(const enum kernel *)*state;
    static struct csv table;
    int rows = 0;
    int64_t accesses = 0;
    double spent = 0;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        if (strcmp(csv_text(&table, row, "kernel"), kernels[kernel].name) != 0)
            continue;
        struct run run = run_of(&table, row, kernel);
        if (most_accesses(&run) > MOST_ACCESSES)
            continue;
        run_open(&run);
        const double start = seconds();
        const struct cpu_launch_counts counts = run_observe(&run);
        spent += seconds() - start;
        for (int way = 0; way < CPU_WAYS; way++)
            if (counts.sectors[way] != run.sectors[way])
                fail_msg("row %d, %s, %s sectors: measured %" PRId64 ", on the CPU %" PRId64,
                         row, kernels[kernel].name, way == CPU_LOAD ? "load" : "store",
                         run.sectors[way], counts.sectors[way]);
        accesses += counts.accesses[CPU_LOAD] + counts.accesses[CPU_STORE];
        check_results(&run, row);
        run_close(&run);
        rows++;
    }
    csv_free(&table);
    print_message("%-18s %2d rows, %9" PRId64 " accesses, %5.2f s, %6.1f ns an access\n",
                  kernels[kernel].name, rows, accesses, spent, 1e9 * spent / (double)accesses);
    assert_int_equal(rows, kernels[kernel].rows);
}

/* 100 elements: three whole requests and one of 4 lanes, for each array. */
static void test_requests_and_bytes(void **state)
{
    struct run run = {.kernel = ADD, .cols = 100};
    (void)state;
    run_open(&run);
    const struct cpu_launch_counts counts = run_observe(&run);
    assert_string_equal(cpu_counts()->launch[0].kernel, "vector_add");
    assert_int_equal(counts.requests[CPU_LOAD], 8);
    assert_int_equal(counts.requests[CPU_STORE], 4);
    assert_int_equal(counts.bytes[CPU_LOAD], 800);
    assert_int_equal(counts.bytes[CPU_STORE], 400);
    assert_int_equal(counts.sectors[CPU_LOAD], 26);
    run_close(&run);
}

/* The comparison can fail: a request of 32 elements that begins inside a sector touches 5. */
static void test_shifted_arrays_touch_more_sectors(void **state)
{
    struct run run = {.kernel = ADD, .cols = 256, .pad = 1};
    (void)state;
    run_open(&run);
    const struct cpu_launch_counts counts = run_observe(&run);
    assert_int_equal(counts.sectors[CPU_LOAD], 2 * 8 * 5);
    assert_int_equal(counts.sectors[CPU_STORE], 8 * 5);
    run_close(&run);
}

static void launch_faulty(void *context)
{
    run_observe(context);
}

static void assert_stops(enum kernel kernel, const char *shortened, const char *unwritten,
                         const char *file, const char *message)
{
    struct run run = {.kernel = kernel,
                      .rows = 40,
                      .cols = 40,
                      .depth = 40,
                      .tile = 16,
                      .a = {.batch = 1,
                            .heads_q = 1,
                            .heads_kv = 1,
                            .seqlen_q = 40,
                            .seqlen_k = 40,
                            .head_dim = 16,
                            .head_dim_v = 16,
                            .scale = 0.25f,
                            .dtype = DTYPE_F32,
                            .block_q = 16,
                            .block_k = 16},
                      .shortened = shortened,
                      .unwritten = unwritten};
    run_open(&run);
    const struct fault fault = fault_of(launch_faulty, &run);
    if (!fault_is_bug(&fault, file, message) || !strstr(fault.text, kernels[kernel].name))
        fail_msg("%s, expected in %s: %s; got: %s", kernels[kernel].name, file, message,
                 fault.text);
    run_close(&run);
}

static void test_accesses_outside_arrays_stop(void **state)
{
    (void)state;
    assert_stops(FLASH2, "K", NULL, "cuda/tile.h", "load of 4 bytes outside all arrays");
    assert_stops(FLASH1, "O", NULL, "cuda/tile.h", "store of 4 bytes outside all arrays");
    assert_stops(MATMUL, "B", NULL, "cuda/kernels/matmul_naive.cu",
                 "block (1, 0, 0), thread (7, 0, 0): load of 4 bytes outside all arrays");
    assert_stops(ADD, "c", NULL, "cuda/kernels/vector_add.cu", "store of 4 bytes outside");
}

static void test_reads_of_unwritten_elements_stop(void **state)
{
    (void)state;
    assert_stops(FLASH2, NULL, "Q", "cuda/tile.h", "load of element 0 of Q, which nobody");
    assert_stops(ADD, NULL, "b", "cuda/kernels/vector_add.cu", "load of element 0 of b");
}

int main(void)
{
    static enum kernel number[KERNELS] = {ADD,   MATMUL,   TILED,  SAFE,  ONLINE,
                                          NAIVE, STANDARD, FLASH1, FLASH2};
#define SECTORS_OF(kernel)                                                                     \
    {                                                                                          \
        "test_sectors_of_" #kernel, test_sectors_are_the_measured_ones, NULL, NULL,            \
            &number[kernel]                                                                    \
    }
    const struct CMUnitTest tests[] = {
        SECTORS_OF(ADD),
        SECTORS_OF(MATMUL),
        SECTORS_OF(TILED),
        SECTORS_OF(SAFE),
        SECTORS_OF(ONLINE),
        SECTORS_OF(NAIVE),
        SECTORS_OF(STANDARD),
        SECTORS_OF(FLASH1),
        SECTORS_OF(FLASH2),
        cmocka_unit_test(test_requests_and_bytes),
        cmocka_unit_test(test_shifted_arrays_touch_more_sectors),
        cmocka_unit_test(test_accesses_outside_arrays_stop),
        cmocka_unit_test(test_reads_of_unwritten_elements_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
