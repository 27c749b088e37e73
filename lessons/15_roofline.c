/* Lesson 15, the roofline: arithmetic or memory, which of the two bounds a kernel, and how long
 * it takes then.
 *
 * One function a section, in the order in which they are read.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/counting.h"
#include "common/figure.h"
#include "common/kernel_column.h"
#include "common/lesson.h"
#include "common/report.h"
#include "common/roofline_figure.h"
#include "common/same_result.h"
#include "common/time_rows.h"
#include "kernels/basic_kernels.h"
#include "models/kernel_work.h"

static const struct usage usage = {
    .program = "15_roofline",
    .summary = "Lesson 15: the roofline, and what a kernel's time is made of",
    .options = LESSON_OPTIONS,
};

static const char question[] =
    "1. Question\n\n"
    "A machine has a speed for arithmetic and a speed for memory. Which of the two\n"
    "bounds a kernel, on which machine, and how long does the kernel take?";

static double billions(double value)
{
    return value / 1e9;
}

static void prediction(struct lesson *l)
{
    const struct options *o = l->options;
    const struct machine *m = o->simulation.machine;
    const enum roofline_unit unit = roofline_unit_of(o->simulation.attention.dtype);
    lesson_section(l, "2. Prediction");
    lesson_say(l,
               "intensity I   FLOPs a byte moved\n"
               "attainable    min(peak, bandwidth x I), for each level of memory\n"
               "ridge         peak / bandwidth: below it memory bounds, above it arithmetic\n");
    if (roofline_peak(m, unit) > 0)
        lesson_say(l, "\n%s, %s: peak %.1f TFLOP/s\n", m->name, roofline_unit_name(unit),
                   roofline_peak(m, unit) / 1e12);
    else
        lesson_say(l, "\n%s does not multiply %s, or nobody knows how fast\n", m->name,
                   roofline_unit_name(unit));
    for (int i = 0; i < ROOFLINE_LEVELS; i++)
        if (roofline_bandwidth(m, (enum roofline_level)i) > 0)
            lesson_say(l, "  %-3s  %.2f TB/s, ridge %.1f FLOPs a byte\n",
                       roofline_level_name((enum roofline_level)i),
                       roofline_bandwidth(m, (enum roofline_level)i) / 1e12,
                       roofline_ridge(m, unit, (enum roofline_level)i));
    lesson_say(l,
               "\nMatrix FLOPs over bytes, large N, one head, e bytes an element:\n"
               "  standard         4NNd / 4NNe        d/e        at HBM\n"
               "  FlashAttention   4NNd / 4Nde        N/e        at HBM\n"
               "  FlashAttention-2 4NNd / 2(NN/Br)de  2Br/e      at L2, which the SMs ask\n");
}

/* The intensities that counting gives are those of the closed forms. */
static enum status intensities(struct lesson *l, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    const struct attention *a = &base->attention;
    const enum roofline_unit unit = roofline_unit_of(a->dtype);
    lesson_section(l, "4. Experiment: intensity, counted");
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        const enum algorithm algorithm = (enum algorithm)i;
        struct counted c;
        char claim[96];
        if (counting_run(&c, base, algorithm, a, error))
            return error->status;
        const int64_t least = roofline_least_bytes(algorithm, a);
        const struct roofline_point predicted = roofline_account(&c.predicted, unit, least);
        const struct roofline_point simulated = roofline_account(&c.simulated, unit, least);
        snprintf(claim, sizeof claim, "%s: FLOPs a byte that the SMs ask for; at HBM %.1f",
                 algorithm_name(algorithm), roofline_intensity(&simulated, ROOFLINE_HBM));
        lesson_claim_ratio(l, claim, roofline_intensity(&predicted, ROOFLINE_L2),
                           roofline_intensity(&simulated, ROOFLINE_L2));
    }
    lesson_say(l,
               "\nAt HBM each tensor of a launch counts once, the least that can move. On the\n"
               "fp32 units all FLOPs count, on tensor cores those of matrix products.\n");
    return STATUS_OK;
}

