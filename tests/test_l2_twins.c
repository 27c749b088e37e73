/* The model of L2 against hardware: DRAM bytes of our CUDA kernels on an NVIDIA H200 with cold
 * caches (cuda/results/h200_l2.csv), as their twins in the simulator move them.
 *
 * Protects: the way from a kernel's loads and stores to DRAM. Where more than 10 MB are moved,
 * reads are within 5 % in 50 of 56 rows, writes within 10 % in 34 of 38, and none is worse than
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

#include "common/core_fixture.h"
#include "common/l2_recording.h"
#include "common/twins.h"

/* The recording's matmul_naive are left out: its blocks move an element at a time, and the
 * smallest takes a quarter of a minute. */
enum { ROWS = 66, LARGE_BYTES = 10000000, MODEL_PLACES = 5 };

/* Rows that move that much, and those of them that are near. The worst read is a matrix product
 * whose blocks drift apart, the worst write FlashAttention-1 of 64 heads, whose arrays just fit
 * into L2: in five places the GPU writes from 8 to 37 MB. */
struct score {
    const char *what;
    int rows, near;
    double near_error, worst_error;
};
static const struct score reads = {"reads", 56, 50, 0.05, 0.35};
static const struct score writes = {"writes", 38, 34, 0.10, 0.80};

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

/* A run: DRAM bytes measured and modelled. */
struct comparison {
    struct spread read, written, modelled_read, modelled_written;
};

/* Where the places of arrays matter to the GPU the model has several, else one. */
static void replay_places(struct comparison *c, const struct csv *table, int row)
{
    const bool differ = c->read.most - c->read.least > c->read.median / 10;
    const int places = differ ? MODEL_PLACES : 1;
    int64_t read[MODEL_PLACES], written[MODEL_PLACES];
    for (int place = 0; place < places; place++) {
        const struct l2_launch run = twin_replay(table, row, place);
        /* It is the same run: a sample of its loads stands for all that the SMs asked for. */
        const double share = (double)run.read_sectors / csv_double(table, row, "load_sectors");
        assert_true(share > 0.99 && share < 1.01);
        read[place] = run.dram_read_bytes;
        written[place] = run.dram_written_bytes;
    }
    c->modelled_read = spread_of(read, (size_t)places);
    c->modelled_written = spread_of(written, (size_t)places);
}

static void print_row(const struct csv *table, int row, const struct comparison *c)
{
    const struct spread *columns[] = {&c->read, &c->modelled_read, &c->written,
                                      &c->modelled_written};
    print_message("row; %s; %s", csv_text(table, row, "kernel"), twin_shape(table, row));
    for (size_t k = 0; k < LENGTH(columns); k++)
        print_message("; %" PRId64, columns[k]->median);
    for (size_t k = 0; k < LENGTH(columns); k++)
        print_message("; %" PRId64 "; %" PRId64, columns[k]->least, columns[k]->most);
    print_message("\n");
}

static void test_dram_bytes_are_those_measured(void **state)
{
    static struct csv table;
    struct score read_score = {0}, write_score = {0};
    int rows = 0;
    (void)state;
    csv_read(&table, L2_RECORDING);
    const struct idle_rates idle = idle_rates_of(&table);
    for (int row = 0; row < table.rows; row++) {
        if (!row_is_first_of_run(&table, row) ||
            strcmp(csv_text(&table, row, "kernel"), "matmul_naive") == 0)
            continue;
        struct comparison c = {.read = spread_of_run(&table, row, "dram_read_bytes", idle.read),
                               .written =
                                   spread_of_run(&table, row, "dram_write_bytes", idle.write)};
        replay_places(&c, &table, row);
        print_row(&table, row, &c);
        judge(&read_score, &reads, c.modelled_read.median, c.read.median);
        judge(&write_score, &writes, c.modelled_written.median, c.written.median);
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
