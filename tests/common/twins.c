#include "common/twins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/rows.h"
#include "kernels/attention_kernels.h"
#include "kernels/basic_kernels.h"

/* Blocks on an SM of an H200, as the driver says of the CUDA twins
 * (cuda/results/h200_occupancy.csv). size: the tile of matmul_tiled, else the head dimension;
 * tiles of attention are 64 x 64. */
static const struct {
    const char *launch;
    int size, blocks;
} residencies[] = {
    {"vector_add", 0, 8},       {"softmax_safe", 0, 8},      {"softmax_online", 0, 8},
    {"matmul_tiled", 16, 9},    {"matmul_tiled", 32, 9},     {"matmul_tiled", 64, 5},
    {"standard_scores", 64, 4}, {"standard_softmax", 64, 3}, {"standard_output", 64, 4},
    {"flash1_forward", 64, 2},  {"flash1_forward", 128, 1},  {"flash2_forward", 64, 3},
    {"flash2_forward", 128, 2},
};

static int blocks_per_sm(const char *launch, int size)
{
    for (size_t k = 0; k < LENGTH(residencies); k++)
        if (strcmp(residencies[k].launch, launch) == 0 && residencies[k].size == size)
            return residencies[k].blocks;
    fail_msg("%s of %d has no line in the table", launch, size);
    return 0;
}

/* Places are 4 GiB apart: the sets of a stripe depend on all of its address. */
enum { PLACE_SHIFT = 32 };

/* The model, and which launch is under way. */
struct replay {
    struct l2_traffic l2;
    int size, launches;
    int64_t offset; /* bytes: of all addresses */
};

static void observe(void *context, const struct thread_block *b, struct move_list *moves)
{
    struct replay *replay = context;
    if (replay->launches == b->gpu->launch_count) {
        const int blocks = blocks_per_sm(b->launch->name, replay->size);
        l2_traffic_begin(&replay->l2, b->launch->name, l2_residents(b, blocks));
        replay->launches++;
    }
    for (int n = 0; n < moves->count; n++)
        moves->moves[n].address += replay->offset;
    l2_traffic_block(&replay->l2, moves);
}

static int extent(const struct csv *table, int row, const char *column)
{
    return csv_text(table, row, column)[0] ? (int)csv_int(table, row, column) : 0;
}

static struct hbm_tensor matrix(struct gpu *gpu, const char *name, int rows, int cols)
{
    return new_tensor(gpu, name, DTYPE_F32, 1, rows, cols);
}

static enum status run_basic(struct gpu *gpu, const struct csv *table, int row,
                             struct error *error)
{
    const char *kernel = csv_text(table, row, "kernel");
    const int rows = extent(table, row, "rows"), cols = extent(table, row, "cols");
    const int depth = extent(table, row, "depth"), tile = extent(table, row, "tile");
    if (depth > 0) {
        const struct hbm_tensor A = matrix(gpu, "A", rows, depth),
                                B = matrix(gpu, "B", depth, cols);
        struct hbm_tensor C = matrix(gpu, "C", rows, cols);
        return tile > 0 ? matmul_tiled(gpu, &C, &A, &B, tile, error)
                        : matmul_naive(gpu, &C, &A, &B, error);
    }
    if (rows > 0) {
        const struct hbm_tensor X = matrix(gpu, "X", rows, cols);
        struct hbm_tensor Y = matrix(gpu, "Y", rows, cols);
        return strcmp(kernel, "softmax_safe") == 0 ? softmax_safe(gpu, &Y, &X, error)
                                                   : softmax_online(gpu, &Y, &X, error);
    }
    const struct hbm_tensor a = matrix(gpu, "a", 1, cols), b = matrix(gpu, "b", 1, cols);
    struct hbm_tensor c = matrix(gpu, "c", 1, cols);
    return vector_add(gpu, &c, &a, &b, error);
}

static enum status run_attention(struct gpu *gpu, const struct csv *table, int row,
                                 struct error *error)
{
    const char *kernel = csv_text(table, row, "kernel");
    struct attention a = attention_of_row(table, row);
    struct attention_tensors t = {0};
    const int planes = a.batch * a.heads_q;
    a.tiled_gemm = strcmp(kernel, "standard_attention") == 0;
    t.Q = new_tensor(gpu, "Q", a.dtype, planes, a.seqlen_q, a.head_dim);
    t.K = new_tensor(gpu, "K", a.dtype, planes, a.seqlen_k, a.head_dim);
    t.V = new_tensor(gpu, "V", a.dtype, planes, a.seqlen_k, a.head_dim_v);
    t.O = new_tensor(gpu, "O", a.dtype, planes, a.seqlen_q, a.head_dim_v);
    t.LSE = new_tensor(gpu, "LSE", DTYPE_F32, planes, a.seqlen_q, 1);
    if (a.tiled_gemm)
        return standard_attention(gpu, &a, &t, error);
    return strcmp(kernel, "flash1_forward") == 0 ? flash1_forward(gpu, &a, &t, error)
                                                 : flash2_forward(gpu, &a, &t, error);
}

static struct l2_launch sum_of_launches(const struct l2_traffic *l2)
{
    struct l2_launch sum = {.name = l2->launches[0].name};
    for (int k = 0; k < l2->launch_count; k++) {
        const struct l2_launch *launch = &l2->launches[k];
        sum.read_sectors += launch->read_sectors;
        sum.write_sectors += launch->write_sectors;
        sum.miss_sectors += launch->miss_sectors;
        sum.dram_read_bytes += launch->dram_read_bytes;
        sum.dram_written_bytes += launch->dram_written_bytes;
        sum.dirty_bytes = launch->dirty_bytes;
    }
    return sum;
}

struct l2_launch twin_replay(const struct csv *table, int row, int place)
{
    static struct replay replay;
    struct gpu gpu;
    struct error error;
    const bool attention = csv_text(table, row, "batch")[0];
    replay.size = attention ? extent(table, row, "head_dim") : extent(table, row, "tile");
    replay.launches = 0;
    replay.offset = (int64_t)place << PLACE_SHIFT;
    gpu_init(&gpu, machine_find("H200"), GPU_COUNTS);
    const struct l2_options options = {
        .machine = gpu.machine, .sample = l2_sample_of(csv_int(table, row, "load_sectors"))};
    if (l2_traffic_init(&replay.l2, &options, &error))
        fail_msg("%s", error.text);
    gpu.observer = &(struct move_observer){.block = observe, .context = &replay};
    if ((attention ? run_attention : run_basic)(&gpu, table, row, &error))
        fail_msg("%s", error.text);
    l2_traffic_finish(&replay.l2);
    const struct l2_launch sum = sum_of_launches(&replay.l2);
    l2_traffic_free(&replay.l2);
    return sum;
}

const char *twin_shape(const struct csv *table, int row)
{
    static char text[80];
    const char *rows = csv_text(table, row, "rows"), *cols = csv_text(table, row, "cols");
    const char *depth = csv_text(table, row, "depth"), *tile = csv_text(table, row, "tile");
    if (csv_text(table, row, "batch")[0])
        snprintf(text, sizeof text, "%s x %s x %s%s", csv_text(table, row, "heads_q"),
                 csv_text(table, row, "seqlen_q"), csv_text(table, row, "head_dim"),
                 strcmp(csv_text(table, row, "mask"), "none") ? " causal" : "");
    else
        snprintf(text, sizeof text, "%s%s%s%s%s%s%s", rows, rows[0] ? " x " : "", cols,
                 depth[0] ? " x " : "", depth, tile[0] ? ", tile " : "", tile);
    return text;
}
