#include "common/ascend_published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/published.h"
#include "common/recording.h"
#include "common/report.h"

static const struct {
    int seqlen;
    double us; /* of "PTO time" */
} published[] = {
    {1024, 20.960},  {2048, 32.461},   {4096, 88.902},
    {8192, 292.626}, {16384, 909.058}, {32768, 3262.645},
};

enum { READ_BYTES_PER_CLOCK = 110, WRITE_BYTES_PER_CLOCK = 86, CUBE_FLOPS_PER_CLOCK = 8192 };
static const double clocks_per_us = 1800;

/* Least times of the AI core that has the most Q tiles, in us. */
struct floors {
    double cube;      /* matrix products */
    double loads;     /* of the cube core: Q, K, V and P */
    double stores;    /* of the cube core: S, without Oij, whose tiles the source leaves open */
    double all_loads; /* of its vector cores too: S */
};

static struct floors floors_of(const struct ascend_counted *c)
{
    const struct attention *a = &c->run.attention;
    const struct account *account = &c->simulated.account;
    const int tiles = attention_tiles_q(a);
    const int most = (tiles + c->chip.ai_cores - 1) / c->chip.ai_cores;
    const double share = (double)most / tiles / clocks_per_us;
    const double scores = (double)counting_tensor_bytes(account, "S") / 2;
    const double loads = (double)c->simulated.path_bytes[PATH_GM_TO_L1];
    return (struct floors){
        .cube = share * (double)account->flops.matrix / CUBE_FLOPS_PER_CLOCK,
        .loads = share * loads / READ_BYTES_PER_CLOCK,
        .stores = share * scores / WRITE_BYTES_PER_CLOCK,
        .all_loads = share * (loads + scores) / READ_BYTES_PER_CLOCK,
    };
}

static struct attention published_problem(int seqlen)
{
    return (struct attention){.batch = 1,
                              .heads_q = 1,
                              .heads_kv = 1,
                              .seqlen_q = seqlen,
                              .seqlen_k = seqlen,
                              .head_dim = 128,
                              .head_dim_v = 128,
                              .scale = 1.0f / sqrtf(128.0f),
                              .dtype = DTYPE_F16,
                              .block_q = 128,
                              .block_k = 128};
}

enum status ascend_claim_times(struct lesson *l, struct error *error)
{
    const int count = sizeof published / sizeof published[0];
    int above = 0;
    lesson_say(l, "%8s %10s %11s %11s %14s %14s\n", "", "cube:", "loads", "stores",
               "loads of all,", "published");
    lesson_say(l, "%8s %10s %11s %11s %14s %14s\n", "N", "products", "Q K V P", "S",
               "if one port", "time, us");
    for (int i = 0; i < count; i++) {
        const struct attention a = published_problem(published[i].seqlen);
        struct ascend_counted c;
        char n[32];
        if (ascend_counting_run(&c, &ascend_designs[DESIGN_910B], &a, error))
            return error->status;
        const struct floors f = floors_of(&c);
        above += published[i].us >= fmax(f.cube, fmax(f.loads, f.stores));
        lesson_say(l, "%8s %10.1f %11.1f %11.1f %14.1f %14.1f\n", report_grouped(n, a.seqlen_q),
                   f.cube, f.loads, f.stores, f.all_loads, published[i].us);
    }
    lesson_say(l, "\n");
    lesson_claim_count(l, "No published time is below the three floors of the cube core",
                       "lengths", count, above);
    return STATUS_OK;
}

/* One kernel that an H200 ran: its loads, counted there; and what a 910B moves for the same
 * problem with the same tiles. */
static enum status claim_recorded(struct lesson *l, const struct recorded_kernel *k,
                                  struct error *error)
{
    const struct attention a = recorded_problem(k);
    struct ascend_beside_gpu both;
    char claim[64], x[2][32];
    if (ascend_beside_gpu_run(&both, &a, error))
        return error->status;
    const int64_t ascend = ascend_gm_bytes(&both.ascend.simulated);
    const int64_t gpu = counting_matrix_bytes(&both.gpu.simulated);
    snprintf(claim, sizeof claim, "%2dx%d %5d %3d%s", k->batch, k->heads, k->seqlen,
             k->head_dim, k->causal ? " causal" : "");
    lesson_claim_measured(l, claim, account_total(&both.gpu.predicted).of[0].sectors,
                          account_total(&both.gpu.simulated).of[0].sectors,
                          k->global_load_sectors);
    lesson_say(l, "      910B %s bytes, GPU %s: %.2f times\n", report_grouped(x[0], ascend),
               report_grouped(x[1], gpu), (double)ascend / (double)gpu);
    return STATUS_OK;
}

enum status ascend_claim_recorded(struct lesson *l, struct error *error)
{
    struct recorded_kernel *kernels;
    enum status status = STATUS_OK;
    const int count = recording_read(&kernels, error);
    if (count < 0)
        return error->status;
    lesson_say(
        l,
        "There is no Ascend here. Measured is the GPU's side: the sectors of 32 bytes\n"
        "that PyTorch's FlashAttention-2 loaded on an H200, fp16 (lessons/recordings).\n"
        "Below each: all bytes of both machines for that problem, with the same tiles.\n\n"
        "      %-28s %14s %14s %14s\n",
        "batch x heads, N, d", "predicted", "simulated", "measured");
    for (int i = 0; i < count && !status; i++)
        if (strcmp(kernels[i].phase, "forward") == 0 && kernels[i].tma_load_bytes == 0)
            status = claim_recorded(l, &kernels[i], error);
    free(kernels);
    return status;
}

void ascend_say_what_to_measure(struct lesson *l, const struct ascend_counted *c)
{
    static const struct {
        const char *field;
        enum path path;
    } fields[] = {
        {"GM_to_L1_datas(KB)", PATH_GM_TO_L1},
        {"L0C_to_GM_datas(KB)", PATH_L0C_TO_GM},
        {"GM_to_UB_datas(KB)", PATH_GM_TO_UB},
        {"UB_to_GM_datas(KB)", PATH_UB_TO_GM},
    };
    char x[32];
    lesson_say(l,
               "\nOn a 910B, `msprof op` counts these ways (Memory.csv). For a kernel of this\n"
               "order and these tiles, all cores together, padding apart, we predict:\n\n");
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
        lesson_say(l, "  %-22s %16s\n", fields[f].field,
                   report_grouped(x, c->predicted.path_bytes[fields[f].path] / 1024));
}
