#include "common/production.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

/* Tensors of half precision, by their place in memory; the float ones lie behind them. */
enum tensor { Q, K, V, O, DQ, DK, DV, DO, HALF_TENSORS };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static enum production_phase phase_of(const char *name)
{
    static const char *const names[] = {"forward", "backward_delta", "backward_main",
                                        "backward_convert_dq"};
    for (int phase = PHASE_FORWARD; phase <= PHASE_CONVERT; phase++)
        if (strcmp(name, names[phase]) == 0)
            return (enum production_phase)phase;
    fail_msg("phase %s", name);
    return PHASE_FORWARD;
}

/* The forward pass of FlashAttention-2 has K/V tiles of 128 rows at d = 64, else of 64. It
 * stores spilled registers again for each of them: l2_write_sectors grow by 96 (d = 64) and 224
 * (d = 128) a tile beyond what is stored to O and LSE, by nothing at d = 256. cuDNN's do not.
 */
struct production production_of(const struct csv *table, int row)
{
    const int head_dim = (int)csv_int(table, row, "head_dim");
    const bool cudnn = strncmp(csv_text(table, row, "implementation"), "cudnn", 5) == 0;
    const enum production_phase phase = phase_of(csv_text(table, row, "phase"));
    const bool forward = phase == PHASE_FORWARD;
    const bool causal = csv_int(table, row, "causal") == 1, spills = forward && !cudnn;
    const int spilled_sectors = head_dim == 64 ? 96 : head_dim == 128 ? 224 : 0;
    const int at_mask_sectors = head_dim == 64 ? 62 : head_dim == 128 ? 29 : 0;
    return (struct production){
        .phase = phase,
        .cudnn = cudnn,
        .causal = causal,
        .writes_lse = csv_int(table, row, "global_store_sectors") > 0,
        .planes = csv_int(table, row, "batch") * csv_int(table, row, "heads"),
        .seqlen = csv_int(table, row, "seqlen"),
        .row_bytes = (int64_t)head_dim * 2,
        .block_q = forward ? (int)csv_int(table, row, "block_q") : 128,
        .block_k = !forward || cudnn || head_dim == 64 ? 128 : 64,
        .spilled_bytes = spills ? spilled_sectors * SECTOR_BYTES : 0,
        .spilled_at_mask_bytes = spills && causal ? at_mask_sectors * SECTOR_BYTES : 0,
    };
}

static void add_bytes(struct move_list *list, enum direction direction, int64_t address,
                      int64_t bytes)
{
    if (bytes > 0)
        move_list_add(list, &(struct move){address, bytes, 1, (int32_t)bytes, direction});
}

static void add_rows(struct move_list *list, const struct production *p, enum tensor tensor,
                     enum direction direction, int64_t plane, int64_t row, int64_t rows)
{
    add_bytes(list, direction, ((tensor * p->planes + plane) * p->seqlen + row) * p->row_bytes,
              least(rows, p->seqlen - row) * p->row_bytes);
}

/* Rows of the float accumulator of dQ. */
static void add_sums(struct move_list *list, const struct production *p,
                     enum direction direction, int64_t plane, int64_t row, int64_t rows)
{
    const int64_t base = HALF_TENSORS * p->planes * p->seqlen * p->row_bytes;
    add_bytes(list, direction, base + (plane * p->seqlen + row) * 2 * p->row_bytes,
              rows * 2 * p->row_bytes);
}

/* A float a row: number 0 is the LSE, 1 the delta of the backward pass. */
static void add_statistics(struct move_list *list, const struct production *p, int number,
                           enum direction direction, int64_t plane, int64_t row, int64_t rows)
{
    const int64_t base = (HALF_TENSORS + 2) * p->planes * p->seqlen * p->row_bytes;
    add_bytes(list, direction, base + ((number * p->planes + plane) * p->seqlen + row) * 4,
              least(rows, p->seqlen - row) * 4);
}

/* Block number id of the grid. cuDNN takes the long tiles of a causal plane first. */
static void add_forward(struct move_list *list, const struct production *p, int64_t id)
{
    const int64_t tiles = (p->seqlen - 1) / p->block_q + 1, plane = id / tiles;
    const int64_t i = p->cudnn && p->causal ? tiles - 1 - id % tiles : id % tiles;
    const int64_t row = i * p->block_q;
    const int64_t visible = p->causal ? least(row + p->block_q, p->seqlen) : p->seqlen;
    const int64_t spilled = (HALF_TENSORS + 4) * p->planes * p->seqlen * p->row_bytes +
                            id * (p->spilled_bytes + p->spilled_at_mask_bytes);
    add_rows(list, p, Q, DIRECTION_READ, plane, row, p->block_q);
    for (int64_t j = (visible - 1) / p->block_k; j >= 0; j--) {
        add_rows(list, p, K, DIRECTION_READ, plane, j * p->block_k, p->block_k);
        add_rows(list, p, V, DIRECTION_READ, plane, j * p->block_k, p->block_k);
        add_bytes(list, DIRECTION_WRITE, spilled, p->spilled_bytes);
    }
    add_bytes(list, DIRECTION_WRITE, spilled + p->spilled_bytes, p->spilled_at_mask_bytes);
    add_rows(list, p, O, DIRECTION_WRITE, plane, row, p->block_q);
    if (p->writes_lse)
        add_statistics(list, p, 0, DIRECTION_WRITE, plane, row, p->block_q);
}

