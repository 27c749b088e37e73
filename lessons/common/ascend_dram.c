#include "common/ascend_dram.h"

#include <stdbool.h>

#include "common/ascend_counting.h"
#include "common/report.h"
#include "models/l2_traffic.h"

enum { MOST_ROWS = 4096 }; /* the model replays every tile */

/* Bytes between L2 and HBM, and what is left in L2, to be written later. */
struct dram {
    int64_t read, written, dirty;
};

static enum status run_behind(struct dram *dram, const struct attention *a, int64_t l2_bytes,
                              struct error *error)
{
    struct machine machine = *machine_find("Ascend-910B");
    struct l2_traffic l2;
    struct ascend_counted c;
    machine.l2_bytes = l2_bytes;
    machine.l2_line_bytes = L2_LINE_BYTES; /* what the model has */
    machine.l2_sector_bytes = SECTOR_BYTES;
    if (l2_traffic_init(&l2, &(struct l2_options){.machine = &machine, .sample = 1}, error))
        return error->status;
    ascend_counting_prepare(&c, &ascend_designs[DESIGN_910B], a);
    c.run.observer = &l2.observer;
    const enum status status = ascend_count(&c.run, error);
    l2_traffic_finish(&l2);
    *dram = (struct dram){l2.launches[0].dram_read_bytes, l2.launches[0].dram_written_bytes,
                          l2.launches[0].dirty_bytes};
    l2_traffic_free(&l2);
    return status;
}

static void print_row(struct lesson *l, int64_t l2_bytes, const struct dram *dram)
{
    char x[3][32];
    lesson_say(l, "%12.0f %20s %20s %20s\n", (double)l2_bytes / (1 << 20),
               report_grouped(x[0], dram->read), report_grouped(x[1], dram->written),
               report_grouped(x[2], dram->dirty));
}

/* Bytes of the sectors that a tensor of one plane takes. */
static int64_t in_sectors(int64_t elements, enum dtype dtype)
{
    return (elements * dtype_bytes(dtype) + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
}

/* Every place in GM is filled to its end, and ends where a sector does. */
static bool fills_workspace(const struct attention *a)
{
    return attention_tiles_k(a) >= ASCEND_SLOTS && a->seqlen_q % a->block_q == 0 &&
           a->seqlen_k % a->block_k == 0 &&
           (int64_t)a->block_q * a->block_k * dtype_bytes(a->dtype) % SECTOR_BYTES == 0 &&
           (int64_t)a->block_q * a->head_dim_v * dtype_bytes(DTYPE_F32) % SECTOR_BYTES == 0;
}

/* With the 910B's own L2. */
static void claim_own(struct lesson *l, const struct ascend_counted *c, const struct dram *dram,
                      int64_t workspace)
{
    const struct attention *a = &c->run.attention;
    const int64_t N = a->seqlen_q, d = a->head_dim;
    lesson_claim_count(l, "With the 910B's L2 HBM gives Q, K and V once, and no S, P or Oij",
                       "bytes", 3 * in_sectors(N * d, a->dtype), dram->read);
    if (fills_workspace(a))
        lesson_claim_count(l, "In the end L2 holds what is new: O, LSE and those tiles",
                           "bytes",
                           in_sectors(N * d, a->dtype) + in_sectors(N, DTYPE_F32) + workspace,
                           dram->written + dram->dirty);
}

enum status ascend_claim_dram(struct lesson *l, struct error *error)
{
    const struct attention *own = &l->options->simulation.attention;
    const struct attention a =
        counting_with_seqlen(own, own->seqlen_q < MOST_ROWS ? own->seqlen_q : MOST_ROWS);
    const int64_t l2_bytes = machine_find("Ascend-910B")->l2_bytes;
    struct ascend_counted c;
    struct dram dram[3] = {{0}};
    char x[32];
    if (ascend_counting_run(&c, &ascend_designs[DESIGN_910B], &a, error))
        return error->status;
    const int64_t workspace = ascend_workspace_bytes(&c);
    lesson_say(
        l,
        "S, P and Oij have two tiles each for every AI core that works: %s bytes\n"
        "of GM, used again and again, whatever N is. A model of L2, empty at first, says\n"
        "what reaches HBM at N = %d. (It was held against an H200, not an Ascend.)\n\n"
        "%12s %20s %20s %20s\n",
        report_grouped(x, workspace), a.seqlen_q, "L2, MiB", "read from HBM", "written to HBM",
        "left in L2");
    for (int i = 0; i < 3; i++) {
        const int64_t bytes = l2_bytes >> (i ? 2 * i + 2 : 0);
        if (run_behind(&dram[i], &a, bytes, error))
            return error->status;
        print_row(l, bytes, &dram[i]);
    }
    lesson_say(l, "\n");
    claim_own(l, &c, &dram[0], workspace);
    if (workspace > l2_bytes >> 6)
        lesson_claim_count(l, "With an L2 smaller than those tiles they reach HBM",
                           "(1: yes, 0: no)", 1, dram[2].read > dram[0].read);
    return STATUS_OK;
}
