#include "vit/vit_figure.h"

#include <inttypes.h>
#include <math.h>

#include "common/counting.h"
#include "vit/vit.h"

static void write_map(FILE *csv, const char *kind, int head, const double *map)
{
    for (int i = 0; i < VIT_PATCHES; i++)
        fprintf(csv, "%s,%d,%d,%d,%.4f,,,,,,\n", kind, head, i / VIT_GRID, i % VIT_GRID,
                100 * map[i]);
}

static void write_maps(FILE *csv, const struct vit *vit, const struct vit_maps *maps)
{
    const bool trained = vit_is_trained(vit);
    const int heads = trained ? vit_trained_heads(vit).heads : VIT_HEADS;
    write_map(csv, "alike", 0, maps->alike);
    if (trained)
        write_map(csv, "trained", 0, maps->trained + 1);
    for (int head = 0; head < VIT_SHOWN_HEADS && head < heads; head++)
        write_map(csv, "head", head, maps->head[head] + (trained ? 1 : 0));
}

static void write_pixels(FILE *csv, const float *square)
{
    for (int i = 0; i < VIT_SIDE * VIT_SIDE; i++) {
        const float *rgb = square + (ptrdiff_t)3 * i;
        fprintf(csv, "pixel,,%d,%d,,%ld,%ld,%ld,,,\n", i / VIT_SIDE, i % VIT_SIDE,
                lrintf(255 * rgb[0]), lrintf(255 * rgb[1]), lrintf(255 * rgb[2]));
    }
}

static enum status write_costs(FILE *csv, const struct simulation *base, const struct vit *vit,
                               struct error *error)
{
    const struct heads h = vit_heads(vit);
    const struct simulation s = vit_simulation(base, ALGORITHM_FLASH2, &h);
    for (int side = 4; side <= 128; side *= 2) {
        const struct attention a = counting_with_seqlen(&s.attention, side * side);
        struct account projection;
        struct counted c;
        if (counting_run(&c, &s, ALGORITHM_FLASH2, &a, error) ||
            vit_count_projection(&projection, s.machine, side * side, error))
            return error->status;
        fprintf(csv, "cost,,,,,,,,%d,%" PRId64 ",%" PRId64 "\n", side * side,
                projection.flops.matrix, c.simulated.flops.matrix);
    }
    return STATUS_OK;
}

enum status vit_figure_write(FILE *csv, const struct options *o, struct error *error)
{
    struct vit vit;
    struct vit_maps maps = {0};
    if (vit_open(&vit, o, error))
        return error->status;
    fprintf(csv, "kind,head,row,column,percent,red,green,blue,tokens,projection_flops,"
                 "attention_flops\n");
    write_pixels(csv, vit.square);
    fprintf(csv, "patch,,%d,%d,,,,,,,\n", vit.patch / VIT_GRID, vit.patch % VIT_GRID);
    const bool failed = vit_map(&maps, &o->simulation, &vit, error) ||
                        write_costs(csv, &o->simulation, &vit, error);
    if (!failed)
        write_maps(csv, &vit, &maps);
    vit_close(&vit);
    return failed ? error->status : STATUS_OK;
}
