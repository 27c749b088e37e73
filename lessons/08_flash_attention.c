/* Lesson 08, FlashAttention: what exactly falls by N/block_size, by B, and by 2B/d.
 *
 * One function a section, in the order in which they are read. N is the sequence length, d the
 * head dimension, Br and Bc the rows of a Q tile and of a K/V tile.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/counting.h"
#include "common/figure.h"
#include "common/kernel_column.h"
#include "common/lesson.h"
#include "common/published.h"
#include "common/report.h"
#include "common/same_result.h"
#include "common/sweeps.h"

static const struct usage usage = {
    .program = "08_flash_attention",
    .summary = "Lesson 08: FlashAttention, counted byte by byte",
    .options = LESSON_OPTIONS,
};

/* The four algorithms on the lesson's problem, by enum algorithm. */
struct four {
    struct counted of[ALGORITHM_COUNT];
};

static enum status count_four(struct four *four, const struct options *o, struct error *error)
{
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (counting_run(&four->of[i], &o->simulation, (enum algorithm)i,
                         &o->simulation.attention, error))
            return error->status;
    return STATUS_OK;
}

static void prediction(struct lesson *l)
{
    const struct attention *a = &l->options->simulation.attention;
    const int64_t N = a->seqlen_q, d = a->head_dim, Br = a->block_q;
    const int64_t Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    char x[4][32];
    lesson_section(l, "2. Prediction");
    lesson_say(l, "N = %" PRId64 ", d = %" PRId64 ", Br = %" PRId64 ", Bc = %d, %s\n\n", N, d,
               Br, a->block_k, dtype_name(a->dtype));
    lesson_say(l, "passes over K and V    a row at a time   N            = %s\n",
               report_grouped(x[0], N));
    lesson_say(l, "                       FlashAttention-2  N/Br         = %s\n",
               report_grouped(x[0], Tr));
    lesson_say(l, "scores alive at once   standard          N N          = %s\n",
               report_grouped(x[0], N * N));
    lesson_say(l, "                       a strip of rows   N Br         = %s\n",
               report_grouped(x[0], N * Br));
    lesson_say(l, "                       FlashAttention    Br Bc        = %s\n",
               report_grouped(x[0], Br * a->block_k));
    lesson_say(l, "elements moved         standard          4Nd + 4NN    = %s\n",
               report_grouped(x[0], 4 * N * d + 4 * N * N));
    lesson_say(l, "                       FlashAttention-1  (3Tc+1)Nd    = %s\n",
               report_grouped(x[0], (3 * Tc + 1) * N * d));
    lesson_say(l, "                       FlashAttention-2  (2+2N/Br)Nd  = %s\n",
               report_grouped(x[0], (2 + 2 * Tr) * N * d));
    lesson_say(l, "\nN/B is ceil(N/B) where B does not divide N. The papers leave the row "
                  "statistics\n(l, m, LSE) out of these counts, and so do the ratios below.\n");
}

/* Passes over a tensor of pass bytes; -1 if it is no whole number of passes. */
static int64_t passes(int64_t bytes, int64_t pass)
{
    return bytes % pass == 0 ? bytes / pass : -1;
}

static void print_four(struct lesson *l, const struct four *four)
{
    const struct attention *a = &l->options->simulation.attention;
    const int64_t pass = (int64_t)a->seqlen_k * a->head_dim * dtype_bytes(a->dtype);
    const double standard =
        (double)counting_matrix_bytes(&four->of[ALGORITHM_STANDARD].simulated);
    char x[3][32];
    lesson_say(l, "%-9s %9s %18s %18s %18s\n", "", "passes", "bytes of", "bytes of",
               "standard /");
    lesson_say(l, "%-9s %9s %18s %18s %18s\n", "", "over K", "K and V", "Q K V O S P", "this");
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        const struct account *s = &four->of[i].simulated;
        lesson_say(
            l, "%-9s %9s %18s %18s %18.3f\n", algorithm_name((enum algorithm)i),
            report_grouped(x[0], passes(counting_tensor_bytes(s, "K"), pass)),
            report_grouped(x[1], counting_tensor_bytes(s, "K") + counting_tensor_bytes(s, "V")),
            report_grouped(x[2], counting_matrix_bytes(s)),
            standard / (double)counting_matrix_bytes(s));
    }
    lesson_say(l, "\n");
}

