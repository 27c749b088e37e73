#include "common/time_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/recording.h"
#include "models/kernel_work.h"

#define TIMES FLASHLAB_ROOT "/cuda/results/h200_times.csv"
#define COUNTERS FLASHLAB_ROOT "/cuda/results/h200_counters.csv"

enum { LINE_LENGTH = 1024, MOST_COLUMNS = 48, MOST_ROWS = 1024 };

/* One line of a CSV file without quotes, cut at its commas. */
struct fields {
    char text[LINE_LENGTH];
    char *of[MOST_COLUMNS];
    int count;
};

static void cut(struct fields *f, const char *line)
{
    char *at = f->text;
    f->count = 0;
    snprintf(f->text, sizeof f->text, "%.*s", (int)strcspn(line, "\r\n"), line);
    while (at && f->count < MOST_COLUMNS) {
        f->of[f->count++] = at;
        at = strchr(at, ',');
        if (at)
            *at++ = '\0';
    }
}

/* The field below that name; "" if the file has no such column. */
static const char *field(const struct fields *header, const struct fields *row,
                         const char *name)
{
    for (int i = 0; i < header->count && i < row->count; i++)
        if (strcmp(header->of[i], name) == 0)
            return row->of[i];
    return "";
}

static int number(const struct fields *header, const struct fields *row, const char *name)
{
    return atoi(field(header, row, name));
}

/* Adds up a run's launches. */
static void set_estimate(struct time_row *row, const struct time_work *work, int launches)
{
    const struct machine *machine = machine_find("H200");
    double most = 0;
    for (int i = 0; i < launches; i++) {
        const struct time_estimate t = time_of(machine, &work[i]);
        row->estimate += t.estimate;
        row->overlapped += t.overlapped;
        row->in_turn += t.in_turn;
        if (t.estimate > most) {
            most = t.estimate;
            row->longest = t.alone + time_launch_seconds >= t.estimate
                               ? "latency"
                               : time_unit_name(t.longest);
        }
    }
}

static bool read_attention(struct attention *a, const struct fields *header,
                           const struct fields *row)
{
    const int N = number(header, row, "seqlen_q");
    *a = (struct attention){.batch = number(header, row, "batch"),
                            .heads_q = number(header, row, "heads_q"),
                            .heads_kv = number(header, row, "heads_kv"),
                            .seqlen_q = N,
                            .seqlen_k = number(header, row, "seqlen_k"),
                            .head_dim = number(header, row, "head_dim"),
                            .head_dim_v = number(header, row, "head_dim_v"),
                            .scale = 1,
                            .dtype = DTYPE_F32,
                            .block_q = number(header, row, "block_q"),
                            .block_k = number(header, row, "block_k"),
                            .tiled_gemm = true};
    struct error error;
    return mask_parse(&a->mask, field(header, row, "mask")) && !attention_check(a, &error);
}

static const char *const attention_kernels[ALGORITHM_COUNT] = {
    "naive_attention", "standard_attention", "flash1_forward", "flash2_forward"};

static bool estimate_attention(struct time_row *out, enum algorithm algorithm,
                               const struct fields *header, const struct fields *row)
{
    struct attention a;
    struct time_work work[KERNEL_WORK_LAUNCHES];
    const struct machine *machine = machine_find("H200");
    if (!read_attention(&a, header, row))
        return false;
    const int launches = kernel_work_attention(work, algorithm, &a, machine);
    for (int i = 0; i < launches; i++)
        if (work[i].blocks_per_sm == 0)
            return false;
    set_estimate(out, work, launches);
    out->work = roofline_attention(algorithm, &a);
    out->seqlen = a.seqlen_q;
    out->head_dim = a.head_dim;
    out->tile = a.block_q;
    out->causal = a.mask != MASK_NONE;
    out->kind = algorithm == ALGORITHM_NAIVE     ? TIME_KIND_ROW
                : work[0].blocks >= machine->sms ? TIME_KIND_FULL
                                                 : TIME_KIND_THIN;
    char keys[16] = "";
    if (a.seqlen_k != a.seqlen_q)
        snprintf(keys, sizeof keys, "/%d", a.seqlen_k);
    snprintf(out->shape, sizeof out->shape, "b %d h %d N %d%s d %d %dx%d%s", a.batch, a.heads_q,
             a.seqlen_q, keys, a.head_dim, a.block_q, a.block_k,
             a.mask == MASK_NONE ? "" : " causal");
    return true;
}

