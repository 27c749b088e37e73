/* Lesson 01, the memory hierarchy: its levels, vector addition in two styles, coalescing. */
#include <inttypes.h>
#include <stdio.h>

#include "common/basic_column.h"
#include "common/figure.h"
#include "common/machine_levels.h"
#include "common/report.h"
#include "common/stride_probes.h"
#include "common/vector_styles.h"
#include "models/io_basic.h"

static const struct usage usage = {
    .program = "01_memory_hierarchy",
    .summary = "Lesson 01: the memory hierarchy, and what one request to it is made of",
    .options = BASIC_LESSON_OPTIONS,
    .refused = BASIC_REFUSED_OPTIONS,
    .why = "this lesson adds vectors of f32: --seqlen says how long they are",
};

static const char question[] =
    "1. Question\n\n"
    "A GPU computes on registers; the data lie in HBM. What is between them, where\n"
    "does each variable of a kernel live, and what does one load of a warp move?";

#define PROBES FLASHLAB_ROOT "/cuda/results/h200_probes.csv"

/* The ragged length, the sectors of which are known from an H200, and one far beyond L2. */
enum { DEFAULT_COUNT = 1 << 20, RAGGED_COUNT = (1 << 20) + 5, LARGE_COUNT = 1 << 26 };

static int count_of(const struct options *o)
{
    return o->simulation.attention.seqlen_q;
}

static void levels(struct lesson *l)
{
    const struct machine *m = l->options->simulation.machine;
    char text[MACHINE_LEVELS_SIZE];
    lesson_section(l, "2. The levels");
    lesson_say(l, "%s: %d SMs (streaming multiprocessors).%s%s\n\n%s\n", m->name, m->sms,
               *m->note ? "\n" : "", m->note, machine_levels_format(text, m));
    lesson_say(l,
               "Where a CUDA kernel's variables live:\n\n"
               "  float x;                          registers of its thread\n"
               "  __shared__ float tile[64];        SRAM of the SM, one for each block\n"
               "  float *p: what it points to       HBM, through L2\n"
               "  arguments, blockIdx, threadIdx    constant memory and special registers\n"
               "  x when registers run out          HBM too (\"local memory\", spilled)\n\n"
               "The host (CPU) allocates HBM, copies inputs there and launches a grid. The\n"
               "device (GPU) runs the grid's blocks, each on one SM, in any order; a block's\n"
               "threads run in warps of 32, and a warp executes one instruction at a time for\n"
               "all of its lanes. A load is therefore one request with up to 32 addresses.\n");
}

static void prediction(struct lesson *l)
{
    const int64_t n = count_of(l->options);
    const struct machine *m = l->options->simulation.machine;
    char x[4][32];
    lesson_section(l, "3. Prediction: c = a + b");
    lesson_say(l, "n = %s f32. Memory moves in sectors of 32 bytes, 8 elements:\n\n",
               report_grouped(x[0], n));
    lesson_say(l,
               "  bytes     3 * 4 n          %16s\n"
               "  loaded    2 ceil(n / 8)    %16s sectors\n"
               "  stored    ceil(n / 8)      %16s sectors\n",
               report_grouped(x[1], 12 * n), report_grouped(x[2], 2 * ((n + 7) / 8)),
               report_grouped(x[3], (n + 7) / 8));
    lesson_say(l, "  time      12 n / %.3g TB/s  %16.2f us at best, from HBM\n",
               m->hbm_bytes_per_second / 1e12, 12e6 * (double)n / m->hbm_bytes_per_second);
}

/* Both styles at one length: a row of the table, and whether they are as predicted. */
static enum status compare_styles(struct lesson *l, bool *equal, int count, struct error *error)
{
    const struct account predicted = io_vector_add(count);
    char x[4][32];
    *equal = true;
    for (int n = 0; n < VECTOR_STYLES; n++) {
        const enum vector_style style = (enum vector_style)n;
        struct account a;
        if (vector_style_count(&a, style, count, l->options->simulation.machine, error))
            return error->status;
        const struct traffic total = account_total(&a);
        const struct amount *of = total.of;
        *equal &= account_equal(&a, &predicted);
        lesson_say(l, "%11s  %-16s %14s %15s %15s\n", report_grouped(x[0], count),
                   vector_style_name(style),
                   report_grouped(x[1], of[DIRECTION_READ].bytes + of[DIRECTION_WRITE].bytes),
                   report_grouped(x[2], of[DIRECTION_READ].sectors),
                   report_grouped(x[3], of[DIRECTION_WRITE].sectors));
    }
    return STATUS_OK;
}

