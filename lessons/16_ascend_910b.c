/* Lesson 16, Ascend 910B: the same tiling where the unit that multiplies and the units that do
 * the softmax are different cores, which share nothing but global memory.
 *
 * One function a section, in the order in which they are read. N is the sequence length, d the
 * head dimension, Br and Bc the rows of a Q tile and of a K/V tile, Oij = Pij Vj.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/ascend_counting.h"
#include "common/ascend_dram.h"
#include "common/ascend_figures.h"
#include "common/ascend_published.h"
#include "common/ascend_report.h"
#include "common/ascend_result.h"
#include "common/figure.h"
#include "common/kernel_column.h"
#include "common/lesson.h"
#include "common/report.h"

static const struct usage usage = {
    .program = "16_ascend_910b",
    .summary = "Lesson 16: Ascend 910B, where S and P leave the core",
    .options = LESSON_OPTIONS,
};

static void prediction(struct lesson *l)
{
    const struct attention *a = &l->options->simulation.attention;
    lesson_section(l, "2. Prediction");
    lesson_say(l,
               "One head, N = %d, d = %d, Br = %d, Bc = %d, %s: Tr = %d, Tc = %d tiles.\n"
               "Global memory (GM) is HBM behind an L2 of 192 MiB. Elements of S and Oij are\n"
               "f32, as the cube makes them; of P as those of Q, K, V and O.\n\n",
               a->seqlen_q, a->head_dim, a->block_q, a->block_k, dtype_name(a->dtype),
               attention_tiles_q(a), attention_tiles_k(a));
    lesson_say(l, "  core    engine    way             elements\n"
                  "  cube    MTE2      GM -> L1        Q: N d   K, V: Tr N d each   P: N N\n"
                  "  cube    MTE1      L1 -> L0A       Q: Tc N d   P: N N\n"
                  "  cube    MTE1      L1 -> L0B       K, V: Tr N d each\n"
                  "  cube    FixPipe   L0C -> GM       S: N N   Oij: Tc N d\n"
                  "  vector  MTE2      GM -> UB        S: N N   Oij: Tc N d\n"
                  "  vector  MTE3      UB -> GM        P: N N   O: N d   LSE: N\n\n"
                  "On a GPU, FlashAttention-2 moves Q: N d, K and V: Tr N d each, O: N d, and\n"
                  "nothing else: S, P and Oij stay in registers.\n");
}

static const char *way_claim(enum path path)
{
    static const char *const claims[PATH_COUNT] = {
        [PATH_GM_TO_L1] = "GM -> L1 (MTE2, cube core): Q, K, V and P",
        [PATH_GM_TO_UB] = "GM -> UB (MTE2, vector cores): S and Oij",
        [PATH_L1_TO_L0A] = "L1 -> L0A (MTE1): Q again for each K tile, and P",
        [PATH_L1_TO_L0B] = "L1 -> L0B (MTE1): K and V",
        [PATH_L0C_TO_GM] = "L0C -> GM (FixPipe): S and Oij",
        [PATH_UB_TO_GM] = "UB -> GM (MTE3): P, O and LSE",
    };
    return claims[path];
}

/* Every way between the buffers, every level, every tensor. */
static void level_by_level(struct lesson *l, struct ascend_beside_gpu *both)
{
    lesson_section(l, "4. Experiment: level by level");
    for (int path = 0; path < PATH_COUNT; path++)
        if (way_claim((enum path)path))
            lesson_claim_count(l, way_claim((enum path)path), "bytes",
                               both->ascend.predicted.path_bytes[path],
                               both->ascend.simulated.path_bytes[path]);
    lesson_claim_count(l, "Every tensor and the FLOPs equal the closed form", "(1: yes, 0: no)",
                       1, both->ascend.equal);
    lesson_say(l, "\nThe levels, and what all cores moved into them and out of them:\n\n");
    ascend_print_levels(l, &both->ascend);
    lesson_say(l,
               "\nBytes between memory (GM, HBM) and the cores, the same tiles on both:\n\n");
    ascend_print_tensors(l, both);
}

static int64_t scores_bytes(const struct account *account)
{
    return counting_tensor_bytes(account, "S") + counting_tensor_bytes(account, "P");
}

