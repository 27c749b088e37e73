/* The model of L2 against hardware: DRAM bytes of our CUDA kernels on an NVIDIA H200
 * (cuda/results/h200_counters.csv), as their twins in the simulator move them.
 *
 * Protects: the way from a kernel's loads and stores to DRAM, for the recorded launches whose
 * tensors are much larger than L2. The others say nothing about a model: the profiler ran each
 * launch several times without emptying L2, so that they found their inputs there.
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
#include "kernels/attention_kernels.h"
#include "kernels/basic_kernels.h"
#include "models/l2_traffic.h"

#define COUNTERS "../../cuda/results/h200_counters.csv" /* from tests/data */

static enum status run_vector_add(struct gpu *gpu, struct error *error)
{
    enum { COUNT = 1 << 26 };
    struct hbm_tensor a = new_tensor(gpu, "a", DTYPE_F32, 1, 1, COUNT);
    struct hbm_tensor b = new_tensor(gpu, "b", DTYPE_F32, 1, 1, COUNT);
    struct hbm_tensor c = new_tensor(gpu, "c", DTYPE_F32, 1, 1, COUNT);
    return vector_add(gpu, &c, &a, &b, error);
}

static enum status run_softmax_online(struct gpu *gpu, struct error *error)
{
    struct hbm_tensor X = new_tensor(gpu, "X", DTYPE_F32, 1, 8192, 8192);
    struct hbm_tensor Y = new_tensor(gpu, "Y", DTYPE_F32, 1, 8192, 8192);
    return softmax_online(gpu, &Y, &X, error);
}

static enum status run_softmax_safe(struct gpu *gpu, struct error *error)
{
    struct hbm_tensor X = new_tensor(gpu, "X", DTYPE_F32, 1, 8192, 8192);
    struct hbm_tensor Y = new_tensor(gpu, "Y", DTYPE_F32, 1, 8192, 8192);
    return softmax_safe(gpu, &Y, &X, error);
}

static enum status run_standard(struct gpu *gpu, struct error *error)
{
    enum { HEADS = 4, N = 4096, D = 64 };
    const struct attention a = {.batch = 1,
                                .heads_q = HEADS,
                                .heads_kv = HEADS,
                                .seqlen_q = N,
                                .seqlen_k = N,
                                .head_dim = D,
                                .head_dim_v = D,
                                .scale = 0.125f,
                                .block_q = 64,
                                .block_k = 64,
                                .tiled_gemm = true};
    struct attention_tensors t = {0};
    t.Q = new_tensor(gpu, "Q", DTYPE_F32, HEADS, N, D);
    t.K = new_tensor(gpu, "K", DTYPE_F32, HEADS, N, D);
    t.V = new_tensor(gpu, "V", DTYPE_F32, HEADS, N, D);
    t.O = new_tensor(gpu, "O", DTYPE_F32, HEADS, N, D);
    t.LSE = new_tensor(gpu, "LSE", DTYPE_F32, HEADS, N, 1);
    return standard_attention(gpu, &a, &t, error);
}

/* The rows, and how near the model comes. The threads of the element-wise kernels' blocks, 256,
 * let 8 be resident on an SM. softmax_safe passes three times over rows that, 8 together, fill
 * the SM's L1 cache, which has no model here: fewer of its reads reach L2. */
static const struct {
    const char *kernel;
    enum status (*run)(struct gpu *gpu, struct error *error);
    int blocks_per_sm;
    double read_within, write_within;
} rows[] = {
    {"vector_add", run_vector_add, 8, 0.01, 0.10},
    {"softmax_online", run_softmax_online, 8, 0.05, 0.10},
    {"softmax_safe", run_softmax_safe, 8, 0.30, 0.10},
    {"standard_attention", run_standard, 0, 0.05, 0.10},
};

/* The kernel's row with the most loads, which is the one that is run here. */
static int largest_row(const struct csv *table, const char *kernel)
{
    int largest = -1;
    for (int row = 0; row < table->rows; row++)
        if (strcmp(csv_text(table, row, "kernel"), kernel) == 0 &&
            (largest < 0 ||
             csv_int(table, row, "measured_load") > csv_int(table, largest, "measured_load")))
            largest = row;
    return largest;
}

static struct l2_launch run_row(size_t k)
{
    static struct l2_traffic l2;
    struct gpu gpu;
    struct error error;
    gpu_init(&gpu, machine_find("H200"), GPU_COUNTS);
    if (l2_traffic_init(&l2,
                        &(struct l2_options){.machine = gpu.machine,
                                             .blocks_per_sm = rows[k].blocks_per_sm,
                                             .sample = 32},
                        &error))
        fail_msg("%s", error.text);
    gpu.observer = &l2.observer;
    if (rows[k].run(&gpu, &error))
        fail_msg("%s", error.text);
    l2_traffic_finish(&l2);
    struct l2_launch sum = {0};
    for (int launch = 0; launch < l2.launch_count; launch++) {
        sum.read_sectors += l2.launches[launch].read_sectors;
        sum.dram_read_bytes += l2.launches[launch].dram_read_bytes;
        sum.dram_written_bytes += l2.launches[launch].dram_written_bytes;
    }
    l2_traffic_free(&l2);
    return sum;
}

static void assert_within(const char *kernel, const char *what, int64_t modelled,
                          int64_t measured, double tolerance)
{
    const double error = (double)modelled / (double)measured - 1;
    print_message("%-20s %-8s measured %8.2f MB, model %8.2f MB  %+5.1f%%\n", kernel, what,
                  (double)measured / 1e6, (double)modelled / 1e6, 100 * error);
    if (!(fabs(error) <= tolerance))
        fail_msg("%s: bytes %s are not within %g", kernel, what, tolerance);
}

static void test_dram_bytes_are_those_measured(void **state)
{
    static struct csv table;
    (void)state;
    csv_read(&table, COUNTERS);
    for (size_t k = 0; k < LENGTH(rows); k++) {
        const int row = largest_row(&table, rows[k].kernel);
        const struct l2_launch sum = run_row(k);
        assert_true(row >= 0);
        /* It is the same run: a sample of its loads stands for all that the SMs asked for. */
        const double share =
            (double)sum.read_sectors / csv_double(&table, row, "measured_load");
        assert_true(share > 0.99 && share < 1.01);
        assert_within(rows[k].kernel, "read", sum.dram_read_bytes,
                      csv_int(&table, row, "dram_read_bytes"), rows[k].read_within);
        assert_within(rows[k].kernel, "written", sum.dram_written_bytes,
                      csv_int(&table, row, "dram_write_bytes"), rows[k].write_within);
    }
    csv_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dram_bytes_are_those_measured),
    };
    return cmocka_run_group_tests_name("L2 and DRAM under our kernels", tests, NULL, NULL);
}