static const char *bound_on(const struct machine *m, enum algorithm algorithm,
                            const struct attention *a)
{
    const struct roofline_point p = roofline_attention(algorithm, a);
    return roofline_peak(m, p.unit) > 0 ? roofline_bound_name(roofline_bound_of(m, &p)) : "-";
}

/* Which machine is bound by what; the ridge that everybody quotes. */
static void machines(struct lesson *l)
{
    const struct machine *a100 = machine_find("A100-80GB");
    struct attention half = l->options->simulation.attention;
    struct attention single = half;
    char computed[32];
    int count;
    const struct machine *table = machine_table(&count);
    half.dtype = DTYPE_F16;
    single.dtype = DTYPE_F32;
    lesson_section(l, "5. Experiment: every machine");
    lesson_say(l, "%-12s %6s %6s %6s  %9s %9s %9s %9s\n", "", "fp32", "fp16", "fp16", "fp32",
               "fp32", "fp16", "fp16");
    lesson_say(l, "%-12s %6s %6s %6s  %9s %9s %9s %9s\n", "ridge, bound", "HBM", "HBM", "L2",
               "standard", "flash2", "standard", "flash2");
    for (const struct machine *m = table; m < table + count; m++) {
        const double l2 = roofline_ridge(m, ROOFLINE_TENSOR_F16, ROOFLINE_L2);
        char text[16] = "-";
        if (l2 > 0)
            snprintf(text, sizeof text, "%.0f", l2);
        lesson_say(
            l, "%-12s %6.1f %6.0f %6s  %9s %9s %9s %9s\n", m->name,
            roofline_ridge(m, ROOFLINE_FP32, ROOFLINE_HBM),
            roofline_ridge(m, ROOFLINE_TENSOR_F16, ROOFLINE_HBM), text,
            bound_on(m, ALGORITHM_STANDARD, &single), bound_on(m, ALGORITHM_FLASH2, &single),
            bound_on(m, ALGORITHM_STANDARD, &half), bound_on(m, ALGORITHM_FLASH2, &half));
    }
    lesson_say(l, "\n");
    snprintf(computed, sizeof computed, "%.0f",
             roofline_ridge(a100, ROOFLINE_TENSOR_F16, ROOFLINE_HBM));
    lesson_claim_printed(l, "\"An A100 needs 312 / 2.039 FLOPs a byte\": right", "articles say",
                         "153", computed);
}

/* Counts matmul_naive at a shape small enough to walk; the closed form must agree. */
static enum status naive_counts_agree(bool *agree, const struct machine *machine,
                                      struct error *error)
{
    const struct io_matmul shape = {96, 160, 64};
    struct hbm_tensor A, B, C;
    struct gpu gpu;
    gpu_init(&gpu, machine, GPU_COUNTS);
    if (hbm_alloc(&A, &gpu, "A", DTYPE_F32, 1, shape.rows, shape.depth, error) ||
        hbm_alloc(&B, &gpu, "B", DTYPE_F32, 1, shape.depth, shape.cols, error) ||
        hbm_alloc(&C, &gpu, "C", DTYPE_F32, 1, shape.rows, shape.cols, error) ||
        matmul_naive(&gpu, &C, &A, &B, error))
        return error->status;
    const struct account counted = gpu_account(&gpu), predicted = io_matmul_naive(&shape);
    *agree = account_equal(&counted, &predicted);
    return STATUS_OK;
}

/* The recorded run of that kernel by events, in the file's order. */
static const struct time_row *recorded(const struct time_rows *rows, const char *kernel)
{
    for (int i = 0; i < rows->count; i++)
        if (!rows->row[i].profiled && strcmp(rows->row[i].kernel, kernel) == 0)
            return &rows->row[i];
    return NULL;
}

