#include "common/ascend_figures.h"

#include <inttypes.h>

#include "common/ascend_counting.h"

/* Bars are numbered from left to right. */
static void write_bar(FILE *csv, const char *figure, int bar, const char *label,
                      const int64_t bytes[3], const struct attention *a)
{
    fprintf(csv, "%s,%d,%s,%d,%d,%d,%d,%s,%" PRId64 ",%" PRId64 ",%" PRId64 "\n", figure, bar,
            label, a->seqlen_q, a->head_dim, a->block_q, a->block_k, dtype_name(a->dtype),
            bytes[0], bytes[1], bytes[2]);
}

/* Q, K, V and O; S and P; Oij. */
static void kinds_of(int64_t kinds[3], const struct account *account)
{
    kinds[1] = counting_tensor_bytes(account, "S") + counting_tensor_bytes(account, "P");
    kinds[2] = counting_tensor_bytes(account, "Oij");
    kinds[0] = counting_matrix_bytes(account) - kinds[1];
}

/* The ways of the AI cores, each split by what moves on it. */
static void write_ways(FILE *csv, struct ascend_beside_gpu *both, const struct attention *a)
{
    struct account *ascend = &both->ascend.simulated.account;
    const int64_t *path = both->ascend.simulated.path_bytes;
    const int64_t S = counting_tensor_bytes(ascend, "S") / 2;
    const int64_t P = counting_tensor_bytes(ascend, "P") / 2;
    const int64_t Oij = counting_tensor_bytes(ascend, "Oij") / 2;
    const struct traffic gpu = account_total(&both->gpu.simulated);
    const struct {
        const char *label;
        int64_t kinds[3];
    } bars[] = {
        {"HBM to SRAM", {gpu.of[DIRECTION_READ].bytes, 0, 0}},
        {"registers to HBM", {gpu.of[DIRECTION_WRITE].bytes, 0, 0}},
        {"GM to L1", {path[PATH_GM_TO_L1] - P, P, 0}},
        {"GM to UB", {0, S, Oij}},
        {"L0C to GM", {0, S, Oij}},
        {"UB to GM", {path[PATH_UB_TO_GM] - P, P, 0}},
        {"L1 to L0A", {path[PATH_L1_TO_L0A] - P, P, 0}},
        {"L1 to L0B", {path[PATH_L1_TO_L0B], 0, 0}},
    };
    for (size_t i = 0; i < sizeof bars / sizeof bars[0]; i++)
        write_bar(csv, "ways", (int)i, bars[i].label, bars[i].kinds, a);
}

enum status ascend_figures_write(FILE *csv, const struct options *o, struct error *error)
{
    const struct attention *a = &o->simulation.attention;
    struct ascend_beside_gpu both;
    int64_t kinds[3];
    fprintf(csv, "figure,bar,label,seqlen,head_dim,block_q,block_k,dtype,qkvo_bytes,"
                 "scores_bytes,products_bytes\n");
    if (ascend_beside_gpu_run(&both, a, error))
        return error->status;
    write_ways(csv, &both, a);
    kinds_of(kinds, &both.gpu.simulated);
    write_bar(csv, "designs", 0, "GPU", kinds, a);
    for (int id = 0, bar = 1; id < DESIGN_COUNT; id++) {
        struct ascend_counted c;
        char name[DESIGN_NAME_SIZE];
        if (ascend_counting_run(&c, &ascend_designs[id], a, error)) {
            if (error->status != STATUS_ON_CHIP_FULL)
                return error->status;
            continue; /* the figure shows what fits */
        }
        kinds_of(kinds, &c.simulated.account);
        write_bar(csv, "designs", bar++,
                  ascend_design_name(name, &ascend_designs[id], a->dtype), kinds,
                  &c.run.attention);
    }
    return STATUS_OK;
}