static bool estimate_basic(struct time_row *out, const struct fields *header,
                           const struct fields *row)
{
    const struct machine *machine = machine_find("H200");
    const struct io_matmul product = {number(header, row, "rows"), number(header, row, "cols"),
                                      number(header, row, "depth")};
    const int tile = number(header, row, "tile");
    struct time_work work;
    struct account account;
    out->kind = TIME_KIND_STREAM;
    if (product.cols <= 0)
        return false;
    if (strcmp(out->kernel, "vector_add") == 0) {
        work = kernel_work_vector_add(product.cols, machine);
        account = io_vector_add(product.cols);
    } else if (strcmp(out->kernel, "softmax_safe") == 0) {
        work = kernel_work_softmax_safe(product.rows, product.cols, machine);
        account = io_softmax_safe(product.rows, product.cols);
    } else if (strcmp(out->kernel, "softmax_online") == 0) {
        work = kernel_work_softmax_online(product.rows, product.cols, machine);
        account = io_softmax_online(product.rows, product.cols);
    } else if (strcmp(out->kernel, "matmul_naive") == 0) {
        work = kernel_work_matmul_naive(&product, machine);
        account = io_matmul_naive(&product);
        out->kind = TIME_KIND_ELEMENT;
    } else if (strcmp(out->kernel, "matmul_tiled") == 0 && tile > 0) {
        work = kernel_work_matmul_tiled(&product, tile, machine);
        account = io_matmul_tiled(&product, tile);
        out->kind = work.blocks >= machine->sms ? TIME_KIND_FULL : TIME_KIND_THIN;
    } else {
        return false;
    }
    out->tile = tile;
    out->work = roofline_account(&account, ROOFLINE_FP32, (int64_t)work.amount[TIME_HBM]);
    set_estimate(out, &work, 1);
    if (tile > 0)
        snprintf(out->shape, sizeof out->shape, "%d x %d x %d tile %d", product.rows,
                 product.cols, product.depth, tile);
    else if (product.depth > 0)
        snprintf(out->shape, sizeof out->shape, "%d x %d x %d", product.rows, product.cols,
                 product.depth);
    else
        snprintf(out->shape, sizeof out->shape, "%d x %d", product.rows > 0 ? product.rows : 1,
                 product.cols);
    return true;
}

/* What other kernels in these files are, copies and cuBLAS, has no model. */
static bool estimate_ours(struct time_row *out, const struct fields *header,
                          const struct fields *row)
{
    snprintf(out->kernel, sizeof out->kernel, "%s", row->of[0]);
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (strcmp(out->kernel, attention_kernels[i]) == 0)
            return estimate_attention(out, (enum algorithm)i, header, row);
    return estimate_basic(out, header, row);
}

/* Every run of a file of ours that is long enough. */
static enum status read_ours(struct time_rows *rows, const char *path, const char *column,
                             double unit, struct error *error)
{
    struct fields header = {.count = 0}, row;
    char line[LINE_LENGTH];
    FILE *file = fopen(path, "r");
    if (!file)
        return error_set(error, STATUS_BAD_FILE, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        if (header.count == 0) {
            cut(&header, line);
            continue;
        }
        cut(&row, line);
        struct time_row *out = &rows->row[rows->count];
        *out = (struct time_row){.profiled = unit < 1e-6};
        out->measured = unit * strtod(field(&header, &row, column), NULL);
        if (!(out->measured > 0)) {
            fclose(file);
            return error_set(error, STATUS_BAD_FILE, "%s: a row of %.40s has no %s", path,
                             row.of[0], column);
        }
        if (out->measured >= TIME_LEAST_US * 1e-6 && rows->count < MOST_ROWS - 1 &&
            estimate_ours(out, &header, &row))
            rows->count++;
    }
    fclose(file);
    return STATUS_OK;
}

/* FlashAttention-2's warps own rows of the Q tile and read all of K and V from shared memory
 * for them: 32 rows a warp, 16 at d = 256. Their Q tile is read once a K/V tile, which is 128
 * rows at d = 64 and 64 beyond. (csrc/flash_attn/src/flash_fwd_launch_template.h of
 * Dao-AILab/flash-attention) */
static double fa2_shared_passes(const struct attention *a, double scores)
{
    const double rows_a_warp = a->head_dim > 128 ? 16 : 32, d = a->head_dim;
    const double kv_bytes = 2 * 2 * d / rows_a_warp, q_bytes = 2 * d / a->block_k;
    return scores * (kv_bytes + q_bytes) / 128;
}