static const char two_styles[] =
    "CUDA, a thread's view                  Triton, a block's view\n\n"
    "i = blockIdx.x * 256 + threadIdx.x;    offs = program_id(0) * 1024\n"
    "                                              + arange(0, 1024)\n"
    "if (i < n)        // bounds guard      mask = offs < n\n"
    "    c[i] = a[i] + b[i];                x = load(a + offs, mask)\n"
    "                                       y = load(b + offs, mask)\n"
    "                                       store(c + offs, x + y, mask)\n"
    "add<<<ceil(n / 256), 256>>>(...)       add[(cdiv(n, 1024),)](...)\n\n"
    "The last block is ragged unless n is a multiple: the guard and the mask say what\n"
    "it must not touch. Both as simulated kernels (vector_add, vector_add_tiles):\n\n";

static enum status two_views(struct lesson *l, struct error *error)
{
    const int counts[] = {
        1, 7, 33, 1000, 1024, 1025, 4099, DEFAULT_COUNT, RAGGED_COUNT, count_of(l->options)};
    const int settings = sizeof counts / sizeof counts[0];
    const bool is_default = count_of(l->options) == DEFAULT_COUNT;
    const struct machine *machine = l->options->simulation.machine;
    int equal = 0;
    int64_t same;
    struct account ragged;
    lesson_section(l, "4. Experiment: the same addition in two styles");
    lesson_say(l, "%s%11s  %-16s %14s %15s %15s\n", two_styles, "n", "style", "bytes",
               "sectors loaded", "sectors stored");
    for (int n = 0; n < settings - is_default; n++) {
        bool both;
        if (compare_styles(l, &both, counts[n], error))
            return error->status;
        equal += both;
    }
    if (vector_style_count(&ragged, STYLE_BLOCK, RAGGED_COUNT, machine, error) ||
        vector_styles_same(&same, RAGGED_COUNT, machine, error))
        return error->status;
    lesson_say(l, "\n");
    lesson_claim_count(l, "Both styles move what is predicted, at every length", "lengths",
                       settings - is_default, equal);
    lesson_claim_count(l, "n = 2^20 + 5, masked: 2 ceil(n / 8) sectors loaded", "sectors",
                       2 * ((RAGGED_COUNT + 7) / 8),
                       account_total(&ragged).of[DIRECTION_READ].sectors);
    lesson_claim_count(l, "... and ceil(n / 8) stored", "sectors", (RAGGED_COUNT + 7) / 8,
                       account_total(&ragged).of[DIRECTION_WRITE].sectors);
    lesson_claim_count(l, "... and both give a + b, bit for bit", "elements", RAGGED_COUNT,
                       same);
    return STATUS_OK;
}

static double efficiency(const struct coalesced *c)
{
    return 100.0 * c->bytes / (SECTOR_BYTES * c->sectors);
}

/* One access size of the table: sectors predicted and measured, and how many of their bytes a
 * lane asked for. */
static void say_cell(struct lesson *l, const struct stride_probes *p, int bytes, int stride)
{
    const struct stride_access access = {bytes, COALESCING_LANES, stride, 0};
    const struct coalesced c = stride_coalesced(&access);
    const int measured = stride_measured(p, &access);
    char text[16] = "-";
    if (measured >= 0)
        snprintf(text, sizeof text, "%d", measured);
    lesson_say(l, " %6d %5s %7.1f %%", c.sectors, text, efficiency(&c));
}

static void say_strides(struct lesson *l, const struct stride_probes *p)
{
    static const int strides[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 32, 33};
    lesson_say(l, "        %-22s %-22s %-22s\n", "  4 bytes a lane", "  8 bytes a lane",
               "  16 bytes a lane");
    lesson_say(l, "stride");
    for (int n = 0; n < 3; n++)
        lesson_say(l, " %6s %5s %9s", "pred.", "H200", "useful");
    lesson_say(l, "\n");
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        lesson_say(l, "%6d", strides[i]);
        for (int bytes = 4; bytes <= 16; bytes *= 2)
            say_cell(l, p, bytes, strides[i]);
        lesson_say(l, "\n");
    }
}

