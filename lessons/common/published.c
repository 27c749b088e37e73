#include "common/published.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/counting.h"
#include "common/sweeps.h"

enum status lesson_claim_figure2(struct lesson *l, struct error *error)
{
    lesson_say(l,
               "FlashAttention-1 forward, batch 64, heads 16, N 1024, d 64, fp16, A100-40GB:\n"
               "GB (1e9 bytes) of Q, K, V and O; l and m are not counted.\n\n");
    for (int i = 0; i < FIGURE2_POINTS; i++) {
        const struct figure2_point *point = &figure2_points[i];
        const struct simulation s = sweeps_figure2(point->block_k);
        struct counted c;
        char claim[96], simulated[32];
        if (counting_run(&c, &s, s.algorithm, &s.attention, error))
            return error->status;
        const struct launch_record *r = &c.simulation.gpu.launches[0];
        snprintf(claim, sizeof claim,
                 "Bc = %3d: GB moved; tiles: %" PRId64 " KB SRAM, %" PRId64 " KB registers",
                 point->block_k, r->peak_bytes[LEVEL_SRAM] / 1024,
                 r->peak_bytes[LEVEL_REGISTERS] / 1024);
        snprintf(simulated, sizeof simulated, "%.3f",
                 (double)counting_matrix_bytes(&c.simulated) / 1e9);
        lesson_claim_printed(l, claim, "the paper prints", point->printed, simulated);
        const int64_t scores = counting_tile_bytes(&c, "Sij, Pij");
        if (scores + r->peak_bytes[LEVEL_SRAM] > s.machine->sram_bytes_per_block)
            lesson_say(l,
                       "      (%" PRId64 " KB of scores live in registers: in %" PRId64
                       " KB of SRAM they would not fit)\n",
                       scores / 1024, s.machine->sram_bytes_per_block / 1024);
    }
    return STATUS_OK;
}

struct attention recorded_problem(const struct recorded_kernel *k)
{
    return (struct attention){.batch = k->batch,
                              .heads_q = k->heads,
                              .heads_kv = k->heads,
                              .seqlen_q = k->seqlen,
                              .seqlen_k = k->seqlen,
                              .head_dim = k->head_dim,
                              .head_dim_v = k->head_dim,
                              .scale = 1.0f / sqrtf((float)k->head_dim),
                              .mask = k->causal ? MASK_CAUSAL : MASK_NONE,
                              .dtype = DTYPE_F16,
                              .block_q = k->block_q,
                              .block_k = k->block_q};
}

/* Requests of the SMs to memory: the same thing, counted three times. */
static enum status claim_recorded(struct lesson *l, const struct recorded_kernel *k,
                                  struct error *error)
{
    const bool tma = k->tma_load_bytes > 0;
    const struct simulation base = {.machine = machine_find("H200"), .tma = tma};
    const struct attention a = recorded_problem(k);
    struct counted c;
    char claim[128];
    if (counting_run(&c, &base, ALGORITHM_FLASH2, &a, error))
        return error->status;
    const struct amount predicted = account_total(&c.predicted).of[DIRECTION_READ];
    const struct amount simulated = account_total(&c.simulated).of[DIRECTION_READ];
    snprintf(claim, sizeof claim, "%s %2dx%d %5d %3d%s", tma ? "cuDNN" : "FA2  ", k->batch,
             k->heads, k->seqlen, k->head_dim, k->causal ? " causal" : "");
    if (tma)
        lesson_claim_measured(l, claim, predicted.bytes, simulated.bytes, k->tma_load_bytes);
    else
        lesson_claim_measured(l, claim, predicted.sectors, simulated.sectors,
                              k->global_load_sectors);
    return STATUS_OK;
}

enum status lesson_claim_h200(struct lesson *l, struct error *error)
{
    struct recorded_kernel *kernels;
    enum status status = STATUS_OK;
    const int count = recording_read(&kernels, error);
    if (count < 0)
        return error->status;
    lesson_say(l,
               "Two production kernels, forward, fp16 (lessons/recordings). FA2: PyTorch's\n"
               "FlashAttention-2, sectors of 32 bytes loaded. cuDNN: bytes loaded by the copy\n"
               "engine (TMA), which moves whole boxes: at N = 1000 a pass costs 1024 rows.\n\n"
               "      %-28s %14s %14s %14s\n",
               "kernel, batch x heads, N, d", "predicted", "simulated", "measured");
    for (int i = 0; i < count && !status; i++)
        if (strcmp(kernels[i].phase, "forward") == 0)
            status = claim_recorded(l, &kernels[i], error);
    free(kernels);
    return status;
}
