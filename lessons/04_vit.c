/* Lesson 04, attention in a Vision Transformer: 196 patches that look at each other.
 *
 * The sections about a picture are in vit/vit_claims.c; here are those about traffic and cost.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/counting.h"
#include "common/figure.h"
#include "common/lesson.h"
#include "common/report.h"
#include "models/io.h"
#include "models/io_basic.h"
#include "vit/vit_claims.h"
#include "vit/vit_column.h"
#include "vit/vit_figure.h"

#define SHAPE_OPTIONS (OPTION_BIT(OPTION_SEQLEN) | OPTION_BIT(OPTION_HEAD_DIM))

static const struct usage usage = {
    .program = "04_vit",
    .summary = "Lesson 04: attention in a Vision Transformer",
    .options = (LESSON_OPTIONS & ~SHAPE_OPTIONS) | OPTION_BIT(OPTION_IMAGE) |
               OPTION_BIT(OPTION_PATCH) | OPTION_BIT(OPTION_Q) | OPTION_BIT(OPTION_K),
    .refused = SHAPE_OPTIONS,
    .why = "the picture gives N = 196, and D = 768 with 12 heads d = 64; lessons 05 and 08 "
           "vary them",
};

static const char question[] =
    "1. Question\n\n"
    "A Vision Transformer cuts a picture into patches and lets each of them look at\n"
    "all others. How many are they, what does a patch look at, and what does that\n"
    "cost beside the products around it?";

static void prediction(struct lesson *l)
{
    const struct attention *a = &l->options->simulation.attention;
    const int64_t N = VIT_PATCHES, D = VIT_WIDTH;
    char x[2][32];
    lesson_section(l, "2. Prediction");
    lesson_say(l, "patches        N = (224/16)^2           %10d   (a class token: 197)\n",
               VIT_PATCHES);
    lesson_say(l, "width          D = 3 x 16 x 16          %10d\n", VIT_WIDTH);
    lesson_say(l, "heads          12, each of d = D/12     %10d\n", VIT_HEAD_DIM);
    lesson_say(l, "scores         N N, each of 12 heads    %10s\n",
               report_grouped(x[0], N * N));
    lesson_say(l, "passes over K  ceil(N/Br), Br = %-7d  %10d   (the last of %d rows)\n",
               a->block_q, attention_tiles_q(a),
               VIT_PATCHES - (attention_tiles_q(a) - 1) * a->block_q);
    lesson_say(l, "matrix FLOPs   Q, K and V: 6 N D D   %13s\n",
               report_grouped(x[0], 6 * N * D * D));
    lesson_say(l, "               attention: 4 N N D    %13s   equal at N = 3D/2 = %s\n",
               report_grouped(x[0], 4 * N * N * D), report_grouped(x[1], 3 * D / 2));
}

static int64_t total_bytes(const struct account *account)
{
    const struct traffic total = account_total(account);
    return total.of[DIRECTION_READ].bytes + total.of[DIRECTION_WRITE].bytes;
}

/* Rows of a tensor that went to the SMs, of all heads at once. */
static int64_t rows_of(const struct counted *c, const char *tensor)
{
    const int64_t row = (int64_t)VIT_WIDTH * dtype_bytes(c->simulation.attention.dtype);
    return counting_tensor_bytes(&c->simulated, tensor) / row;
}

static void say_traffic(struct lesson *l, const struct counted *c)
{
    char x[4][32];
    lesson_say(l, "%-9s %16s %16s %16s %16s\n", algorithm_name(c->simulation.algorithm),
               report_grouped(x[0], counting_tensor_bytes(&c->simulated, "K") +
                                        counting_tensor_bytes(&c->simulated, "V")),
               report_grouped(x[1], counting_tensor_bytes(&c->simulated, "S") +
                                        counting_tensor_bytes(&c->simulated, "P")),
               report_grouped(x[2], total_bytes(&c->predicted)),
               report_grouped(x[3], total_bytes(&c->simulated)));
}