/* The naive matrix product and its 549 GB. */
static enum status naive_matmul(struct lesson *l, const struct time_rows *rows,
                                struct error *error)
{
    enum { N = 4096 };
    const struct io_matmul shape = {N, N, N};
    const struct account account = io_matmul_naive(&shape);
    const struct traffic total = account_total(&account);
    const struct machine *a100 = machine_find("A100-80GB"), *h200 = machine_find("H200");
    const struct time_work work = kernel_work_matmul_naive(&shape, h200);
    const struct time_estimate t = time_of(h200, &work);
    const struct time_row *row = recorded(rows, "matmul_naive");
    const double asked = (double)total.of[DIRECTION_READ].bytes;
    bool agree = false;
    if (naive_counts_agree(&agree, h200, error))
        return error->status;
    if (!row)
        return error_set(error, STATUS_BAD_FILE, "no recorded time of matmul_naive");
    lesson_section(l, "6. Experiment: \"a naive 4096^3 product loads 549 GB\"");
    lesson_claim_count(l, "Elements of A and B that its lanes load: 2 N N N, 4 bytes each",
                       "bytes", INT64_C(8) * N * N * N, total.of[DIRECTION_READ].bytes);
    lesson_claim_count(l, "That closed form is the simulator's count (96 x 160 x 64)",
                       "(1: yes, 0: no)", 1, agree);
    lesson_say(l, "\n%-28s %9s %11s %11s\n", "", "GB", "A100, ms", "H200, ms");
    const struct {
        const char *what;
        double bytes;
    } levels[] = {{"lanes ask for", asked},
                  {"in sectors of a warp", SECTOR_BYTES * (double)total.of[0].sectors},
                  {"of L2, behind L1", work.amount[TIME_L2]},
                  {"A, B and C once", work.amount[TIME_HBM]}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        lesson_say(l, "%-28s %9.1f %11.2f %11.2f  at HBM's speed\n", levels[i].what,
                   billions(levels[i].bytes),
                   1e3 * levels[i].bytes / a100->hbm_bytes_per_second,
                   1e3 * levels[i].bytes / h200->hbm_bytes_per_second);
    lesson_say(l, "%-28s %9s %11s %11.2f  recorded\n\n", "it takes", "", "",
               1e3 * row->measured);
    lesson_claim_most(l,
                      "An H200 is faster than 549 GB from HBM would allow: they are not DRAM's",
                      "ms", 1e3 * asked / h200->hbm_bytes_per_second, 1e3 * row->measured);
    lesson_say(
        l,
        "\nIt is the warps' way to L1 that takes so long, two passes for 32 multiply-adds:\n"
        "%.1f ms alone, %.1f ms with the instructions after them, half-way %.1f ms.\n\n",
        1e3 * t.overlapped, 1e3 * t.in_turn, 1e3 * t.estimate);
    lesson_claim_most(l, "The model of time against the recorded run", "% error", 15,
                      100 * fabs(time_row_error(row)));
    return STATUS_OK;
}

/* The smallest batch whose product with weights of hidden x hidden is bound by arithmetic. */
static int first_compute_bound(const struct machine *m, int hidden)
{
    for (int batch = 1; batch <= 4096; batch++) {
        const struct io_matmul shape = {batch, hidden, hidden};
        const struct roofline_point p = roofline_matmul(&shape, DTYPE_F16);
        if (roofline_intensity(&p, ROOFLINE_HBM) >=
            roofline_ridge(m, ROOFLINE_TENSOR_F16, ROOFLINE_HBM))
            return batch;
    }
    return 0;
}

/* Inference: weights are read once for all rows of a batch. */
static void batches(struct lesson *l)
{
    enum { HIDDEN = 5120 };
    static const char *const names[] = {"V100", "A100-80GB", "H200", "B200"};
    const struct machine *a100 = machine_find("A100-80GB");
    const double weights = (double)HIDDEN * HIDDEN;
    lesson_section(l, "7. Experiment: what batches are for");
    lesson_say(l,
               "A layer of a model with %d hidden units multiplies b rows by a matrix that it\n"
               "reads once: 2 b K N FLOPs for 2 K N bytes of fp16, about b FLOPs a byte.\n\n",
               HIDDEN);
    lesson_say(l, "%8s %12s %22s %12s\n", "batch", "FLOP/B", "A100-80GB, TFLOP/s", "bound");
    for (int batch = 1; batch <= 1024; batch *= 4) {
        const struct io_matmul shape = {batch, HIDDEN, HIDDEN};
        const struct roofline_point p = roofline_matmul(&shape, DTYPE_F16);
        struct machine without_l2 = *a100;
        without_l2.l2_bytes_per_second = 0; /* what the SMs ask of it depends on the kernel */
        lesson_say(l, "%8d %12.1f %22.1f %12s\n", batch, roofline_intensity(&p, ROOFLINE_HBM),
                   roofline_attainable(&without_l2, &p) / 1e12,
                   roofline_bound_name(roofline_bound_of(&without_l2, &p)));
    }
    lesson_say(l, "\n");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct machine *m = machine_find(names[i]);
        const double ridge = roofline_ridge(m, ROOFLINE_TENSOR_F16, ROOFLINE_HBM);
        char claim[96];
        snprintf(claim, sizeof claim, "%s, ridge %.0f: the first batch bound by arithmetic",
                 m->name, ridge);
        lesson_claim_count(l, claim, "rows",
                           (int64_t)ceil(ridge * weights / (weights - 2 * ridge * HIDDEN)),
                           first_compute_bound(m, HIDDEN));
    }
    lesson_say(
        l,
        "\n13 billion weights in bf16 are 26 GB: %.1f ms a token at batch 1 on an A100,\n"
        "%.2f s if they came over its PCIe. Each token of each sequence keeps 2 x 40 x\n"
        "%d x 2 bytes of keys and values, %.2f MB: some 10 GB beside the weights hold\n"
        "%.0f tokens, which is what bounds the batch.\n",
        1e3 * 26e9 / a100->hbm_bytes_per_second, 26e9 / (a100->pcie_bytes_per_second / 2),
        HIDDEN, 2 * 40 * HIDDEN * 2 / 1e6, floor(10e9 / (2.0 * 40 * HIDDEN * 2)));
}

