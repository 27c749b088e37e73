/* Lesson 05, standard attention: where its bytes go, and why that grows as N^2. */
#include <inttypes.h>
#include <stdio.h>

#include "common/counting.h"
#include "common/figure.h"
#include "common/kernel_column.h"
#include "common/lesson.h"
#include "common/report.h"
#include "common/same_result.h"
#include "models/io.h"

static const struct usage usage = {
    .program = "05_standard_attention",
    .summary = "Lesson 05: standard attention, and the matrix that it writes to memory",
    .options = LESSON_OPTIONS,
};

static const char question[] =
    "1. Question\n\n"
    "Attention is three steps: S = Q K^T, P = softmax(S), O = P V. Each is a kernel\n"
    "launch, and what one launch leaves for the next lies in HBM. Where do the bytes\n"
    "go?";

static void prediction(struct lesson *l)
{
    const struct attention *a = &l->options->simulation.attention;
    const int64_t N = a->seqlen_q, d = a->head_dim, size = dtype_bytes(a->dtype);
    char x[32];
    lesson_section(l, "2. Prediction");
    lesson_say(l, "N = %" PRId64 ", d = %" PRId64 ", %s; each operand of each launch once:\n\n",
               N, d, dtype_name(a->dtype));
    lesson_say(l, "  scores    reads Q, K    2 N d        writes S    N N\n"
                  "  softmax   reads S       N N          writes P    N N\n"
                  "  output    reads P, V    N N + N d    writes O    N d\n\n");
    lesson_say(l, "  elements  4 N d + 4 N N = %s\n", report_grouped(x, 4 * N * d + 4 * N * N));
    lesson_say(l, "  bytes                     %s\n",
               report_grouped(x, size * (4 * N * d + 4 * N * N)));
    lesson_say(l, "  of them for S and P       %.1f %%\n", 100.0 * (double)N / (double)(N + d));
}

static void print_launches(struct lesson *l, const struct counted *c)
{
    char x[2][32];
    lesson_say(l, "%-18s %-8s %20s %20s\n", "launch", "tensor", "bytes read", "bytes written");
    for (int i = 0; i < c->simulation.gpu.launch_count; i++) {
        const struct launch_record *r = &c->simulation.gpu.launches[i];
        for (int t = 0; t < r->account.tensor_count; t++) {
            const struct amount *of = r->account.tensor[t].traffic.of;
            if (of[DIRECTION_READ].bytes + of[DIRECTION_WRITE].bytes > 0)
                lesson_say(l, "%-18s %-8s %20s %20s\n", r->name, r->account.tensor[t].name,
                           report_grouped(x[0], of[DIRECTION_READ].bytes),
                           report_grouped(x[1], of[DIRECTION_WRITE].bytes));
        }
    }
    lesson_say(l,
               "\nLSE, the logarithm of each row's sum, is what a backward pass would need; it "
               "is\nleft out of the claims below, as the papers leave it out.\n\n");
}

/* Where the bytes go, at the lesson's N. */
static enum status where_bytes_go(struct lesson *l, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    const struct attention *a = &base->attention;
    const int64_t N = a->seqlen_q, d = a->head_dim, size = dtype_bytes(a->dtype);
    struct counted c;
    if (counting_run(&c, base, ALGORITHM_STANDARD, a, error))
        return error->status;
    const int64_t scores =
        counting_tensor_bytes(&c.simulated, "S") + counting_tensor_bytes(&c.simulated, "P");
    lesson_section(l, "4. Experiment: launch by launch");
    print_launches(l, &c);
    lesson_claim_count(l, "Standard attention moves 4 N d + 4 N N elements", "bytes",
                       size * (4 * N * d + 4 * N * N), counting_matrix_bytes(&c.simulated));
    lesson_claim_count(l, "S and P are written once and read once each: 4 N N elements",
                       "bytes", size * 4 * N * N, scores);
    lesson_claim_ratio(l, "Their share of the traffic: N / (N + d)",
                       (double)N / (double)(N + d),
                       (double)scores / (double)counting_matrix_bytes(&c.simulated));
    lesson_claim_ratio(
        l, "Moved over compulsory (Q, K, V, O once): 1 + N/d", (double)(N + d) / (double)d,
        (double)counting_matrix_bytes(&c.simulated) / (double)io_compulsory_bytes(a));
    return STATUS_OK;
}