/* The law, at the lesson's N and B. */
static void law(struct lesson *l, const struct four *four)
{
    const struct attention *a = &l->options->simulation.attention;
    const int64_t N = a->seqlen_q, d = a->head_dim, size = dtype_bytes(a->dtype);
    const int64_t Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    const struct counted *standard = &four->of[ALGORITHM_STANDARD];
    const struct account *naive = &four->of[ALGORITHM_NAIVE].simulated;
    const struct account *flash1 = &four->of[ALGORITHM_FLASH1].simulated;
    const struct account *flash2 = &four->of[ALGORITHM_FLASH2].simulated;
    const int64_t kv_naive =
        counting_tensor_bytes(naive, "K") + counting_tensor_bytes(naive, "V");
    const int64_t kv_flash2 =
        counting_tensor_bytes(flash2, "K") + counting_tensor_bytes(flash2, "V");
    const double total_standard = (double)counting_matrix_bytes(&standard->simulated);
    lesson_section(l, "4. Experiment: the law");
    print_four(l, four);
    lesson_claim_count(l, "A row at a time: N passes over K and V", "passes", N,
                       passes(kv_naive, 2 * N * d * size));
    lesson_claim_count(l, "FlashAttention-2: passes fall TO N/Br", "passes", Tr,
                       passes(kv_flash2, 2 * N * d * size));
    lesson_claim_ratio(l, "so K/V traffic falls BY a factor of N/ceil(N/Br), which is Br",
                       (double)N / (double)Tr, (double)kv_naive / (double)kv_flash2);
    lesson_claim_count(l, "Scores alive, standard attention: all of S in HBM", "elements",
                       N * N, counting_tensor_bytes(&standard->simulated, "S") / (2 * size));
    lesson_claim_count(l, "Scores alive, a strip of Br rows: fall by N/Br", "elements",
                       N * a->block_q, counting_tile_bytes(standard, "Si") / 4);
    lesson_claim_count(l, "Scores alive, FlashAttention-2: one tile", "elements",
                       (int64_t)a->block_q * a->block_k,
                       counting_tile_bytes(&four->of[ALGORITHM_FLASH2], "Sij, Pij") / 4);
    lesson_claim_ratio(l, "Total, standard over FlashAttention-2: near 2B/d, NOT N/B",
                       (double)(4 * N * d + 4 * N * N) / (double)((2 + 2 * Tr) * N * d),
                       total_standard / (double)counting_matrix_bytes(flash2));
    lesson_say(l, "      2 Br / d = %.4f\n", 2.0 * a->block_q / (double)d);
    lesson_claim_ratio(l, "Total, standard over FlashAttention-1: near 4B/(3d)",
                       (double)(4 * N * d + 4 * N * N) / (double)((3 * Tc + 1) * N * d),
                       total_standard / (double)counting_matrix_bytes(flash1));
    lesson_say(l, "      4 Bc / (3 d) = %.4f\n", 4.0 * a->block_k / (3.0 * (double)d));
}

/* What a sweep found. */
struct sweep {
    int settings, passes_right, equal;
};

/* One N and Br of the sweep; a line of its table. */
static enum status sweep_one(struct lesson *l, struct sweep *sweep, int seqlen, int block,
                             struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    struct attention a = counting_with_seqlen(&base->attention, seqlen);
    const int64_t pass = (int64_t)seqlen * a.head_dim * dtype_bytes(a.dtype);
    struct counted flash2, standard;
    char x[3][32];
    a.block_q = block;
    if (counting_run(&flash2, base, ALGORITHM_FLASH2, &a, error)) {
        if (error->status != STATUS_ON_CHIP_FULL)
            return error->status;
        lesson_say(l, "%10s %6d   the tiles do not fit on chip\n", report_grouped(x[0], seqlen),
                   block);
        return STATUS_OK;
    }
    if (counting_run(&standard, base, ALGORITHM_STANDARD, &a, error))
        return error->status;
    const int64_t passed = passes(counting_tensor_bytes(&flash2.simulated, "K"), pass);
    const int64_t moved = counting_matrix_bytes(&flash2.simulated);
    sweep->settings++;
    sweep->passes_right += passed == (seqlen + block - 1) / block;
    sweep->equal += flash2.equal && standard.equal;
    lesson_say(l, "%10s %6d %12s %18s %14.3f\n", report_grouped(x[0], seqlen), block,
               report_grouped(x[1], passed), report_grouped(x[2], moved),
               (double)counting_matrix_bytes(&standard.simulated) / (double)moved);
    return STATUS_OK;
}