/* Median and worst error of the model, kind by kind; tests/test_time has narrower bounds. */
static void times(struct lesson *l, const struct time_rows *rows)
{
    static const double medians[TIME_KINDS + 1] = {15, 20, 20, 15, 15, 15, 15, 15};
    lesson_section(l, "8. Check: estimated and recorded times, NVIDIA H200");
    lesson_say(l,
               "Each unit of an SM, L2 and HBM need amount / rate. A kernel takes as long as\n"
               "its busiest unit if all work at once, the sum if they take turns, and longer\n"
               "where blocks are too few to hide latency (docs/times.md).\n\n");
    lesson_say(l, "%-18s %-33s %8s %8s %6s\n", "by events", "", "ms", "model", "error");
    for (int i = 0; i < rows->count; i++) {
        const struct time_row *row = &rows->row[i];
        if (!row->profiled)
            lesson_say(l, "%-18s %-33s %8.2f %8.2f %+5.0f%%\n", row->kernel, row->shape,
                       1e3 * row->measured, 1e3 * row->estimate, 100 * time_row_error(row));
    }
    lesson_say(l, "\n");
    for (int kind = 0; kind <= TIME_KINDS; kind++) {
        const struct time_errors e = time_rows_errors(rows, (enum time_kind)kind);
        char claim[96];
        snprintf(claim, sizeof claim, "%s, %d runs: median error; worst %+.0f %%, %s",
                 time_kind_name((enum time_kind)kind), e.rows, 100 * e.worst, e.where->kernel);
        lesson_claim_most(l, claim, "%", medians[kind], 100 * e.median);
    }
}

static void plain_words(struct lesson *l)
{
    lesson_section(l, "10. In plain words");
    lesson_say(
        l, "  A roofline says what cannot be exceeded, not what will be reached.\n"
           "  At HBM FlashAttention is bound by arithmetic everywhere, standard attention\n"
           "  by memory on tensor cores everywhere: d/e FLOPs a byte is below every ridge.\n"
           "  Our fp32 kernels are bound by neither: shared memory and instructions beside\n"
           "  the multiply-adds take their time, and latency where blocks are few.\n");
}

