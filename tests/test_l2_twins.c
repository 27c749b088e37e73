/* The model of L2 against hardware: DRAM bytes of our CUDA kernels on an NVIDIA H200 with cold
 * caches (cuda/results/h200_l2.csv), as their twins in the simulator move them.
 *
 * Protects: the way from a kernel's loads and stores to DRAM. Where more than 10 MB are moved,
 * reads are within 5 % in 48 of 56 rows, writes within 10 % in 32 of 38, and none is worse than
 * the worst. What is less than that is a small difference of large numbers, or what a profiler
 * moves: two recordings of a launch differ by up to 1 MB. tests/make_l2_tables.py makes a table
 * of the rows that are printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/twins.h"

#define COUNTERS "../../cuda/results/h200_l2.csv" /* from tests/data */

/* The recording's matmul_naive are left out: its blocks move an element at a time, and the
 * smallest takes a quarter of a minute. */
enum { ROWS = 66, LARGE_BYTES = 10000000 };

/* Rows that move that much, and those of them that are near; the worst are FlashAttention-1
 * with Q and O of half the size of L2: twice recorded, it read 231 and 76 MB. */
struct score {
    const char *what;
    int rows, near;
    double near_error, worst_error;
};
static const struct score reads = {"reads", 56, 48, 0.05, 0.50};
static const struct score writes = {"writes", 38, 32, 0.10, 1.75};

static void judge(struct score *score, const struct score *wanted, int64_t modelled,
                  int64_t measured)
{
    if (measured < LARGE_BYTES)
        return;
    const double error = fabs((double)modelled / (double)measured - 1);
    score->rows++;
    score->near += error <= wanted->near_error;
    if (!(error <= wanted->worst_error))
        fail_msg("%s: %" PRId64 " bytes modelled, %" PRId64 " measured", wanted->what, modelled,
                 measured);
}

static void assert_score(const struct score *score, const struct score *wanted)
{
    print_message("%s within %g %%: %d of %d\n", wanted->what, 100 * wanted->near_error,
                  score->near, score->rows);
    assert_int_equal(score->rows, wanted->rows);
    assert_true(score->near >= wanted->near);
}

static void test_dram_bytes_are_those_measured(void **state)
{
    static struct csv table;
    struct score read_score = {0}, write_score = {0};
    int rows = 0;
    (void)state;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        const char *kernel = csv_text(&table, row, "kernel");
        if (strcmp(kernel, "matmul_naive") == 0)
            continue;
        const struct l2_launch run = twin_replay(&table, row);
        const int64_t read = csv_int(&table, row, "dram_read_bytes");
        const int64_t written = csv_int(&table, row, "dram_write_bytes");
        print_message("row; %s; %s; %" PRId64 "; %" PRId64 "; %" PRId64 "; %" PRId64 "\n",
                      kernel, twin_shape(&table, row), read, run.dram_read_bytes, written,
                      run.dram_written_bytes);
        /* It is the same run: a sample of its loads stands for all that the SMs asked for. */
        const double share = (double)run.read_sectors / csv_double(&table, row, "load_sectors");
        assert_true(share > 0.99 && share < 1.01);
        judge(&read_score, &reads, run.dram_read_bytes, read);
        judge(&write_score, &writes, run.dram_written_bytes, written);
        rows++;
    }
    csv_free(&table);
    assert_int_equal(rows, ROWS);
    assert_score(&read_score, &reads);
    assert_score(&write_score, &writes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dram_bytes_are_those_measured),
    };
    return cmocka_run_group_tests_name("L2 and DRAM under our kernels", tests, NULL, NULL);
}
