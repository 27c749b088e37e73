/* The model of L2 against hardware: DRAM bytes of two production implementations on an NVIDIA
 * H200 (lessons/recordings/h200_counters.csv), for every forward row. Caches were cold.
 *
 * The blocks' moves are written down here, not simulated: both implementations start at the
 * last K/V tile and go down, and FlashAttention-2 spills registers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "models/l2_traffic.h"

#define COUNTERS "../../lessons/recordings/h200_counters.csv" /* from tests/data */

enum { ROWS = 30 };

/* One forward pass of either implementation. */
struct pass {
    bool cudnn, causal, writes_lse;
    int64_t planes, seqlen, row_bytes;
    int block_q, block_k;
    int64_t spilled_bytes; /* of one thread block */
};

/* FlashAttention-2's tiles of K have 128 rows at d = 64, else 64. It stores spilled registers
 * again for each of them: l2_write_sectors grow by 96 (d = 64) and 224 (d = 128) a tile beyond
 * what is stored to O and LSE, by nothing at d = 256. cuDNN's do not. */
static struct pass pass_of(const struct csv *table, int row)
{
    const int head_dim = (int)csv_int(table, row, "head_dim");
    const bool cudnn = strncmp(csv_text(table, row, "implementation"), "cudnn", 5) == 0;
    const int spilled_sectors = head_dim == 64 ? 96 : head_dim == 128 ? 224 : 0;
    return (struct pass){
        .cudnn = cudnn,
        .causal = csv_int(table, row, "causal") == 1,
        .writes_lse = csv_int(table, row, "global_store_sectors") > 0,
        .planes = csv_int(table, row, "batch") * csv_int(table, row, "heads"),
        .seqlen = csv_int(table, row, "seqlen"),
        .row_bytes = (int64_t)head_dim * 2,
        .block_q = (int)csv_int(table, row, "block_q"),
        .block_k = cudnn || head_dim == 64 ? 128 : 64,
        .spilled_bytes = cudnn ? 0 : spilled_sectors * SECTOR_BYTES,
    };
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Tensor number tensor (Q, K, V, O) has all planes, one after the other. */
static void add_rows(struct move_list *list, const struct pass *p, int tensor,
                     enum direction direction, int64_t plane, int64_t row, int64_t rows)
{
    const int64_t bytes = least(rows, p->seqlen - row) * p->row_bytes;
    move_list_add(list,
                  &(struct move){.address = ((tensor * p->planes + plane) * p->seqlen + row) *
                                            p->row_bytes,
                                 .stride = bytes,
                                 .rows = 1,
                                 .row_bytes = (int32_t)bytes,
                                 .direction = direction});
}

static void add_bytes(struct move_list *list, int64_t address, int64_t bytes)
{
    if (bytes > 0)
        move_list_add(list, &(struct move){address, bytes, 1, (int32_t)bytes, DIRECTION_WRITE});
}

/* Block number id of the grid. cuDNN takes the long tiles of a causal plane first. */
static void add_block(struct move_list *list, const struct pass *p, int64_t id)
{
    const int64_t tiles = (p->seqlen - 1) / p->block_q + 1, plane = id / tiles;
    const int64_t i = p->cudnn && p->causal ? tiles - 1 - id % tiles : id % tiles;
    const int64_t visible = p->causal ? least((i + 1) * p->block_q, p->seqlen) : p->seqlen;
    const int64_t lse = 4 * p->planes * p->seqlen * p->row_bytes;
    const int64_t spilled = lse + p->planes * p->seqlen * 4 + id * p->spilled_bytes;
    add_rows(list, p, 0, DIRECTION_READ, plane, i * p->block_q, p->block_q);
    for (int64_t j = (visible - 1) / p->block_k; j >= 0; j--) {
        add_rows(list, p, 1, DIRECTION_READ, plane, j * p->block_k, p->block_k);
        add_rows(list, p, 2, DIRECTION_READ, plane, j * p->block_k, p->block_k);
        add_bytes(list, spilled, p->spilled_bytes);
    }
    add_rows(list, p, 3, DIRECTION_WRITE, plane, i * p->block_q, p->block_q);
    if (p->writes_lse)
        add_bytes(list, lse + (plane * p->seqlen + i * p->block_q) * 4,
                  least(p->block_q, p->seqlen - i * p->block_q) * 4);
}

/* FlashAttention-2: two blocks an SM (their registers allow no more). cuDNN: one, persistent.
 */
static struct l2_launch replay(const struct pass *p, int sample)
{
    struct l2_traffic l2;
    struct error error;
    const struct machine *h200 = machine_find("H200");
    if (l2_traffic_init(&l2, &(struct l2_options){.machine = h200, .sample = sample}, &error))
        fail_msg("%s", error.text);
    l2_traffic_begin(&l2, "forward", p->cudnn ? h200->sms : 2 * h200->sms);
    struct move_list list = {0};
    const int64_t blocks = p->planes * ((p->seqlen - 1) / p->block_q + 1);
    for (int64_t id = 0; id < blocks; id++) {
        list.count = 0;
        add_block(&list, p, id);
        l2_traffic_block(&l2, &list);
    }
    l2_traffic_finish(&l2);
    const struct l2_launch launch = l2.launches[0];
    move_list_free(&list);
    l2_traffic_free(&l2);
    return launch;
}

static double error_of(int64_t predicted, int64_t measured)
{
    return (double)predicted / (double)measured - 1;
}

static void test_dram_bytes_are_those_measured(void **state)
{
    static struct csv table;
    int rows = 0, reads_near = 0, writes_near = 0;
    (void)state;
    csv_read(&table, COUNTERS);
    print_message(
        "DRAM, 10^6 bytes:                 read  predicted  error   written  predicted"
        "  error\n");
    for (int row = 0; row < table.rows; row++) {
        if (strcmp(csv_text(&table, row, "phase"), "forward") != 0)
            continue;
        const struct pass p = pass_of(&table, row);
        const struct l2_launch launch = replay(&p, 0);
        const int64_t read = csv_int(&table, row, "dram_bytes_read");
        const int64_t written = csv_int(&table, row, "dram_bytes_written");
        const double read_error = error_of(launch.dram_read_bytes, read);
        const double write_error = error_of(launch.dram_written_bytes, written);
        print_message("%-5s %2sx%2s N %5s d %3s %-6s %8.2f  %8.2f  %+5.1f%%  %8.2f  %8.2f  "
                      "%+5.1f%%\n",
                      p.cudnn ? "cuDNN" : "FA2", csv_text(&table, row, "batch"),
                      csv_text(&table, row, "heads"), csv_text(&table, row, "seqlen"),
                      csv_text(&table, row, "head_dim"), p.causal ? "causal" : "",
                      (double)read / 1e6, (double)launch.dram_read_bytes / 1e6,
                      100 * read_error, (double)written / 1e6,
                      (double)launch.dram_written_bytes / 1e6, 100 * write_error);
        reads_near += fabs(read_error) <= 0.05;
        writes_near += fabs(write_error) <= 0.10;
        rows++;
    }
    csv_free(&table);
    print_message("reads within 5 %%: %d of %d, writes within 10 %%: %d of %d\n", reads_near,
                  rows, writes_near, rows);
    assert_int_equal(rows, ROWS);
    assert_true(reads_near >= 27);
    assert_true(writes_near >= 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dram_bytes_are_those_measured),
    };
    return cmocka_run_group_tests_name("L2 and DRAM of an H200", tests, NULL, NULL);
}