static const struct figure figures[] = {
    {"roofline_fp32", "fp32"},
    {"roofline_fp16", "fp16"},
};

/* Of the recorded runs those that a slide has room for: */
static bool fits(const struct time_row *row)
{
    if (row->work.unit == ROOFLINE_TENSOR_F16)
        return !row->causal && row->seqlen == 4096;
    return !row->profiled && !row->causal && (row->tile == 0 || row->tile == 64) &&
           row->head_dim <= 64 && strcmp(row->kernel, "softmax_safe") != 0;
}

/* of an fp32 kernel the largest. */
static bool in_figure(const struct time_rows *rows, const struct time_row *row)
{
    for (int i = 0; i < rows->count && row->work.unit == ROOFLINE_FP32; i++) {
        const struct time_row *other = &rows->row[i];
        if (fits(other) && strcmp(other->kernel, row->kernel) == 0 &&
            other->work.flops > row->work.flops)
            return false;
    }
    return fits(row);
}

/* figure_data: an H200, which the times are from. */
static enum status write_data(FILE *csv, const struct options *o, struct error *error)
{
    const struct machine *h200 = machine_find("H200");
    struct time_rows rows;
    (void)o;
    if (time_rows_read(&rows, error))
        return error->status;
    roofline_figure_header(csv);
    roofline_figure_ceilings(csv, h200, ROOFLINE_FP32);
    roofline_figure_ceilings(csv, h200, ROOFLINE_TENSOR_F16);
    for (int i = 0; i < rows.count; i++) {
        const struct time_row *row = &rows.row[i];
        char label[64];
        snprintf(label, sizeof label, "%s", row->kernel);
        if (row->work.unit == ROOFLINE_TENSOR_F16)
            snprintf(label, sizeof label, "%.30s d %d", row->kernel, row->head_dim);
        if (in_figure(&rows, row))
            roofline_figure_kernel(csv, label, &row->work, row->estimate, row->measured);
    }
    time_rows_free(&rows);
    return STATUS_OK;
}

static const char next[] =
    "  --dtype f16                      tensor cores: the ridge is 15 times as far\n"
    "  --machine A100-80GB --dtype f16  312 / 2.039 = 153\n"
    "  --block-q 16                     a quarter of the intensity at L2\n"
    "  flashlab roofline --help         any shape, with a time and a figure\n"
    "  flashlab times                   every recorded run beside the model\n"
    "  --csv FILE --plot FILE.png       this lesson's two figures and their data\n";

static int tell(const struct options *o, const struct kernel_column *kernels,
                const struct time_rows *rows)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson);
    lesson_section(&lesson, "3. Experiment: the same result");
    if (lesson_same_result(&lesson, &error) || intensities(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    machines(&lesson);
    if (naive_matmul(&lesson, rows, &error))
        return lesson_abandon(&lesson, &error);
    batches(&lesson);
    times(&lesson, rows);
    lesson_section(&lesson, "9. Check: the bytes, by our CUDA kernels");
    if (kernel_column_claim_traffic(&lesson, kernels, &error))
        return lesson_abandon(&lesson, &error);
    plain_words(&lesson);
    return lesson_end(&lesson, next);
}

static int run(struct options *o)
{
    const unsigned algorithms =
        ALGORITHM_BIT(ALGORITHM_STANDARD) | ALGORITHM_BIT(ALGORITHM_FLASH2);
    struct error error = {0};
    struct kernel_column kernels;
    struct time_rows rows;
    if (lesson_check(o, &error) || time_rows_read(&rows, &error))
        return usage_error(&usage, &error);
    if (kernel_column_open(&kernels, o, algorithms, &error)) {
        time_rows_free(&rows);
        return usage_error(&usage, &error);
    }
    const int code = figure_make(o, write_data, figures, 2, &error)
                         ? usage_error(&usage, &error)
                         : tell(o, &kernels, &rows);
    kernel_column_close(&kernels);
    time_rows_free(&rows);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