/* The law holds at every N and every B, not only at the default. */
static enum status law_everywhere(struct lesson *l, struct error *error)
{
    struct sweep sweep = {0};
    lesson_section(l, "5. Experiment: over sweeps of N and B");
    lesson_say(l, "%10s %6s %12s %18s %14s\n", "N", "Br", "passes", "bytes moved",
               "standard/this");
    for (int seqlen = 256; seqlen <= 65536; seqlen *= 4)
        for (int block = 16; block <= 128; block *= 2)
            if (sweep_one(l, &sweep, seqlen, block, error))
                return error->status;
    lesson_say(l, "\n");
    lesson_claim_count(l, "Passes over K and V are ceil(N/Br) in every setting", "settings",
                       sweep.settings, sweep.passes_right);
    lesson_claim_count(l, "Simulated counts equal the closed forms in every setting",
                       "settings", sweep.settings, sweep.equal);
    return STATUS_OK;
}

/* One setting where tiling moves more than standard attention. */
static enum status loses(struct lesson *l, const char *claim, const struct simulation *base,
                         enum algorithm algorithm, const struct attention *a,
                         struct error *error)
{
    struct counted flash, standard;
    if (counting_run(&flash, base, algorithm, a, error) ||
        counting_run(&standard, base, ALGORITHM_STANDARD, a, error))
        return error->status;
    const int64_t moved = counting_matrix_bytes(&flash.simulated);
    const int64_t standard_moved = counting_matrix_bytes(&standard.simulated);
    lesson_claim_ratio(l, claim,
                       (double)counting_matrix_bytes(&flash.predicted) /
                           (double)counting_matrix_bytes(&standard.predicted),
                       (double)moved / (double)standard_moved);
    lesson_claim_count(l, "      ... which is more than standard attention moves",
                       "(1: more, 0: less)", 1, moved > standard_moved);
    return STATUS_OK;
}

static enum status where_it_loses(struct lesson *l, struct error *error)
{
    struct simulation base = l->options->simulation;
    struct attention small = counting_with_seqlen(&base.attention, 4096);
    lesson_section(l, "6. Experiment: where tiling moves MORE");
    lesson_say(l, "Total traffic falls by about 2 Br/d: a small B with a large d loses.\n\n");
    small.head_dim = small.head_dim_v = 128;
    small.block_q = small.block_k = 16;
    if (loses(l, "Br = 16, d = 128: FlashAttention-2 over standard, near d/(2 Br) = 4", &base,
              ALGORITHM_FLASH2, &small, error))
        return error->status;
    /* M = 48 KB in fp32 elements: Bc = ceil(M / 4d), Br = min(Bc, d) as the paper sets them. */
    base.machine = machine_find("teaching");
    const int M = (int)(base.machine->sram_bytes_per_block / 4);
    small.dtype = DTYPE_F32;
    small.block_k = (M + 4 * small.head_dim - 1) / (4 * small.head_dim);
    small.block_q = small.block_k < small.head_dim ? small.block_k : small.head_dim;
    lesson_say(l,
               "\nThe paper's own block sizes with M = 48 KB, fp32, d = 128 (M counts "
               "elements):\nBc = ceil(M/4d) = %d, Br = min(Bc, d) = %d.\n\n",
               small.block_k, small.block_q);
    if (loses(l, "FlashAttention-1 over standard", &base, ALGORITHM_FLASH1, &small, error) ||
        loses(l, "FlashAttention-2 over standard", &base, ALGORITHM_FLASH2, &small, error))
        return error->status;
    return STATUS_OK;
}