/* Traffic grows as N^2, the compulsory part as N. */
static enum status growth(struct lesson *l, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    int settings = 0, equal = 0;
    char x[3][32];
    lesson_section(l, "5. Experiment: over a sweep of N");
    lesson_say(l, "%10s %20s %20s %12s\n", "N", "bytes moved", "compulsory", "moved/comp.");
    for (int seqlen = 256; seqlen <= 262144; seqlen *= 4, settings++) {
        const struct attention a = counting_with_seqlen(&base->attention, seqlen);
        struct counted c;
        if (counting_run(&c, base, ALGORITHM_STANDARD, &a, error))
            return error->status;
        const int64_t moved = counting_matrix_bytes(&c.simulated);
        const int64_t N = seqlen, d = a.head_dim;
        equal += c.equal && moved == dtype_bytes(a.dtype) * (4 * N * d + 4 * N * N);
        lesson_say(l, "%10s %20s %20s %12.1f\n", report_grouped(x[0], seqlen),
                   report_grouped(x[1], moved), report_grouped(x[2], io_compulsory_bytes(&a)),
                   (double)moved / (double)io_compulsory_bytes(&a));
    }
    lesson_say(l, "\n");
    lesson_claim_count(l, "Moved is 4 N d + 4 N N, and as the closed forms say, at every N",
                       "settings", settings, equal);
    return STATUS_OK;
}

/* Real GEMMs cannot hold a whole operand on chip: tiles load it again and again. */
static enum status real_tiles(struct lesson *l, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    struct attention a = base->attention;
    const int64_t N = a.seqlen_q, d = a.head_dim, size = dtype_bytes(a.dtype);
    const int64_t Tr = attention_tiles_q(&a), Tc = attention_tiles_k(&a);
    struct counted c;
    a.tiled_gemm = true;
    if (counting_run(&c, base, ALGORITHM_STANDARD, &a, error))
        return error->status;
    lesson_section(l, "6. Experiment: with tiles that fit on chip");
    lesson_say(
        l,
        "\"Each operand once\" is the papers' count. A real matrix product loads Q again\n"
        "for every column of tiles, K and V for every row of tiles, and a softmax whose\n"
        "rows do not fit on chip reads S twice (Br = %d, Bc = %d):\n\n",
        a.block_q, a.block_k);
    lesson_claim_count(l, "Elements moved: (Tc + 2 Tr + 1) N d + 5 N N", "bytes",
                       size * ((Tc + 2 * Tr + 1) * N * d + 5 * N * N),
                       counting_matrix_bytes(&c.simulated));
    lesson_claim_count(l, "Simulated equals the closed form, tensor by tensor",
                       "(1: yes, 0: no)", 1, c.equal);
    return STATUS_OK;
}

/* Bytes of S for N = 65,536 in that dtype, one head. */
static enum status bytes_of_scores(int64_t *bytes, const struct simulation *base,
                                   enum dtype dtype, struct error *error)
{
    struct attention a = counting_with_seqlen(&base->attention, 65536);
    struct counted c;
    a.dtype = dtype;
    if (counting_run(&c, base, ALGORITHM_STANDARD, &a, error))
        return error->status;
    *bytes = counting_tensor_bytes(&c.simulated, "S") / 2; /* written once, read once */
    return STATUS_OK;
}