/* What leaves the core, and what that is beside everything else. */
static void what_leaves(struct lesson *l, const struct ascend_beside_gpu *both,
                        const struct account *standard)
{
    const struct attention *a = &l->options->simulation.attention;
    const struct account *ascend = &both->ascend.simulated.account;
    const int64_t N = a->seqlen_q, d = a->head_dim, size = dtype_bytes(a->dtype);
    const int64_t Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    const int64_t gpu_bytes = size * (2 + 2 * Tr) * N * d;
    const int64_t exchanged = 2 * (4 + size) * N * N + 2 * 4 * Tc * N * d;
    lesson_section(l, "5. Experiment: what leaves the core");
    lesson_claim_count(l, "S leaves the cube core and enters the vector cores: 2 N N elements",
                       "bytes", 2 * 4 * N * N, counting_tensor_bytes(ascend, "S"));
    lesson_claim_count(l, "P goes back: 2 N N elements", "bytes", 2 * size * N * N,
                       counting_tensor_bytes(ascend, "P"));
    lesson_claim_count(l, "Oij follows S, as O cannot be added to where it is: 2 Tc N d",
                       "bytes", 2 * 4 * Tc * N * d, counting_tensor_bytes(ascend, "Oij"));
    lesson_claim_count(l, "On the GPU none of the three leaves the SM", "bytes", 0,
                       scores_bytes(&both->gpu.simulated) +
                           counting_tensor_bytes(&both->gpu.simulated, "Oij"));
    lesson_claim_ratio(l,
                       "S and P, over those of standard attention, written whole: (4+e)/(2e)",
                       (double)(4 + size) / (double)(2 * size),
                       (double)scores_bytes(ascend) / (double)scores_bytes(standard));
    lesson_say(l,
               "      e = %" PRId64
               " bytes an element. Room is saved, not traffic: few tiles serve.\n",
               size);
    lesson_claim_ratio(l, "All bytes of the 910B over all bytes of the GPU",
                       (double)(gpu_bytes + exchanged) / (double)gpu_bytes,
                       (double)ascend_gm_bytes(&both->ascend.simulated) /
                           (double)counting_matrix_bytes(&both->gpu.simulated));
    lesson_say(
        l, "      for long rows in %s: 1 + Br (%" PRId64 "/d + 4/Bc) / %" PRId64 " = %.4f\n",
        dtype_name(a->dtype), 4 + size, size,
        1 + a->block_q * ((double)(4 + size) / (double)d + 4.0 / a->block_k) / (double)size);
}

/* The same over N: all of it grows as N^2, so the ratio stays. */
static enum status over_lengths(struct lesson *l, struct error *error)
{
    int lengths = 0, equal = 0;
    char x[3][32];
    lesson_section(l, "6. Experiment: over a sweep of N");
    lesson_say(l, "%10s %22s %22s %16s\n", "N", "910B, bytes", "GPU, bytes", "910B / GPU");
    for (int seqlen = 500; seqlen <= 512000; seqlen *= 4, lengths++) {
        const struct attention a =
            counting_with_seqlen(&l->options->simulation.attention, seqlen);
        struct ascend_beside_gpu both;
        if (ascend_beside_gpu_run(&both, &a, error))
            return error->status;
        const int64_t ascend = ascend_gm_bytes(&both.ascend.simulated);
        const int64_t gpu = counting_matrix_bytes(&both.gpu.simulated);
        equal += both.ascend.equal && both.gpu.equal;
        lesson_say(l, "%10s %22s %22s %16.3f\n", report_grouped(x[0], seqlen),
                   report_grouped(x[1], ascend), report_grouped(x[2], gpu),
                   (double)ascend / (double)gpu);
    }
    lesson_say(l, "\n");
    lesson_claim_count(l, "Both machines' counts equal their closed forms at every N",
                       "lengths", lengths, equal);
    return STATUS_OK;
}

static enum status measured(struct lesson *l, const struct ascend_beside_gpu *both,
                            const struct options *twin, const struct kernel_column *kernels,
                            struct error *error)
{
    const struct options *own = l->options;
    lesson_section(l, "7. Check: what hardware counted");
    if (ascend_claim_recorded(l, error))
        return error->status;
    ascend_say_what_to_measure(l, &both->ascend);
    if (!kernels->live)
        return STATUS_OK;
    lesson_say(l, "\n");
    l->options = twin; /* whose problem our CUDA kernel has run */
    const enum status status = kernel_column_claim_traffic(l, kernels, error);
    if (!status)
        kernel_column_claim_steps(l, kernels);
    l->options = own;
    return status;
}