/* Block-diagonal (local) attention: N/B independent problems of length B. */
static enum status local_attention(struct lesson *l, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    struct attention full = base->attention, local;
    struct counted flash2, diagonal;
    full.seqlen_q = full.seqlen_k = attention_tiles_q(&full) * full.block_q;
    local = full;
    local.batch = attention_tiles_q(&full);
    local.seqlen_q = local.seqlen_k = full.block_q;
    if (counting_run(&flash2, base, ALGORITHM_FLASH2, &full, error) ||
        counting_run(&diagonal, base, ALGORITHM_FLASH2, &local, error))
        return error->status;
    const int64_t all = counting_tensor_bytes(&flash2.simulated, "K");
    const int64_t own = counting_tensor_bytes(&diagonal.simulated, "K");
    lesson_section(l, "7. Experiment: what does fall by N/B");
    lesson_say(l,
               "Local attention, where each block of queries sees its own block of keys only, "
               "is\nN/B problems of length B.\n\n");
    lesson_claim_count(l, "K/V traffic of FlashAttention-2 over that of local attention: N/B",
                       "times", attention_tiles_q(&full), all / own);
    return STATUS_OK;
}

/* What others printed and what hardware counted. */
static enum status published(struct lesson *l, const struct kernel_column *kernels,
                             struct error *error)
{
    lesson_section(l, "8. Check: Figure 2 (middle) of the FlashAttention paper");
    if (lesson_claim_figure2(l, error))
        return error->status;
    lesson_section(l, "9. Check: hardware counters of production kernels, NVIDIA H200");
    if (lesson_claim_h200(l, error))
        return error->status;
    lesson_section(l, "10. Check: the same algorithms as CUDA kernels");
    if (kernel_column_claim_traffic(l, kernels, error))
        return error->status;
    kernel_column_claim_steps(l, kernels);
    return STATUS_OK;
}

static void plain_words(struct lesson *l)
{
    lesson_section(l, "11. In plain words");
    lesson_say(
        l, "  Falls TO N/B:    how often K and V are passed over, from N times.\n"
           "  Falls BY B:      K/V traffic against a row at a time.\n"
           "  Falls by (N/B)^2: the scores alive at once, against standard attention.\n"
           "  Falls by 2B/d:   total traffic against standard attention. It does not depend\n"
           "                   on N, and with B < d/2 it is a loss.\n"
           "  Falls by N/B:    K/V traffic of local attention against full attention.\n");
}

static const struct figure figures[] = {
    {"traffic_vs_seqlen", "seqlen"},
    {"traffic_vs_block", "block"},
};

static const char question[] =
    "1. Question\n\n"
    "Tiled attention is said to cut memory traffic \"by N/block_size\". What exactly\n"
    "falls, and by how much?";

static const char next[] =
    "  --block-q 128                        K/V traffic halves again\n"
    "  --head-dim 128 --block-q 16          tiling moves more than standard attention\n"
    "  --machine teaching --head-dim 128    tiles that do not fit: the byte table\n"
    "  --csv FILE --plot FILE.png           this lesson's two figures and their data\n"
    "  --gpu, --cpu                         run the CUDA kernels here, at this shape\n"
    "  flashlab compare --help              simulator and CUDA kernel, step by step\n"
    "  flashlab run-kernel flash2_forward --lines    what each source line moves\n"
    "  flashlab traffic --help              any shape, tensor by tensor\n";

static int tell(const struct options *o, const struct four *four,
                const struct kernel_column *kernels)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson);
    lesson_section(&lesson, "3. Experiment: the same result");
    if (lesson_same_result(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    law(&lesson, four);
    if (law_everywhere(&lesson, &error) || where_it_loses(&lesson, &error) ||
        local_attention(&lesson, &error) || published(&lesson, kernels, &error))
        return lesson_abandon(&lesson, &error);
    plain_words(&lesson);
    return lesson_end(&lesson, next);
}

static int run(struct options *o)
{
    const unsigned all = ALGORITHM_BIT(ALGORITHM_COUNT) - 1;
    struct error error = {0};
    struct kernel_column kernels;
    struct four four;
    /* What can be wrong with the options shows here, before anything is printed or drawn. */
    if (lesson_check(o, &error) || count_four(&four, o, &error) ||
        kernel_column_open(&kernels, o, all, &error))
        return usage_error(&usage, &error);
    const int code = figure_make(o, sweeps_write, figures, 2, &error)
                         ? usage_error(&usage, &error)
                         : tell(o, &four, &kernels);
    kernel_column_close(&kernels);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