/* The four algorithms at 12 x 196 x 64. */
static enum status traffic(struct lesson *l, struct error *error)
{
    struct simulation base = l->options->simulation;
    const struct attention *a = &base.attention;
    const int64_t Tr = attention_tiles_q(a), Tc = attention_tiles_k(a);
    struct counted c;
    int equal = 0;
    lesson_say(
        l, "\n12 heads, N = 196, d = 64, Br = %d, Bc = %d, %s; bytes requested from HBM:\n\n",
        a->block_q, a->block_k, dtype_name(a->dtype));
    lesson_say(l, "%-9s %16s %16s %16s %16s\n", "", "of K and V", "of S and P",
               "all, predicted", "simulated");
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        if (counting_run(&c, &base, (enum algorithm)i, a, error))
            return error->status;
        equal += c.equal;
        say_traffic(l, &c);
    }
    lesson_say(l, "\n");
    lesson_claim_count(l, "Simulated equals predicted, tensor by tensor", "algorithms",
                       ALGORITHM_COUNT, equal);
    if (counting_run(&c, &base, ALGORITHM_FLASH2, a, error))
        return error->status;
    lesson_claim_count(l, "FlashAttention-2: ceil(196/Br) passes over 196 rows of K and of V",
                       "rows", 2 * Tr * VIT_PATCHES, rows_of(&c, "K") + rows_of(&c, "V"));
    lesson_claim_count(l,
                       "\"A ViT has N = 196 tokens\": right, (224/16)^2, and 197 with a class",
                       "rows of Q", (int64_t)(224 / 16) * (224 / 16), rows_of(&c, "Q"));
    base.tma = true;
    if (counting_run(&c, &base, ALGORITHM_FLASH2, a, error))
        return error->status;
    lesson_claim_count(l, "Moved by the copy engine the last tile is a whole box: Tc Bc rows",
                       "rows", 2 * Tr * Tc * a->block_k, rows_of(&c, "K") + rows_of(&c, "V"));
    return STATUS_OK;
}

/* Projections and attention of N tokens, counted. */
struct cost {
    struct account projection, attention;
};

static enum status count_cost(struct cost *cost, const struct simulation *base,
                              enum algorithm algorithm, int N, struct error *error)
{
    const struct attention a = counting_with_seqlen(&base->attention, N);
    struct counted c;
    if (counting_run(&c, base, algorithm, &a, error) ||
        vit_count_projection(&cost->projection, base->machine, N, error))
        return error->status;
    cost->attention = c.simulated;
    return STATUS_OK;
}

static void predict_cost(struct cost *cost, const struct simulation *base,
                         enum algorithm algorithm, int N)
{
    const struct attention a = counting_with_seqlen(&base->attention, N);
    const struct io_matmul product = {N, 3 * VIT_WIDTH, VIT_WIDTH};
    cost->projection = io_matmul_tiled(&product, PROJECTION_TILE);
    cost->attention = io_predict(algorithm, &a, false);
}

/* The first multiple of STEP tokens at which attention moves at least what the projections
 * move. */
enum { STEP = 64, MOST_TOKENS = 1 << 14 };

static bool attention_moves_more(const struct cost *cost)
{
    return total_bytes(&cost->attention) >= total_bytes(&cost->projection);
}

static enum status find_crossing(int *predicted, int *simulated, const struct simulation *base,
                                 enum algorithm algorithm, struct error *error)
{
    struct cost cost;
    for (*predicted = STEP; *predicted < MOST_TOKENS; *predicted += STEP) {
        predict_cost(&cost, base, algorithm, *predicted);
        if (attention_moves_more(&cost))
            break;
    }
    for (*simulated = STEP; *simulated < MOST_TOKENS; *simulated += STEP) {
        if (count_cost(&cost, base, algorithm, *simulated, error))
            return error->status;
        if (attention_moves_more(&cost))
            break;
    }
    return STATUS_OK;
}

static enum status claim_crossing(struct lesson *l, enum algorithm algorithm,
                                  struct error *error)
{
    char claim[80];
    int predicted, simulated;
    if (find_crossing(&predicted, &simulated, &l->options->simulation, algorithm, error))
        return error->status;
    snprintf(claim, sizeof claim,
             "%s moves as many bytes as the projections from N =", algorithm_name(algorithm));
    lesson_claim_count(l, claim, "tokens", predicted, simulated);
    return STATUS_OK;
}

