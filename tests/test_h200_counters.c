/* The two-level count against hardware: the counters of an NVIDIA H200 while it ran two
 * production implementations (lessons/recordings/h200_counters.csv), for every forward row.
 *
 * FlashAttention-2 moves tiles with load and store instructions: the sectors counted must be
 * l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st}. cuDNN moves Q, K, V and O by the copy engine
 * (TMA): bytes, whole boxes on the way in. Simulated and predicted counts must both be equal to
 * the measured ones, and no row may be left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "kernels/attention_forward.h"
#include "models/io.h"

#define COUNTERS "../../lessons/recordings/h200_counters.csv" /* from tests/data */
#define FLASH_ATTENTION_2 "pytorch_flash_attention_2"
#define CUDNN "cudnn_9.19"

/* Forward rows of each implementation, counted by hand in the file. */
enum { FLASH_ATTENTION_2_ROWS = 15, CUDNN_ROWS = 15 };

static bool is_forward(const struct csv *table, int row, const char *implementation)
{
    return strcmp(csv_text(table, row, "implementation"), implementation) == 0 &&
           strcmp(csv_text(table, row, "phase"), "forward") == 0;
}

/* The row's problem, run by flash2 with the tile height that the implementation has. */
static struct simulation simulation_of(const struct csv *table, int row)
{
    const int seqlen = (int)csv_int(table, row, "seqlen");
    const int head_dim = (int)csv_int(table, row, "head_dim");
    const int heads = (int)csv_int(table, row, "heads");
    const int block = (int)csv_int(table, row, "block_q");
    struct simulation s = {
        .algorithm = ALGORITHM_FLASH2,
        .attention = {.batch = (int)csv_int(table, row, "batch"),
                      .heads_q = heads,
                      .heads_kv = heads,
                      .seqlen_q = seqlen,
                      .seqlen_k = seqlen,
                      .head_dim = head_dim,
                      .head_dim_v = head_dim,
                      .scale = 1.0f / sqrtf((float)head_dim),
                      .mask = csv_int(table, row, "causal") ? MASK_CAUSAL : MASK_NONE,
                      .dtype = DTYPE_F16,
                      .block_q = block,
                      .block_k = block},
        .machine = machine_find("H200"),
        .tma = strcmp(csv_text(table, row, "implementation"), CUDNN) == 0,
    };
    assert_string_equal(csv_text(table, row, "dtype"), "fp16");
    return s;
}

/* The two accounts of a row's problem. */
struct counts {
    struct account simulated, predicted;
};

static struct counts count_row(const struct csv *table, int row)
{
    struct simulation s = simulation_of(table, row);
    struct error error;
    if (attention_count(&s, &error))
        fail_msg("row %d: %s", row, error.text);
    return (struct counts){gpu_account(&s.gpu), io_predict(s.algorithm, &s.attention, s.tma)};
}

static void assert_measured(const struct csv *table, int row, const char *counter,
                            int64_t simulated, int64_t predicted)
{
    const int64_t measured = csv_int(table, row, counter);
    if (simulated != measured || predicted != measured)
        fail_msg("row %d, %s: measured %" PRId64 ", simulated %" PRId64 ", predicted %" PRId64,
                 row, counter, measured, simulated, predicted);
}

static struct amount of(struct account account, const char *tensor, enum direction direction)
{
    return account_tensor(&account, tensor)->of[direction];
}

/* All reads go through load instructions; O and the LSE, which nothing else writes, through
 * store instructions. */
static void test_flash_attention_2(void **state)
{
    struct csv table;
    int rows = 0;
    (void)state;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        if (!is_forward(&table, row, FLASH_ATTENTION_2))
            continue;
        const struct counts c = count_row(&table, row);
        const struct traffic simulated = account_total(&c.simulated);
        const struct traffic predicted = account_total(&c.predicted);
        assert_measured(&table, row, "global_load_sectors",
                        simulated.of[DIRECTION_READ].sectors,
                        predicted.of[DIRECTION_READ].sectors);
        assert_measured(&table, row, "global_store_sectors",
                        of(c.simulated, "O", DIRECTION_WRITE).sectors +
                            of(c.simulated, "LSE", DIRECTION_WRITE).sectors,
                        of(c.predicted, "O", DIRECTION_WRITE).sectors +
                            of(c.predicted, "LSE", DIRECTION_WRITE).sectors);
        assert_measured(&table, row, "global_reduction_sectors",
                        simulated.of[DIRECTION_REDUCE].sectors,
                        predicted.of[DIRECTION_REDUCE].sectors);
        rows++;
    }
    csv_free(&table);
    assert_int_equal(rows, FLASH_ATTENTION_2_ROWS);
}

/* cuDNN leaves the LSE out unless a backward pass will need it; then it stores it with plain
 * instructions, as its only ones. Returns true if it did. */
static bool check_lse_stores(const struct csv *table, int row, const struct counts *c)
{
    if (csv_int(table, row, "global_store_sectors") == 0)
        return false;
    assert_measured(table, row, "global_store_sectors",
                    of(c->simulated, "LSE", DIRECTION_WRITE).sectors,
                    of(c->predicted, "LSE", DIRECTION_WRITE).sectors);
    return true;
}

static void test_cudnn(void **state)
{
    struct csv table;
    int rows = 0, rows_with_lse = 0;
    (void)state;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        if (!is_forward(&table, row, CUDNN))
            continue;
        const struct counts c = count_row(&table, row);
        assert_measured(&table, row, "tma_load_bytes",
                        account_total(&c.simulated).of[DIRECTION_READ].bytes,
                        account_total(&c.predicted).of[DIRECTION_READ].bytes);
        assert_measured(&table, row, "tma_store_bytes",
                        of(c.simulated, "O", DIRECTION_WRITE).bytes,
                        of(c.predicted, "O", DIRECTION_WRITE).bytes);
        rows_with_lse += check_lse_stores(&table, row, &c);
        rows++;
    }
    csv_free(&table);
    assert_int_equal(rows, CUDNN_ROWS);
    assert_int_equal(rows_with_lse, 4);
}

/* Every forward row belongs to one of the two, so the tests above left none out; and among them
 * are the cases that tell models apart: causal, a ragged length, every head dimension. */
static void test_rows_cover_the_cases(void **state)
{
    struct csv table;
    int forward = 0, causal = 0, ragged = 0, by_head_dim[257] = {0};
    (void)state;
    csv_read(&table, COUNTERS);
    for (int row = 0; row < table.rows; row++) {
        if (strcmp(csv_text(&table, row, "phase"), "forward") != 0)
            continue;
        forward++;
        causal += csv_int(&table, row, "causal") == 1;
        ragged += csv_int(&table, row, "seqlen") % csv_int(&table, row, "block_q") != 0;
        by_head_dim[csv_int(&table, row, "head_dim")]++;
    }
    csv_free(&table);
    assert_int_equal(forward, FLASH_ATTENTION_2_ROWS + CUDNN_ROWS);
    assert_int_equal(causal, 10);
    assert_int_equal(ragged, 2);
    assert_true(by_head_dim[64] > 0 && by_head_dim[128] > 0 && by_head_dim[256] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flash_attention_2),
        cmocka_unit_test(test_cudnn),
        cmocka_unit_test(test_rows_cover_the_cases),
    };
    return cmocka_run_group_tests_name("H200 counters", tests, NULL, NULL);
}
