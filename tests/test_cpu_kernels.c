/* The CUDA kernels, compiled for the CPU and observed access by access, against the counters
 * that an NVIDIA H200 recorded while it ran the same files (cuda/results/h200_counters.csv).
 *
 * Protects: load and store sectors of every recorded launch that is not too large, of all
 * eleven kernels, are the measured ones; results are those of float64; accesses outside the
 * arrays and reads of what nobody has written stop the program with the source line.
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

/* The rows that run: up to so many accesses of single threads. FLASHLAB_MOST_ACCESSES=N in the
 * environment runs others, all of them with a number large enough. */
enum { MOST_ACCESSES = 1 << 24 };

/* rows: how many of the file are small enough, so that none goes missing. */
static const struct {
    const char *name;
    int rows;
} kernels[CPU_KERNELS] = {
    [CPU_VECTOR_ADD] = {"vector_add", 44},
    [CPU_MATMUL_NAIVE] = {"matmul_naive", 42},
    [CPU_MATMUL_SHARED] = {"matmul_shared", 39},
    [CPU_MATMUL_TILED] = {"matmul_tiled", 42},
    [CPU_SOFTMAX_NAIVE] = {"softmax_naive", 44},
    [CPU_SOFTMAX_SAFE] = {"softmax_safe", 44},
    [CPU_SOFTMAX_ONLINE] = {"softmax_online", 44},
    [CPU_NAIVE_ATTENTION] = {"naive_attention", 46},
    [CPU_STANDARD_ATTENTION] = {"standard_attention", 31},
    [CPU_FLASH1_FORWARD] = {"flash1_forward", 35},
    [CPU_FLASH2_FORWARD] = {"flash2_forward", 36},
};

/* What the hardware counted of a row, and what is that here. */
static const struct figure {
    const char *column;
    bool shared;
    enum cpu_way way;
    size_t offset; /* in struct cpu_traffic */
} figures[] = {
    {"measured_load", false, CPU_LOAD, offsetof(struct cpu_traffic, sectors)},
    {"measured_store", false, CPU_STORE, offsetof(struct cpu_traffic, sectors)},
    {"measured_reduce", false, CPU_REDUCE, offsetof(struct cpu_traffic, sectors)},
    {"shared_load_instructions", true, CPU_LOAD, offsetof(struct cpu_traffic, requests)},
    {"shared_load_wavefronts", true, CPU_LOAD, offsetof(struct cpu_traffic, wavefronts)},
    {"shared_store_instructions", true, CPU_STORE, offsetof(struct cpu_traffic, requests)},
    {"shared_store_wavefronts", true, CPU_STORE, offsetof(struct cpu_traffic, wavefronts)},
};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static int64_t figure_of(const struct cpu_launch_counts *counts, const struct figure *figure)
{
    const struct cpu_traffic *traffic = figure->shared ? counts->shared : counts->hbm;
    int64_t value;
    memcpy(&value, (const char *)&traffic[figure->way] + figure->offset, sizeof value);
    return value;
}

/* Accesses of the run, about. */
static int64_t most_accesses(const struct csv *table, int row, const struct cpu_run *run)
{
    const int64_t sectors =
        csv_int(table, row, "measured_load") + csv_int(table, row, "measured_store");
    const int64_t requests = csv_int(table, row, "shared_load_instructions") +
                             csv_int(table, row, "shared_store_instructions");
    if (run->kernel == CPU_MATMUL_NAIVE) /* lanes share elements */
        return 2 * (int64_t)run->rows * run->cols * run->depth;
    return 8 * sectors + 32 * requests;
}

