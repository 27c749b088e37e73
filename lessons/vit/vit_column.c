#include "vit/vit_column.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vit/vit.h"

enum { SEED = 1 };

/* Of the product that makes Q, K and V: all 196 rows, the columns of one head's Q, K and V, and
 * as much of the depth. */
enum { CORNER_COLS = 3 * VIT_HEAD_DIM, CORNER_DEPTH = VIT_HEAD_DIM };

static struct simulation simulation_of(const struct simulation *base, int algorithm, int heads)
{
    const struct heads h = {heads, VIT_PATCHES, VIT_HEAD_DIM, 1 / sqrt(VIT_HEAD_DIM),
                            NULL,  NULL};
    return vit_simulation(base, (enum algorithm)algorithm, &h);
}

static enum status open_recorded(struct vit_column *c, const struct simulation *base,
                                 int algorithm, struct error *error)
{
    struct simulation s = simulation_of(base, algorithm, VIT_HEADS);
    struct gpu_recording r;
    char path[4096];
    snprintf(path, sizeof path, "%s/lessons/recordings/vit_%s.json", FLASHLAB_ROOT,
             algorithm_name((enum algorithm)algorithm));
    if (gpu_recording_read(&r, path, error))
        return error->status;
    memcpy(c->date, r.date, sizeof c->date);
    const enum status status = comparison_recorded(&c->all_heads[algorithm], &s, &r, error);
    gpu_recording_free(&r);
    return status;
}

/* One head, in the lesson's tiles, on the CPU. */
static enum status open_on_cpu(struct vit_column *c, const struct simulation *base,
                               int algorithm, struct error *error)
{
    struct simulation s = simulation_of(base, algorithm, 1);
    const struct gpu_plan plan = {.seed = SEED, .cpu = true, .machine = s.machine};
    s.attention.dtype = DTYPE_F32;
    return comparison_live(&c->one_head[algorithm], &s, &plan, error);
}

static enum status open_live(struct vit_column *c, const struct options *o, int algorithm,
                             struct error *error)
{
    struct simulation s = simulation_of(&o->simulation, algorithm, VIT_HEADS);
    const struct gpu_plan plan = {.seed = SEED, .cpu = o->cpu, .machine = s.machine};
    return comparison_live(&c->all_heads[algorithm], &s, &plan, error);
}

static enum status open_projection(struct vit_column *c, struct error *error)
{
    struct kernel_run run;
    struct options o;
    options_init(&o);
    o.rows = VIT_PATCHES;
    o.cols = CORNER_COLS;
    o.depth = CORNER_DEPTH;
    o.tile = PROJECTION_TILE;
    if (kernel_run_make(&run, CPU_MATMUL_TILED, &o, error))
        return error->status;
    c->projection = run.sectors;
    c->product = run.result[0];
    kernel_run_free(&run);
    return STATUS_OK;
}

static enum status open_all(struct vit_column *c, const struct options *o, struct error *error)
{
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        if (c->live ? open_live(c, o, i, error)
                    : open_recorded(c, &o->simulation, i, error) ||
                          open_on_cpu(c, &o->simulation, i, error))
            return error->status;
    }
    return open_projection(c, error);
}

enum status vit_column_open(struct vit_column *c, const struct options *o, struct error *error)
{
    *c = (struct vit_column){.live = o->gpu || o->cpu};
    if (open_all(c, o, error)) {
        vit_column_close(c);
        return error->status;
    }
    return STATUS_OK;
}

static void say_head(struct lesson *l, bool on_cpu)
{
    lesson_say(l, "      %-28s %14s %14s %14s\n", "sectors of 32 bytes", "predicted",
               "simulated", on_cpu ? "CPU" : "measured");
}

/* A row of the table for each direction in which anything moves or should. */
static void claim_sectors(struct lesson *l, const char *who,
                          const int64_t predicted[DIRECTION_COUNT],
                          const int64_t simulated[DIRECTION_COUNT],
                          const int64_t measured[DIRECTION_COUNT])
{
    static const char *const names[DIRECTION_COUNT] = {"loaded", "stored", "reduced"};
    char claim[64];
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        if (predicted[n] == 0 && simulated[n] == 0 && measured[n] == 0)
            continue;
        snprintf(claim, sizeof claim, "%s, %s", who, names[n]);
        lesson_claim_measured(l, claim, predicted[n], simulated[n], measured[n]);
    }
}

static void claim_all(struct lesson *l, const struct comparison of[ALGORITHM_COUNT])
{
    char claim[64];
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (of[i].launches > 0)
            claim_sectors(l, algorithm_name((enum algorithm)i), of[i].predicted,
                          of[i].simulated, of[i].measured);
        else
            lesson_say(l, "Not counted: %s\n", of[i].seen.uncounted);
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        snprintf(claim, sizeof claim, "%s: O and LSE agree", algorithm_name((enum algorithm)i));
        lesson_claim_error(l, claim, 1.0, fmax(of[i].o_difference, of[i].lse_difference));
    }
}

void vit_column_claim(struct lesson *l, const struct vit_column *c)
{
    const struct observation *seen = &c->all_heads[0].seen;
    lesson_say(l,
               "Random Q, K and V of this shape, 12 heads of 196 x 64; standard attention on\n"
               "real tiles. Errors are shares of the tolerance, 1e-5 (1 + |x|).\n");
    if (seen->on_cpu)
        lesson_say(l, "The kernels' source, executed on this CPU.\n\n");
    else
        lesson_say(l, "On an %s (driver %s, CUDA %d.%d),\n%s%s.\n\n", seen->gpu, seen->driver,
                   seen->cuda_version / 1000, seen->cuda_version % 1000 / 10,
                   c->live ? "run just now" : "recorded ", c->live ? "" : c->date);
    say_head(l, seen->on_cpu);
    claim_all(l, c->all_heads);
    if (!c->live) {
        lesson_say(l, "\nOne head of it, the source executed on this CPU, every access "
                      "observed:\n\n");
        say_head(l, true);
        claim_all(l, c->one_head);
    }
    lesson_say(
        l,
        "\nThe projection's kernel, matmul_tiled, on this CPU, which cannot wait for all\n"
        "of it: %d x %d times %d x %d, in the same tiles:\n\n",
        VIT_PATCHES, CORNER_DEPTH, CORNER_DEPTH, CORNER_COLS);
    say_head(l, true);
    claim_sectors(l, "matmul_tiled", c->projection.predicted, c->projection.simulated,
                  c->projection.measured);
    lesson_claim_error(l, "matmul_tiled: C agrees", 1.0, c->product.difference);
}

void vit_column_close(struct vit_column *c)
{
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        comparison_free(&c->all_heads[i]);
        comparison_free(&c->one_head[i]);
    }
}