/* Popular statements about scores and tiles, with what computing gives. */
static enum status popular_claims(struct lesson *l, struct error *error)
{
    struct simulation base = l->options->simulation;
    struct attention tile = base.attention;
    struct counted flash2;
    int64_t half = 0, single = 0;
    base.machine = machine_find("A100-40GB");
    tile.block_q = tile.block_k = 64;
    tile.head_dim = tile.head_dim_v = 128;
    tile.dtype = DTYPE_F16;
    if (bytes_of_scores(&half, &base, DTYPE_F16, error) ||
        bytes_of_scores(&single, &base, DTYPE_F32, error) ||
        counting_run(&flash2, &base, ALGORITHM_FLASH2, &tile, error))
        return error->status;
    lesson_section(l, "7. Popular claims, checked");
    lesson_claim_count(l, "\"N = 65,536 gives 4.29 billion scores\": right, 2^32", "scores",
                       INT64_C(1) << 32, half / dtype_bytes(DTYPE_F16));
    lesson_claim_count(l, "\"S for N = 64K takes 16 GB in fp16\": no, 8.6 GB (fp32: 17.2)",
                       "bytes", INT64_C(65536) * 65536 * 2, half);
    lesson_claim_count(l, "\"A 64 x 128 tile in fp16 is 8 KB\": no, 16 KB", "bytes",
                       INT64_C(64) * 128 * 2, counting_tile_bytes(&flash2, "Qi"));
    lesson_claim_count(l, "\"... so Q, K, V and O fit 48 KB\": no, Q, K and V alone fill it",
                       "bytes", INT64_C(48) * 1024,
                       flash2.simulation.gpu.launches[0].peak_bytes[LEVEL_SRAM]);
    lesson_say(l,
               "\nIn fp32 the scores take %.1f GB. 48 KB is what a block gets without asking;\n"
               "on an A100 it may ask for %" PRId64 " KB.\n",
               (double)single / 1e9, base.machine->sram_bytes_per_block / 1024);
    return STATUS_OK;
}

/* figure_data: what standard attention moves, by kind of tensor, against N. */
static enum status write_shares(FILE *csv, const struct options *o, struct error *error)
{
    const struct simulation *base = &o->simulation;
    fprintf(csv, "seqlen,head_dim,dtype,scores_bytes,other_bytes\n");
    for (int seqlen = 16; seqlen <= 16384; seqlen *= 2) {
        const struct attention a = counting_with_seqlen(&base->attention, seqlen);
        struct counted c;
        if (counting_run(&c, base, ALGORITHM_STANDARD, &a, error))
            return error->status;
        const int64_t scores =
            counting_tensor_bytes(&c.simulated, "S") + counting_tensor_bytes(&c.simulated, "P");
        fprintf(csv, "%d,%d,%s,%" PRId64 ",%" PRId64 "\n", seqlen, a.head_dim,
                dtype_name(a.dtype), scores, counting_matrix_bytes(&c.simulated) - scores);
    }
    return STATUS_OK;
}

static const struct figure figures[] = {{"standard_traffic", "traffic"}};

static const char next[] =
    "  --seqlen 512 --head-dim 128      short rows: S and P are a smaller share\n"
    "  --dtype f16                      half the bytes, the same shape of the problem\n"
    "  08_flash_attention               the same attention without S and P in HBM\n"
    "  flashlab traffic --algorithm standard --tiled-gemm --seqlen 4096\n"
    "  flashlab run-kernel standard_attention --lines    what each source line moves\n";

static enum status kernel_claims(struct lesson *l, const struct kernel_column *kernels,
                                 struct error *error)
{
    lesson_section(l, "8. Check: the same algorithm as CUDA kernels");
    if (kernel_column_claim_traffic(l, kernels, error))
        return error->status;
    kernel_column_claim_steps(l, kernels);
    return STATUS_OK;
}

static int tell(const struct options *o, const struct kernel_column *kernels)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson);
    lesson_section(&lesson, "3. Experiment: the same result");
    if (lesson_same_result(&lesson, &error) || where_bytes_go(&lesson, &error) ||
        growth(&lesson, &error) || real_tiles(&lesson, &error) ||
        popular_claims(&lesson, &error) || kernel_claims(&lesson, kernels, &error))
        return lesson_abandon(&lesson, &error);
    return lesson_end(&lesson, next);
}

static int run(struct options *o)
{
    struct error error = {0};
    struct kernel_column kernels;
    if (lesson_check(o, &error) ||
        kernel_column_open(&kernels, o, ALGORITHM_BIT(ALGORITHM_STANDARD), &error))
        return usage_error(&usage, &error);
    const int code = figure_make(o, write_shares, figures, 1, &error)
                         ? usage_error(&usage, &error)
                         : tell(o, &kernels);
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