/* What attention costs beside the products that make Q, K and V. */
static enum status projections(struct lesson *l, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    const int64_t N = VIT_PATCHES, D = VIT_WIDTH, equal = 3 * D / 2;
    struct cost standard = {0}, flash2 = {0}, at_equal = {0};
    char x[3][32];
    if (count_cost(&standard, base, ALGORITHM_STANDARD, VIT_PATCHES, error) ||
        count_cost(&flash2, base, ALGORITHM_FLASH2, VIT_PATCHES, error) ||
        count_cost(&at_equal, base, ALGORITHM_FLASH2, (int)equal, error))
        return error->status;
    lesson_section(l, "7. Experiment: attention beside its projections");
    lesson_say(l, "%-32s %20s %20s\n", "N = 196", "matrix FLOPs", "bytes");
    lesson_say(l, "%-32s %20s %20s\n", "Q, K, V: 196 x 768 x 2304, f32",
               report_grouped(x[0], flash2.projection.flops.matrix),
               report_grouped(x[1], total_bytes(&flash2.projection)));
    lesson_say(l, "%-32s %20s %20s\n", "attention, standard",
               report_grouped(x[0], standard.attention.flops.matrix),
               report_grouped(x[1], total_bytes(&standard.attention)));
    lesson_say(l, "%-32s %20s %20s\n\n", "attention, FlashAttention-2",
               report_grouped(x[0], flash2.attention.flops.matrix),
               report_grouped(x[1], total_bytes(&flash2.attention)));
    lesson_claim_count(l, "Q, K and V take 6 N D D FLOPs", "FLOPs", 6 * N * D * D,
                       flash2.projection.flops.matrix);
    lesson_claim_count(l, "Attention takes 4 N N D", "FLOPs", 4 * N * N * D,
                       flash2.attention.flops.matrix);
    lesson_claim_ratio(l, "Attention over projections: 2N / 3D, small in a ViT",
                       2.0 * (double)N / (3.0 * (double)D),
                       (double)standard.attention.flops.matrix /
                           (double)standard.projection.flops.matrix);
    lesson_claim_count(l, "Equal at N = 3D/2 = 1,152, a picture of 543 x 543", "FLOPs",
                       at_equal.projection.flops.matrix, at_equal.attention.flops.matrix);
    if (claim_crossing(l, ALGORITHM_STANDARD, error) ||
        claim_crossing(l, ALGORITHM_FLASH2, error))
        return error->status;
    lesson_say(l, "      (of N that are multiples of 64)\n");
    return STATUS_OK;
}

static const struct figure figures[] = {{"vit_map", "map"}, {"vit_cost", "cost"}};

static const char next[] =
    "  --patch 11,8                     the nose; --patch 0,0 the background\n"
    "  --image FILE                     a picture of your own\n"
    "  --block-q 32                     more passes over K and V\n"
    "  --plot map.png                   the picture beside the map\n"
    "  08_flash_attention --seqlen 196  the same N, other claims\n"
    "  flashlab run-kernel flash2_forward --seqlen 196 --lines";

static int tell(const struct options *o, const struct vit *vit, const struct vit_column *column)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson);
    lesson_section(&lesson, "3. Experiment: from a picture to Q, K and V");
    vit_claim_patches(&lesson, vit);
    lesson_section(&lesson, "4. Experiment: why 1/sqrt(d)");
    if (vit_claim_scale(&lesson, vit, &error))
        return lesson_abandon(&lesson, &error);
    lesson_section(&lesson, "5. Experiment: the attention map");
    if (vit_claim_map(&lesson, vit, &error))
        return lesson_abandon(&lesson, &error);
    lesson_section(&lesson, "6. Experiment: four kernels");
    if (vit_claim_results(&lesson, vit, &error) || traffic(&lesson, &error) ||
        projections(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    lesson_section(&lesson, "8. Check: the same algorithms as CUDA kernels");
    vit_column_claim(&lesson, column);
    return lesson_end(&lesson, next);
}

static int run(struct options *o)
{
    struct error error = {0};
    struct vit_column column;
    struct vit vit;
    if (lesson_check(o, &error) || vit_open(&vit, o, &error))
        return usage_error(&usage, &error);
    int code = EXIT_USAGE;
    if (vit_column_open(&column, o, &error) == STATUS_OK) {
        if (figure_make(o, vit_figure_write, figures, 2, &error) == STATUS_OK)
            code = tell(o, &vit, &column);
        vit_column_close(&column);
    }
    if (error.status)
        code = usage_error(&usage, &error);
    vit_close(&vit);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    struct attention *a = &options.simulation.attention;
    a->heads_q = a->heads_kv = VIT_HEADS;
    a->seqlen_q = a->seqlen_k = VIT_PATCHES;
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