/* delta = rowsum(dO o O), and the accumulator of dQ is set to zero. */
static void add_delta(struct move_list *list, const struct production *p, int64_t id)
{
    const int64_t tiles = p->seqlen / p->block_q, plane = id / tiles;
    const int64_t row = id % tiles * p->block_q;
    add_rows(list, p, O, DIRECTION_READ, plane, row, p->block_q);
    add_rows(list, p, DO, DIRECTION_READ, plane, row, p->block_q);
    add_statistics(list, p, 1, DIRECTION_WRITE, plane, row, p->block_q);
    add_sums(list, p, DIRECTION_WRITE, plane, row, p->block_q);
}

/* A block a K/V tile, over the Q tiles that see it, the last first. */
static void add_main(struct move_list *list, const struct production *p, int64_t id)
{
    const int64_t tiles = p->seqlen / p->block_k, plane = id / tiles, j = id % tiles;
    add_rows(list, p, K, DIRECTION_READ, plane, j * p->block_k, p->block_k);
    add_rows(list, p, V, DIRECTION_READ, plane, j * p->block_k, p->block_k);
    for (int64_t i = tiles - 1; i >= (p->causal ? j : 0); i--) {
        const int64_t row = i * p->block_q;
        add_rows(list, p, Q, DIRECTION_READ, plane, row, p->block_q);
        add_rows(list, p, DO, DIRECTION_READ, plane, row, p->block_q);
        add_statistics(list, p, 0, DIRECTION_READ, plane, row, p->block_q);
        add_statistics(list, p, 1, DIRECTION_READ, plane, row, p->block_q);
        add_sums(list, p, DIRECTION_REDUCE, plane, row, p->block_q);
    }
    add_rows(list, p, DK, DIRECTION_WRITE, plane, j * p->block_k, p->block_k);
    add_rows(list, p, DV, DIRECTION_WRITE, plane, j * p->block_k, p->block_k);
}

/* The accumulator of dQ is rounded to half precision. */
static void add_convert(struct move_list *list, const struct production *p, int64_t id)
{
    const int64_t tiles = p->seqlen / p->block_q, plane = id / tiles;
    const int64_t row = id % tiles * p->block_q;
    add_sums(list, p, DIRECTION_READ, plane, row, p->block_q);
    add_rows(list, p, DQ, DIRECTION_WRITE, plane, row, p->block_q);
}

/* By phase. Two blocks of FlashAttention-2 fit on an SM forward: their registers allow no more.
 * cuDNN's are one an SM and persistent. The small kernels have many. */
static const struct {
    void (*add)(struct move_list *list, const struct production *p, int64_t id);
    int blocks_per_sm;
} phases[] = {
    [PHASE_FORWARD] = {add_forward, 2},
    [PHASE_DELTA] = {add_delta, 8},
    [PHASE_MAIN] = {add_main, 1},
    [PHASE_CONVERT] = {add_convert, 8},
};

/* What Nsight Compute leaves in L2: dirty data of its own. Kernels of ours that fill L2 were
 * seen to write 1.2 to 4.3 MB more under it than in cuda/results/h200_l2.csv. */
static void profile(struct l2_traffic *l2, struct move_list *list)
{
    enum { PROFILER_BYTES = 2000000 };
    const int64_t address = INT64_C(1) << 38; /* far from the tensors */
    l2_traffic_begin(l2, "profiler", 1);
    add_bytes(list, DIRECTION_WRITE, address, PROFILER_BYTES);
    l2_traffic_block(l2, list);
}

struct l2_launch production_replay(const struct production *p, int sample)
{
    struct l2_traffic l2;
    struct error error;
    const struct machine *h200 = machine_find("H200");
    if (l2_traffic_init(
            &l2, &(struct l2_options){.machine = h200, .sample = sample, .in_step = true},
            &error))
        fail_msg("%s", error.text);
    struct move_list list = {0};
    profile(&l2, &list);
    const bool persistent = p->cudnn && (p->phase == PHASE_FORWARD || p->phase == PHASE_MAIN);
    const int block = p->phase == PHASE_MAIN ? p->block_k : p->block_q;
    const int64_t blocks = p->planes * ((p->seqlen - 1) / block + 1);
    l2_traffic_begin(
        &l2, "production",
        (int)least(blocks, h200->sms * (persistent ? 1 : phases[p->phase].blocks_per_sm)));
    for (int64_t id = 0; id < blocks; id++) {
        list.count = 0;
        phases[p->phase].add(&list, p, id);
        l2_traffic_block(&l2, &list);
    }
    l2_traffic_finish(&l2);
    const struct l2_launch launch = l2.launches[1];
    move_list_free(&list);
    l2_traffic_free(&l2);
    return launch;
}