static int64_t accesses_allowed(void)
{
    const char *text = getenv("FLASHLAB_MOST_ACCESSES");
    return text ? strtoll(text, NULL, 10) : MOST_ACCESSES;
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

static void check_attention(const struct cpu_run *run, int row)
{
    const struct problem p = {run->a, cpu_run_data(run, "Q"), cpu_run_data(run, "K"),
                              cpu_run_data(run, "V")};
    const size_t rows = count_lse(&run->a);
    struct truth truth;
    reference_attention(&truth, &p, (double)run->a.scale);
    check_close(row, "O", cpu_run_data(run, "O"), truth.o, count_o(&run->a));
    float *lse = allocate(rows, sizeof *lse);
    cpu_run_lse(lse, run);
    check_close(row, "LSE", lse, truth.lse, rows);
    free(lse);
    truth_free(&truth);
}

static void product(double *want, const struct cpu_run *run)
{
    const size_t cols = (size_t)run->cols, depth = (size_t)run->depth;
    const float *A = cpu_run_data(run, "A"), *B = cpu_run_data(run, "B");
    for (size_t i = 0; i < (size_t)run->rows; i++)
        for (size_t k = 0; k < depth; k++)
            for (size_t j = 0; j < cols; j++)
                want[i * cols + j] += (double)A[i * depth + k] * (double)B[k * cols + j];
}

static void softmax(double *want, const struct cpu_run *run)
{
    const size_t cols = (size_t)run->cols;
    for (size_t i = 0; i < (size_t)run->rows; i++) {
        const float *x = cpu_run_data(run, "X") + i * cols;
        double sum = 0; /* of exp(x): normal numbers need no maximum */
        for (size_t j = 0; j < cols; j++)
            sum += exp((double)x[j]);
        for (size_t j = 0; j < cols; j++)
            want[i * cols + j] = exp((double)x[j]) / sum;
    }
}

static void check_results(const struct cpu_run *run, int row)
{
    if (run->kernel >= CPU_NAIVE_ATTENTION) {
        check_attention(run, row);
        return;
    }
    const struct cpu_run_array *output = &run->array[run->arrays - 1];
    const size_t count = (size_t)output->count;
    double *want = allocate(count, sizeof *want);
    if (run->kernel == CPU_VECTOR_ADD)
        for (size_t i = 0; i < count; i++)
            want[i] = (double)cpu_run_data(run, "a")[i] + (double)cpu_run_data(run, "b")[i];
    else if (run->kernel >= CPU_MATMUL_NAIVE && run->kernel <= CPU_MATMUL_TILED)
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
    const enum cpu_kernel kernel = *(const enum cpu_kernel *)*state;
    static struct csv table;
    int rows = 0;
    int64_t accesses = 0;
    double spent = 0;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        if (strcmp(csv_text(&table, row, "kernel"), kernels[kernel].name) != 0)
            continue;
        struct cpu_run run = run_of_row(&table, row);
        if (most_accesses(&table, row, &run) > accesses_allowed())
            continue;
        run_open(&run);
        const double start = seconds();
        const struct cpu_launch_counts counts = run_observe(&run);
        spent += seconds() - start;
        for (int n = 0; n < FIGURES; n++) {
            const int64_t measured = csv_int(&table, row, figures[n].column);
            const int64_t here = figure_of(&counts, &figures[n]);
            if (measured != here)
                fail_msg("row %d, %s, %s: measured %" PRId64 ", on the CPU %" PRId64, row,
                         kernels[kernel].name, figures[n].column, measured, here);
        }
        accesses += counts.hbm[CPU_LOAD].accesses + counts.hbm[CPU_STORE].accesses +
                    counts.shared[CPU_LOAD].accesses + counts.shared[CPU_STORE].accesses;
        check_results(&run, row);
        cpu_run_close(&run);
        rows++;
    }
    csv_free(&table);
    print_message("%-18s %2d rows, %9" PRId64 " accesses, %5.2f s, %6.1f ns an access\n",
                  kernels[kernel].name, rows, accesses, spent, 1e9 * spent / (double)accesses);
    assert_true(rows > 0);
    if (!getenv("FLASHLAB_MOST_ACCESSES"))
        assert_int_equal(rows, kernels[kernel].rows);
}

/* 100 elements: three whole requests and one of 4 lanes, for each array. */
static void test_requests_and_bytes(void **state)
{
    struct cpu_run run = {.kernel = CPU_VECTOR_ADD, .cols = 100};
    (void)state;
    run_open(&run);
    const struct cpu_launch_counts counts = run_observe(&run);
    assert_string_equal(cpu_counts()->launch[0].kernel, "vector_add");
    assert_int_equal(counts.hbm[CPU_LOAD].requests, 8);
    assert_int_equal(counts.hbm[CPU_STORE].requests, 4);
    assert_int_equal(counts.hbm[CPU_LOAD].bytes, 800);
    assert_int_equal(counts.hbm[CPU_STORE].bytes, 400);
    assert_int_equal(counts.hbm[CPU_LOAD].sectors, 26);
    cpu_run_close(&run);
}