static void estimate_production(struct time_row *out, const struct recorded_kernel *k)
{
    const bool cudnn = k->tma_load_bytes > 0;
    const struct attention a = {.batch = k->batch,
                                .heads_q = k->heads,
                                .heads_kv = k->heads,
                                .seqlen_q = k->seqlen,
                                .seqlen_k = k->seqlen,
                                .head_dim = k->head_dim,
                                .head_dim_v = k->head_dim,
                                .mask = k->causal ? MASK_CAUSAL : MASK_NONE,
                                .dtype = DTYPE_F16,
                                .block_q = k->block_q,
                                .block_k = k->head_dim > 64 ? 64 : 128};
    struct time_work work = kernel_work_counts(ALGORITHM_FLASH2, &a);
    if (!cudnn) {
        work.overlap = OVERLAP_NONE;
        work.amount[TIME_L1] =
            fa2_shared_passes(&a, work.amount[TIME_TENSOR] / (4.0 * a.head_dim));
    }
    *out = (struct time_row){.kind = cudnn ? TIME_KIND_CUDNN : TIME_KIND_FA2,
                             .profiled = true,
                             .measured = k->duration_us * 1e-6,
                             .seqlen = k->seqlen,
                             .head_dim = k->head_dim,
                             .tile = k->block_q,
                             .causal = k->causal,
                             .work = roofline_attention(ALGORITHM_FLASH2, &a)};
    set_estimate(out, &work, 1);
    snprintf(out->kernel, sizeof out->kernel, "%s", cudnn ? "cuDNN" : "FlashAttention-2");
    snprintf(out->shape, sizeof out->shape, "b %d h %d N %d d %d fp16%s", k->batch, k->heads,
             k->seqlen, k->head_dim, k->causal ? " causal" : "");
}

static enum status read_production(struct time_rows *rows, struct error *error)
{
    struct recorded_kernel *kernels;
    const int count = recording_read(&kernels, error);
    if (count < 0)
        return error->status;
    for (int i = 0; i < count && rows->count < MOST_ROWS; i++)
        if (strcmp(kernels[i].phase, "forward") == 0)
            estimate_production(&rows->row[rows->count++], &kernels[i]);
    free(kernels);
    return STATUS_OK;
}

enum status time_rows_read(struct time_rows *rows, struct error *error)
{
    *rows = (struct time_rows){.row = calloc(MOST_ROWS, sizeof *rows->row)};
    if (!rows->row)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for recorded times");
    if (read_ours(rows, TIMES, "median_us", 1e-6, error) ||
        read_ours(rows, COUNTERS, "duration_ns", 1e-9, error) || read_production(rows, error)) {
        time_rows_free(rows);
        return error->status;
    }
    return STATUS_OK;
}

void time_rows_free(struct time_rows *rows)
{
    free(rows->row);
    *rows = (struct time_rows){0};
}

const char *time_kind_name(enum time_kind kind)
{
    static const char *const names[TIME_KINDS + 1] = {"streaming",
                                                      "thread an element",
                                                      "tiled, all SMs busy",
                                                      "tiled, few blocks",
                                                      "warp a row",
                                                      "FlashAttention-2",
                                                      "cuDNN",
                                                      "all"};
    return names[kind];
}

double time_row_error(const struct time_row *row)
{
    return (row->estimate - row->measured) / row->measured;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct time_errors time_rows_errors(const struct time_rows *rows, enum time_kind kind)
{
    double errors[MOST_ROWS];
    struct time_errors e = {0};
    for (int i = 0; i < rows->count; i++) {
        const struct time_row *row = &rows->row[i];
        if (kind != TIME_KINDS && row->kind != kind)
            continue;
        const double error = time_row_error(row);
        errors[e.rows++] = fabs(error);
        e.within_quarter += fabs(error) <= 0.25;
        e.between += row->measured >= row->overlapped && row->measured <= row->in_turn;
        if (!e.where || fabs(error) > fabs(e.worst)) {
            e.worst = error;
            e.where = row;
        }
    }
    if (e.rows == 0)
        return e;
    qsort(errors, (size_t)e.rows, sizeof errors[0], compare_doubles);
    e.median = (errors[(e.rows - 1) / 2] + errors[e.rows / 2]) / 2;
    return e;
}