/* A line of the table of designs. */
static enum status print_design(struct lesson *l, struct ascend_counted *c,
                                enum ascend_design_id id, int64_t gpu_bytes, bool *fits,
                                struct error *error)
{
    const struct ascend_design *design = &ascend_designs[id];
    const struct attention *a = &l->options->simulation.attention;
    const struct account *account = &c->simulated.account;
    char x[5][32], name[DESIGN_NAME_SIZE];
    ascend_design_name(name, design, a->dtype);
    *fits = !ascend_counting_run(c, design, a, error);
    if (!*fits) {
        if (error->status != STATUS_ON_CHIP_FULL)
            return error->status;
        lesson_say(l, "%-15s   its tiles, %d x %d, do not fit\n", name,
                   c->run.attention.block_q, c->run.attention.block_k);
        return STATUS_OK;
    }
    const int64_t bytes = ascend_gm_bytes(&c->simulated);
    lesson_say(l, "%-15s %12s %12s %12s %13s %6.2f\n", name,
               report_grouped(x[0], counting_tensor_bytes(account, "K") +
                                        counting_tensor_bytes(account, "V")),
               report_grouped(x[1], scores_bytes(account)),
               report_grouped(x[2], counting_tensor_bytes(account, "Oij")),
               report_grouped(x[3], bytes), (double)bytes / (double)gpu_bytes);
    return STATUS_OK;
}

/* What each change of the design must bring, of those that fit. */
static void claim_designs(struct lesson *l, const struct ascend_counted *of, const bool *fits,
                          int64_t gpu_bytes)
{
    const struct attention *a = &l->options->simulation.attention;
    const struct account *base = &of[DESIGN_910B].simulated.account;
    const double size = dtype_bytes(a->dtype), Tc = attention_tiles_k(a);
    if (fits[DESIGN_WIDE_TILE]) {
        const struct attention *wide = &of[DESIGN_WIDE_TILE].run.attention;
        lesson_claim_ratio(
            l, "Bc doubled: Oij moves less by as much as there are fewer K/V tiles",
            Tc / attention_tiles_k(wide),
            (double)counting_tensor_bytes(base, "Oij") /
                (double)counting_tensor_bytes(&of[DESIGN_WIDE_TILE].simulated.account, "Oij"));
    }
    lesson_claim_ratio(
        l, "S rounded: S moves less by as much as its elements are smaller", 4 / size,
        (double)counting_tensor_bytes(base, "S") /
            (double)counting_tensor_bytes(&of[DESIGN_NARROW_SCORES].simulated.account, "S"));
    lesson_claim_count(l, "Direct ways: what is left is what the GPU moves", "bytes", gpu_bytes,
                       ascend_gm_bytes(&of[DESIGN_DIRECT].simulated));
}

static enum status designs(struct lesson *l, const struct ascend_beside_gpu *both,
                           struct error *error)
{
    const int64_t gpu_bytes = counting_matrix_bytes(&both->gpu.simulated);
    struct ascend_counted *of = calloc(DESIGN_COUNT, sizeof *of);
    bool fits[DESIGN_COUNT] = {false};
    enum status status = STATUS_OK;
    int counted = 0, equal = 0;
    if (!of)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %d designs",
                         DESIGN_COUNT);
    lesson_section(l, "8. Experiment: what a designer would change");
    lesson_say(l,
               "S in %s: FixPipe rounds S on its way out. Direct ways: L0C -> UB, UB -> L1.\n"
               "950: an Ascend 950, which has them, L0C of 256 KiB and UBs of 248.\n\n",
               dtype_name(l->options->simulation.attention.dtype));
    lesson_say(l, "Bytes between GM and the cores:\n\n%-15s %12s %12s %12s %13s %6s\n", "",
               "K, V", "S, P", "Oij", "all", "/ GPU");
    for (int id = 0; id < DESIGN_COUNT && !status; id++) {
        status =
            print_design(l, &of[id], (enum ascend_design_id)id, gpu_bytes, &fits[id], error);
        counted += fits[id];
        equal += fits[id] && of[id].equal;
    }
    lesson_say(l, "\n");
    if (!status) {
        lesson_claim_count(l, "Simulated equals the closed form for every design that fits",
                           "designs", counted, equal);
        claim_designs(l, of, fits, gpu_bytes);
    }
    free(of);
    return status;
}

/* S, P and Oij leave the core, but not the chip. */
static enum status behind_l2(struct lesson *l, struct error *error)
{
    lesson_section(l, "9. Experiment: does it reach HBM?");
    return ascend_claim_dram(l, error);
}