/* Probes of one kind, and how many of them were measured as the model says. */
static void claim_probes(struct lesson *l, const struct stride_probes *p, const char *claim,
                         bool (*is_kind)(const struct stride_access *))
{
    int probes = 0, equal = 0;
    for (int n = 0; n < p->count; n++) {
        const struct stride_access *a = &p->probe[n].access;
        probes += is_kind(a);
        equal += is_kind(a) && stride_coalesced(a).sectors == p->probe[n].measured;
    }
    lesson_claim_same(l, claim, "requests", "measured equal", probes, equal);
}

static bool is_aligned(const struct stride_access *a)
{
    return a->lanes == COALESCING_LANES && a->start == 0;
}

static bool is_misaligned(const struct stride_access *a)
{
    return a->start > 0;
}

static bool is_partial(const struct stride_access *a)
{
    return a->lanes < COALESCING_LANES;
}

/* Three ways for a warp to load 4 elements a lane. */
static void four_a_thread(struct lesson *l, const struct stride_probes *p)
{
    static const struct {
        const char *way;
        int requests, bytes, stride;
    } ways[] = {{"4 neighbours, one load each: stride 4", 4, 4, 4},
                {"32 elements apart: stride 1 (as our kernel)", 4, 4, 1},
                {"4 neighbours, one float4", 1, 16, 1}};
    lesson_say(l, "\nEach lane of a warp needs 4 elements, 512 bytes in all, 16 sectors:\n\n");
    for (int n = 0; n < 3; n++) {
        const struct stride_access access = {ways[n].bytes, COALESCING_LANES, ways[n].stride,
                                             0};
        const int64_t requests = ways[n].requests;
        lesson_claim_same(l, ways[n].way, "sectors", "measured",
                          requests * stride_coalesced(&access).sectors,
                          requests * stride_measured(p, &access));
    }
    lesson_say(
        l, "\nL1 may answer some of the 64 again from what it has: then DRAM does not read\n"
           "them four times, but L1 still serves four times the sectors.\n");
}

static void coalescing(struct lesson *l, const struct stride_probes *p)
{
    static const struct stride_access late = {4, COALESCING_LANES, 1, 1};
    lesson_section(l, "5. Experiment: coalescing, one request of a warp");
    lesson_say(
        l,
        "Lane k accesses element k * stride. A request moves whole sectors of 32\n"
        "bytes, each once, whichever lanes want it; \"useful\" is what lanes asked for.\n"
        "Predicted by sim/models/coalescing, counted on an %s\n(%s) %s:\n\n",
        p->gpu, p->software, p->date);
    say_strides(l, p);
    lesson_say(l, "\n");
    claim_probes(l, p, "Strides 0 to 33, loads and stores of 4, 8 and 16 bytes", is_aligned);
    claim_probes(l, p, "Starts that are no multiple of a sector, and some that are",
                 is_misaligned);
    claim_probes(l, p, "Fewer than 32 lanes", is_partial);
    lesson_claim_same(l, "4 bytes, stride 1, one element late: 5 sectors, not 4", "sectors",
                      "measured", stride_coalesced(&late).sectors, stride_measured(p, &late));
    four_a_thread(l, p);
}

/* What the times of the rows mean, where there are any. */
static void bandwidth(struct lesson *l, const struct basic_column *k)
{
    const struct machine *m = machine_of_gpu(k->gpu);
    if (!*k->gpu)
        return;
    lesson_say(
        l, "\nDRAM reads next to nothing where L2 still has the vectors of the launch "
           "before.\nA launch takes its time whatever it moves, here that of n = 1,000.\n\n");
    for (int n = 0; n < k->rows; n++) {
        const struct basic_row *row = &k->row[n];
        const double bytes = 12.0 * row->shape.cols, us = row->median_us;
        char x[32];
        if (us <= 0)
            continue;
        lesson_say(l, "n = %11s %8.1f MB in %7.1f us, %5.2f TB/s",
                   report_grouped(x, row->shape.cols), bytes / 1e6, us, bytes / us / 1e6);
        if (m)
            lesson_say(l, ", %3.0f %% of HBM's %.3g",
                       1e8 * bytes / us / m->hbm_bytes_per_second,
                       m->hbm_bytes_per_second / 1e12);
        lesson_say(l, "\n");
    }
}

static void check_kernel(struct lesson *l, const struct basic_column *k)
{
    lesson_section(l, "6. Check: the same addition as a CUDA kernel");
    basic_column_claim(l, k);
    bandwidth(l, k);
}