/* The comparison can fail: a request of 32 elements that begins inside a sector touches 5. */
static void test_shifted_arrays_touch_more_sectors(void **state)
{
    struct cpu_run run = {.kernel = CPU_VECTOR_ADD, .cols = 256, .pad = 1};
    (void)state;
    run_open(&run);
    const struct cpu_launch_counts counts = run_observe(&run);
    assert_int_equal(counts.hbm[CPU_LOAD].sectors, 2 * 8 * 5);
    assert_int_equal(counts.hbm[CPU_STORE].sectors, 8 * 5);
    cpu_run_close(&run);
}

static void launch_faulty(void *context)
{
    run_observe(context);
}

static void assert_stops(enum cpu_kernel kernel, const char *shortened, const char *unwritten,
                         const char *file, const char *message)
{
    struct cpu_run run = {.kernel = kernel,
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
    cpu_run_close(&run);
}

static void test_accesses_outside_arrays_stop(void **state)
{
    (void)state;
    assert_stops(CPU_FLASH2_FORWARD, "K", NULL, "cuda/tile.h",
                 "load of 4 bytes outside all arrays");
    assert_stops(CPU_FLASH1_FORWARD, "O", NULL, "cuda/tile.h",
                 "store of 4 bytes outside all arrays");
    assert_stops(CPU_MATMUL_NAIVE, "B", NULL, "cuda/kernels/matmul_naive.cu",
                 "block (1, 0, 0), thread (7, 0, 0): load of 4 bytes outside all arrays");
    assert_stops(CPU_VECTOR_ADD, "c", NULL, "cuda/kernels/vector_add.cu",
                 "store of 4 bytes outside");
}

static void test_reads_of_unwritten_elements_stop(void **state)
{
    (void)state;
    assert_stops(CPU_FLASH2_FORWARD, NULL, "Q", "cuda/tile.h",
                 "load of element 0 of Q, which nobody");
    assert_stops(CPU_VECTOR_ADD, NULL, "b", "cuda/kernels/vector_add.cu",
                 "load of element 0 of b");
}

int main(void)
{
    static enum cpu_kernel number[CPU_KERNELS] = {
        CPU_VECTOR_ADD,         CPU_MATMUL_NAIVE,   CPU_MATMUL_SHARED,  CPU_MATMUL_TILED,
        CPU_SOFTMAX_NAIVE,      CPU_SOFTMAX_SAFE,   CPU_SOFTMAX_ONLINE, CPU_NAIVE_ATTENTION,
        CPU_STANDARD_ATTENTION, CPU_FLASH1_FORWARD, CPU_FLASH2_FORWARD};
#define SECTORS_OF(kernel)                                                                     \
    {                                                                                          \
        "test_sectors_of_" #kernel, test_sectors_are_the_measured_ones, NULL, NULL,            \
            &number[kernel]                                                                    \
    }
    const struct CMUnitTest tests[] = {
        SECTORS_OF(CPU_VECTOR_ADD),
        SECTORS_OF(CPU_MATMUL_NAIVE),
        SECTORS_OF(CPU_MATMUL_SHARED),
        SECTORS_OF(CPU_MATMUL_TILED),
        SECTORS_OF(CPU_SOFTMAX_NAIVE),
        SECTORS_OF(CPU_SOFTMAX_SAFE),
        SECTORS_OF(CPU_SOFTMAX_ONLINE),
        SECTORS_OF(CPU_NAIVE_ATTENTION),
        SECTORS_OF(CPU_STANDARD_ATTENTION),
        SECTORS_OF(CPU_FLASH1_FORWARD),
        SECTORS_OF(CPU_FLASH2_FORWARD),
        cmocka_unit_test(test_requests_and_bytes),
        cmocka_unit_test(test_shifted_arrays_touch_more_sectors),
        cmocka_unit_test(test_accesses_outside_arrays_stop),
        cmocka_unit_test(test_reads_of_unwritten_elements_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