static enum status times(struct lesson *l, struct error *error)
{
    lesson_section(l, "10. Check: times that others measured on a 910B2");
    lesson_say(
        l, "One head, d = 128, f16, tiles of 128 rows: least times of the AI core with the\n"
           "most work, in us, from the counts; and a kernel of Huawei's (cann/pto-isa).\n"
           "Rates are those of CANN's configuration: 8192 FLOP, 110 bytes loaded and 86\n"
           "stored a clock of 1.8 GHz. Unknown: whether the vector cores share the 110,\n"
           "what exp costs, and how long cores wait for each other.\n\n");
    return ascend_claim_times(l, error);
}

static void plain_words(struct lesson *l)
{
    lesson_section(l, "11. In plain words");
    lesson_say(
        l, "  The tiling is the same; the hierarchy decides what it saves. Where matrix and\n"
           "  vector units share registers, S and P cost no traffic. Where they are cores\n"
           "  of their own, S, P and each Pij Vj cross L2: with the default tiles five\n"
           "  times as many bytes as Q, K, V and O. A large L2 keeps them from HBM, but\n"
           "  not from the ports of the cores. The next generation (Ascend 950) has the\n"
           "  two ways that are missing.\n");
}

static const struct figure figures[] = {
    {"ascend_ways", "ways"},
    {"ascend_designs", "designs"},
};

static const char question[] =
    "1. Question\n\n"
    "On a GPU the units that multiply and those that do the softmax share registers,\n"
    "and the tile of scores stays there. An Ascend 910B has cube cores that multiply\n"
    "and vector cores for the rest, which share nothing but global memory. What does\n"
    "the same tiling move there, level by level?";

static const char next[] =
    "  --block-k 256            fills L0A, L0B and L0C to the last byte: Oij halves\n"
    "  --block-q 256            does not fit the UBs: the table of bytes\n"
    "  --head-dim 64            S and P are more beside K and V\n"
    "  --gpu, --cpu             the GPU's side with our CUDA kernel, at this N and d\n"
    "  08_flash_attention       the same tiling on a GPU\n";

/* What is counted before anything is printed. */
struct counts {
    struct ascend_beside_gpu both;
    struct counted standard; /* attention on the GPU */
};

static int tell(const struct options *o, struct counts *counts, const struct options *twin,
                const struct kernel_column *kernels)
{
    struct ascend_beside_gpu *both = &counts->both;
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson);
    lesson_section(&lesson, "3. Experiment: the same result");
    if (ascend_claim_result(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    level_by_level(&lesson, both);
    what_leaves(&lesson, both, &counts->standard.simulated);
    if (over_lengths(&lesson, &error) || measured(&lesson, both, twin, kernels, &error) ||
        designs(&lesson, both, &error) || behind_l2(&lesson, &error) || times(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    plain_words(&lesson);
    return lesson_end(&lesson, next);
}

static enum status check_machine(const struct options *o, struct error *error)
{
    if (strcmp(o->simulation.machine->name, "Ascend-910B") == 0)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "--machine %s: this lesson simulates Ascend-910B and compares it with an "
                     "H200",
                     o->simulation.machine->name);
}

static enum status count(struct counts *counts, const struct options *o, struct error *error)
{
    const struct attention *a = &o->simulation.attention;
    const struct simulation gpu = {.machine = machine_default()};
    if (check_machine(o, error) || ascend_beside_gpu_run(&counts->both, a, error) ||
        counting_run(&counts->standard, &gpu, ALGORITHM_STANDARD, a, error))
        return error->status;
    return STATUS_OK;
}

static int run(struct options *o)
{
    struct error error = {0};
    struct kernel_column kernels = {0};
    struct options twin = *o; /* the problem as our CUDA kernel has it */
    struct counts counts = {0};
    twin.simulation.machine = machine_default();
    twin.simulation.attention.dtype = DTYPE_F32;
    twin.simulation.attention.block_q = twin.simulation.attention.block_k = 64;
    /* What can be wrong with the options shows here, before anything is printed or drawn. */
    if (count(&counts, o, &error) ||
        ((o->gpu || o->cpu) &&
         kernel_column_open(&kernels, &twin, ALGORITHM_BIT(ALGORITHM_FLASH2), &error)))
        return usage_error(&usage, &error);
    const int code = figure_make(o, ascend_figures_write, figures, 2, &error)
                         ? usage_error(&usage, &error)
                         : tell(o, &counts, &twin, &kernels);
    kernel_column_close(&kernels);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    struct simulation *s = &options.simulation;
    s->machine = machine_find("Ascend-910B");
    s->attention.head_dim = s->attention.head_dim_v = 128;
    s->attention.block_q = s->attention.block_k = 128;
    s->attention.dtype = DTYPE_F16;
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
