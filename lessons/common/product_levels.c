#include "common/product_claims.h"

#include <math.h>
#include <string.h>

enum status product_levels_find(struct product_levels *levels, const struct product *product,
                                const struct basic_row *row, const char *gpu,
                                const struct machine *machine, struct error *error)
{
    const struct io_matmul shape = {row->shape.rows, row->shape.cols, row->shape.depth};
    const bool known = (row->source == BASIC_ON_GPU || row->source == BASIC_RECORDED) &&
                       strstr(gpu, machine->name);
    struct product_counts counts;
    struct product_dram dram;
    struct error unknown = {0};
    if (product_count(&counts, &row->shape, machine, error))
        return error->status;
    const struct amount asked = account_total(&counts.simulated).of[DIRECTION_READ];
    const bool has_l2 =
        !product_dram_predict(&dram, &product->blocks, &shape, machine, &unknown);
    *levels = (struct product_levels){
        .model = {[PRODUCT_LANES] = (double)asked.bytes,
                  [PRODUCT_SECTORS] = (double)asked.sectors * SECTOR_BYTES,
                  [PRODUCT_L2] = has_l2 ? (double)dram.l2_bytes : -1,
                  [PRODUCT_DRAM] = has_l2 ? (double)dram.dram_bytes : -1},
        .measured = {
            [PRODUCT_LANES] = -1,
            [PRODUCT_SECTORS] =
                known ? (double)row->sectors.measured[DIRECTION_READ] * SECTOR_BYTES : -1,
            [PRODUCT_L2] = known && row->l2_sectors > 0 ? row->l2_sectors * SECTOR_BYTES : -1,
            [PRODUCT_DRAM] = known ? row->dram_read_bytes : -1}};
    return STATUS_OK;
}

static void say_number(struct lesson *l, double bytes)
{
    if (bytes < 0)
        lesson_say(l, " %8s", "-");
    else
        lesson_say(l, bytes < 9.995e9 ? " %8.3f" : " %8.1f", bytes / 1e9);
}

static void say_levels(struct lesson *l, const struct product *product,
                       const struct product_levels *levels)
{
    char name[PRODUCT_NAME_LENGTH];
    lesson_say(l, "%-22s", product_name(name, product));
    say_number(l, levels->model[PRODUCT_LANES]);
    say_number(l, levels->model[PRODUCT_SECTORS]);
    for (int level = PRODUCT_L2; level < PRODUCT_LEVELS; level++) {
        say_number(l, levels->model[level]);
        say_number(l, levels->measured[level]);
    }
    lesson_say(l, "\n");
}

/* How far apart the two are, as a factor from 1 on; 0 if one is not known. */
static double factor(const struct product_levels *levels, enum product_level level)
{
    const double model = levels->model[level], measured = levels->measured[level];
    return model < 0 || measured < 0 ? 0 : fmax(model / measured, measured / model);
}

static void claim_factors(struct lesson *l, const struct product_levels levels[PRODUCTS])
{
    double l2 = 0, dram = 0;
    for (int n = 0; n < PRODUCTS; n++) {
        l2 = fmax(l2, factor(&levels[n], PRODUCT_L2));
        dram = fmax(dram, factor(&levels[n], PRODUCT_DRAM));
    }
    if (l2 > 0)
        lesson_claim_error(
            l, "From L2: model and measured differ by less than a quarter, as a factor", 1.25,
            l2);
    if (dram > 0)
        lesson_claim_error(l, "From DRAM: the model is right within a factor of 2", 2, dram);
}

/* The naive product's way down. */
static void say_naive(struct lesson *l, const struct product_levels *naive, bool beyond_l2)
{
    const double *of = naive->model;
    if (of[PRODUCT_L2] < 0)
        return;
    lesson_say(
        l,
        "\nnaive: %.1f GB are what lanes ask for. The 32 lanes of a warp want one element\n"
        "of A: %.1f GB of sectors. The four warps of a block want the same of B, and a\n"
        "sector of A serves 8 steps: L1 lets %.1f GB through.",
        of[PRODUCT_LANES] / 1e9, of[PRODUCT_SECTORS] / 1e9, of[PRODUCT_L2] / 1e9);
    if (beyond_l2 && naive->measured[PRODUCT_DRAM] >= 0)
        lesson_say(l,
                   " Other blocks find in L2\nwhat one has read: from DRAM come %.1f GB, 1 / "
                   "%.0f of what lanes ask for.",
                   naive->measured[PRODUCT_DRAM] / 1e9,
                   of[PRODUCT_LANES] / naive->measured[PRODUCT_DRAM]);
    lesson_say(l, "\n\n");
}

enum status product_claim_levels(struct lesson *l, const struct basic_column *k,
                                 struct error *error)
{
    struct product_levels levels[PRODUCTS] = {{{0}, {0}}};
    lesson_say(l,
               "GB (10^9 bytes) read\n%-22s %8s %8s %17s %17s\n%-22s %8s %8s %8s %8s %8s %8s\n",
               "", "lanes", "of", "from L2", "from DRAM", "", "ask for", "sectors", "model",
               "measured", "model", "measured");
    for (int n = 0; n < PRODUCTS; n++) {
        if (product_levels_find(&levels[n], &products[n], &k->row[n], k->gpu,
                                l->options->simulation.machine, error))
            return error->status;
        say_levels(l, &products[n], &levels[n]);
    }
    const struct cpu_run *shape = &k->row[0].shape;
    const int64_t operands =
        ((int64_t)shape->rows + shape->cols) * shape->depth * (int64_t)sizeof(float);
    const bool beyond_l2 = operands > l->options->simulation.machine->l2_bytes;
    say_naive(l, &levels[PRODUCT_NAIVE], beyond_l2);
    if (beyond_l2)
        claim_factors(l, levels);
    else
        lesson_say(
            l,
            "A and B fit L2, where the profiler, which runs each kernel several times, left\n"
            "them: measured is what L2 lacked then.\n");
    return STATUS_OK;
}