static void popular_claims(struct lesson *l)
{
    const struct machine *m = machine_find("A100-40GB");
    const int64_t array = INT64_C(192) * 1024; /* of an SM: L1 and shared memory */
    char text[32];
    lesson_section(l, "7. Popular claims, checked");
    lesson_claim_count(l, "\"The paper's SRAM, 20 MB, is the L2 cache\": no, 108 SMs x 192 KB",
                       "bytes", 108 * array, m->sms * array);
    lesson_claim_count(l, "... the L2 cache of an A100 is 40 MB", "bytes", INT64_C(40) << 20,
                       m->l2_bytes);
    lesson_claim_count(l, "\"Shared memory is 48 KB an SM on an A100\": no, 164 KB", "bytes",
                       INT64_C(164) * 1024, m->sram_bytes_per_sm);
    lesson_claim_count(l, "... of which one block may have 163 KB; 48 KB without asking",
                       "bytes", INT64_C(163) * 1024, m->sram_bytes_per_block);
    snprintf(text, sizeof text, "%.0f", machine_sram_bytes_per_second(m) / 1e12);
    lesson_claim_printed(l, "SRAM of an A100 in TB/s: 32 banks x 4 B a clock an SM",
                         "FlashAttention paper", "19", text);
}

/* figure_data: one request against the stride. */
static enum status write_strides(FILE *csv, const struct options *o, struct error *error)
{
    struct stride_probes p;
    (void)o;
    if (stride_probes_read(&p, PROBES, error))
        return error->status;
    fprintf(csv, "bytes,stride,predicted_sectors,measured_sectors,useful_percent,"
                 "measured_useful_percent\n");
    for (int bytes = 4; bytes <= 16; bytes *= 2) {
        for (int stride = 1; stride <= 33; stride++) {
            const struct stride_access access = {bytes, COALESCING_LANES, stride, 0};
            const struct coalesced c = stride_coalesced(&access);
            struct coalesced measured = c;
            measured.sectors = stride_measured(&p, &access);
            fprintf(csv, "%d,%d,%d,", bytes, stride, c.sectors);
            if (measured.sectors > 0)
                fprintf(csv, "%d,%.4f,%.4f\n", measured.sectors, efficiency(&c),
                        efficiency(&measured));
            else
                fprintf(csv, "NaN,%.4f,NaN\n", efficiency(&c));
        }
    }
    stride_probes_free(&p);
    return STATUS_OK;
}

static const struct figure figures[] = {{"coalescing", "coalescing"}};

static const char next[] =
    "  --seqlen 1000003              another length\n"
    "  --machine A100-80GB           levels of another GPU: flashlab machines\n"
    "  flashlab run-kernel vector_add --cols 1000 --lines   what each line moves\n"
    "  flashlab run-kernel matmul_naive --lines             broadcasts, stride 1\n"
    "  02_matmul                     the levels used: tiles in SRAM and registers\n";

static int tell(const struct options *o, const struct basic_column *k,
                const struct stride_probes *p)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    levels(&lesson);
    prediction(&lesson);
    if (two_views(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    coalescing(&lesson, p);
    check_kernel(&lesson, k);
    popular_claims(&lesson);
    return lesson_end(&lesson, next);
}

/* One that is all launch, the lesson's length, the ragged one, and, but for a CPU's patience,
 * one far beyond L2. */
static enum status open_column(struct basic_column *k, const struct options *o,
                               struct error *error)
{
    static const struct cpu_run small = {.kernel = CPU_VECTOR_ADD, .cols = 100003};
    const struct cpu_run shapes[] = {{.kernel = CPU_VECTOR_ADD, .cols = 1000},
                                     {.kernel = CPU_VECTOR_ADD, .cols = count_of(o)},
                                     {.kernel = CPU_VECTOR_ADD, .cols = RAGGED_COUNT},
                                     {.kernel = CPU_VECTOR_ADD, .cols = LARGE_COUNT}};
    return basic_column_open(k, o, shapes, o->cpu ? 3 : 4, &small, 1, error);
}

static int run(struct options *o)
{
    struct error error = {0};
    static struct basic_column k;
    struct stride_probes p;
    if (stride_probes_read(&p, PROBES, &error))
        return usage_error(&usage, &error);
    const int code =
        open_column(&k, o, &error) || figure_make(o, write_strides, figures, 1, &error)
            ? usage_error(&usage, &error)
            : tell(o, &k, &p);
    stride_probes_free(&p);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    options.simulation.attention.seqlen_q = DEFAULT_COUNT;
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
