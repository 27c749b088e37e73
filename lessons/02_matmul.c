/* Lesson 02, the matrix product: naive, tiled in shared memory, tiled in registers. */
#include <inttypes.h>
#include <stdio.h>

#include "common/figure.h"
#include "common/lesson.h"
#include "common/product_claims.h"
#include "common/product_kernels.h"
#include "common/report.h"
#include "common/transpose_banks.h"

static const struct usage usage = {
    .program = "02_matmul",
    .summary = "Lesson 02: the matrix product, naive, in shared memory, in registers",
    .options = BASIC_LESSON_OPTIONS,
    .refused = BASIC_REFUSED_OPTIONS,
    .why = "this lesson multiplies N x N matrices of f32: --seqlen N",
};

static const char question[] =
    "1. Question\n\n"
    "C = A B of N x N matrices is 2 N^3 FLOPs on 3 N^2 elements. A naive kernel is\n"
    "said to load 549 GB at N = 4096. From which memory? And what does a tile change,\n"
    "in shared memory, in registers?";

/* Matrices beyond the most take a CPU too long; with --cpu each multiply-add some 50 ns. */
enum { DEFAULT_N = 4096, MOST_N = 16384, DEFAULT_CPU_N = 256, MOST_CPU_N = 1024 };
enum { PROBED_COLUMNS = 4 };

static int n_of(const struct options *o)
{
    return o->simulation.attention.seqlen_q;
}

static void prediction(struct lesson *l)
{
    const int64_t N = n_of(l->options);
    char x[3][32];
    lesson_section(l, "2. Prediction");
    lesson_say(l,
               "N = %" PRId64
               ", f32; a warp is 32 threads, T the tile of a thread block, R x C\n"
               "the elements of the result that one thread has:\n\n",
               N);
    lesson_say(l,
               "                            naive               tile of T\n"
               "  passes over A and B       N                   N / T\n"
               "  elements asked for        2 N^3               2 N^3 / T\n"
               "  of a sector of 8 used     A 1 (x 32), B 8     8\n"
               "  FLOP a byte asked for     1/4                 T/4\n"
               "  shared memory             -                   2 R + 4 C wavefronts\n"
               "                                                for 4 R C multiply-adds\n\n");
    lesson_say(l, "  FLOPs         %20s\n  naive, bytes  %20s\n  T = 64, bytes %20s\n",
               report_grouped(x[0], 2 * N * N * N), report_grouped(x[1], 8 * N * N * N),
               report_grouped(x[2], 8 * N * N * N / 64));
}

/* The simulated kernels against float64, on a shape that no tile divides. */
static enum status same_result(struct lesson *l, struct error *error)
{
    char name[PRODUCT_NAME_LENGTH];
    lesson_section(l, "3. Experiment: the same result");
    for (int n = 0; n < PRODUCTS; n++) {
        double difference;
        const struct cpu_run shape = product_run(&products[n], 75, 61, 90);
        char claim[96];
        if (product_error(&difference, &shape, l->options->simulation.machine, error))
            return error->status;
        snprintf(claim, sizeof claim, "%s, 75 x 61 x 90: error / what rounding may do",
                 product_name(name, &products[n]));
        lesson_claim_error(l, claim, 1.0, difference);
    }
    return STATUS_OK;
}

static void print_traffic(struct lesson *l, const char *name, int64_t N,
                          struct account *account)
{
    const struct amount loaded = account_total(account).of[DIRECTION_READ];
    const struct amount A = account_tensor(account, "A")->of[DIRECTION_READ];
    char x[2][32];
    lesson_say(l, "%-22s %7.0f %17s %17s %9.2f\n", name,
               (double)A.bytes / (4.0 * (double)(N * N)), report_grouped(x[0], loaded.bytes),
               report_grouped(x[1], loaded.sectors * SECTOR_BYTES),
               (double)account->flops.matrix / (double)loaded.bytes);
}

/* What is asked of HBM, by each kernel. */
static enum status traffic(struct lesson *l, struct error *error)
{
    const int N = n_of(l->options);
    const int64_t cube = (int64_t)N * N * N;
    struct product_counts counts[PRODUCTS];
    char name[PRODUCT_NAME_LENGTH], claim[96];
    lesson_section(l, "4. Experiment: what is asked of HBM");
    lesson_say(l, "%-22s %7s %17s %17s %9s\n%-22s %7s %17s %17s %9s\n", "", "passes",
               "bytes that", "bytes of", "FLOP a", "", "over A", "lanes ask for", "sectors",
               "byte");
    for (int n = 0; n < PRODUCTS; n++) {
        const struct cpu_run run = product_run(&products[n], N, N, N);
        if (product_count(&counts[n], &run, l->options->simulation.machine, error))
            return error->status;
        print_traffic(l, product_name(name, &products[n]), N, &counts[n].simulated);
    }
    lesson_say(l, "\n");
    const struct amount naive = account_total(&counts[0].simulated).of[DIRECTION_READ];
    lesson_claim_count(l, "\"The naive product loads 2 N^3 elements\": lanes ask for them",
                       "bytes", 8 * cube, naive.bytes);
    lesson_claim_count(
        l, "... but a warp's 32 want one element of A: sectors are fewer", "sectors",
        account_total(&counts[0].predicted).of[DIRECTION_READ].sectors, naive.sectors);
    for (int n = 1; n < PRODUCTS; n++) {
        const int64_t T = products[n].tile;
        snprintf(claim, sizeof claim, "%s: elements asked for fall BY N / ceil(N/T)",
                 product_name(name, &products[n]));
        lesson_claim_count(l, claim, "bytes", 8 * cube / N * ((N + T - 1) / T),
                           account_total(&counts[n].simulated).of[DIRECTION_READ].bytes);
    }
    return STATUS_OK;
}

/* Of one kernel with one tile on one shape: elements as the law says, all counts as predicted.
 */
static enum status holds(int *settings, int *held, enum cpu_kernel kernel, int tile,
                         const int shape[3], const struct machine *machine, struct error *error)
{
    const struct product product = {.kernel = kernel, .tile = tile};
    const struct cpu_run run = product_run(&product, shape[0], shape[1], shape[2]);
    const int64_t rows = shape[0], cols = shape[1], depth = shape[2];
    struct product_counts counts;
    if (product_count(&counts, &run, machine, error))
        return error->status;
    const int64_t elements =
        depth * (rows * ((cols + tile - 1) / tile) + cols * ((rows + tile - 1) / tile));
    ++*settings;
    *held += account_equal(&counts.predicted, &counts.simulated) &&
             account_total(&counts.simulated).of[DIRECTION_READ].bytes == 4 * elements;
    return STATUS_OK;
}

/* Every tile from one element on; then shapes that no tile divides. */
static enum status tiles(struct lesson *l, struct error *error)
{
    static const int ragged[][3] = {
        {1000, 999, 1001}, {37, 63, 20}, {1, 4099, 130}, {257, 1, 31}, {100, 700, 1}};
    const struct machine *machine = l->options->simulation.machine;
    const int cube[3] = {512, 512, 512};
    int settings = 0, held = 0;
    lesson_section(l, "5. Experiment: every tile, ragged shapes");
    for (int tile = 1; tile <= 64; tile *= 2)
        if (holds(&settings, &held, CPU_MATMUL_TILED, tile, cube, machine, error) ||
            (tile <= 32 &&
             holds(&settings, &held, CPU_MATMUL_SHARED, tile, cube, machine, error)))
            return error->status;
    lesson_claim_count(l, "512^3, T = 1 .. 64: 2 N^3 / T elements, sectors as predicted",
                       "settings", settings, held);
    settings = held = 0;
    for (int n = 0; n < 5; n++)
        for (int tile = 16; tile <= 64; tile *= 2)
            if (holds(&settings, &held, CPU_MATMUL_TILED, tile, ragged[n], machine, error) ||
                (tile <= 32 &&
                 holds(&settings, &held, CPU_MATMUL_SHARED, tile, ragged[n], machine, error)))
                return error->status;
    lesson_claim_count(
        l, "Ragged: A passes ceil(cols/T) times, B ceil(rows/T), no row of zeros moves",
        "settings", settings, held);
    return STATUS_OK;
}

/* A warp that reads columns of a tile. */
static enum status banks(struct lesson *l, struct error *error)
{
    static const char *const names[TRANSPOSE_LAYOUTS] = {
        "plain, 32 row + col", "padded, 33 row + col", "swizzled, 32 row + (col^row)"};
    bool transposed = true;
    lesson_section(l, "8. Experiment: columns of a tile, and banks");
    lesson_say(l,
               "A transposition writes rows of a 32 x 32 tile into shared memory and reads\n"
               "columns. Word w lies in bank w mod 32; a warp passes over the banks as often\n"
               "as the fullest has words for it. Wavefronts of 32 columns:\n\n"
               "      %-28s %14s %14s %14s\n",
               "layout", "predicted", "CPU", "H200");
    for (int layout = 0; layout < TRANSPOSE_LAYOUTS; layout++) {
        struct transpose_banks b;
        if (transpose_banks_count(&b, (enum transpose_layout)layout, error))
            return error->status;
        lesson_claim_measured(l, names[layout], b.predicted, b.on_cpu, b.measured);
        transposed &= b.transposed && b.probes >= PROBED_COLUMNS;
    }
    lesson_say(
        l, "\nH200: the mean of the columns that were probed (cuda/results/h200_probes.csv),\n"
           "times 32. CPU: cuda/lessons/transpose.cu, executed, every access observed.\n\n");
    lesson_claim_count(l, "All three transpose, and at least 4 columns of each were probed",
                       "(1: yes, 0: no)", 1, transposed);
    return STATUS_OK;
}

static void write_gb(FILE *csv, double bytes, char end)
{
    if (bytes < 0)
        fprintf(csv, "NaN%c", end);
    else
        fprintf(csv, "%.6f%c", bytes / 1e9, end);
}

/* figure_data: bytes of each kernel at each level. */
static enum status write_levels(FILE *csv, const struct options *o, struct error *error)
{
    static const char *const names[PRODUCT_LEVELS] = {"lanes ask", "sectors", "from L2",
                                                      "from DRAM"};
    const int N = n_of(o);
    fprintf(csv, "kernel,tile,seqlen,level,name,model_gb,measured_gb\n");
    for (int n = 0; n < PRODUCTS; n++) {
        struct basic_column k = {.rows = 0};
        struct basic_row row = {.shape = product_run(&products[n], N, N, N)};
        struct product_levels levels;
        if (basic_column_recorded(&k, &row, error) ||
            product_levels_find(&levels, &products[n], &row, k.gpu, o->simulation.machine,
                                error))
            return error->status;
        for (int level = 0; level < PRODUCT_LEVELS; level++) {
            fprintf(csv, "%s,%d,%d,%d,%s,", cpu_kernel_name(products[n].kernel),
                    products[n].tile, N, level, names[level]);
            write_gb(csv, levels.model[level], ',');
            write_gb(csv, levels.measured[level], '\n');
        }
    }
    return STATUS_OK;
}

static const struct figure figures[] = {{"matmul_levels", "levels"}};

static const char next[] =
    "  --seqlen 2048                  matrices that fit L2: DRAM reads each once\n"
    "  --seqlen 1000                  tiles that do not fit: whose sectors grow?\n"
    "  flashlab run-kernel matmul_naive --lines\n"
    "  flashlab run-kernel matmul_shared --lines    what each source line moves\n"
    "  flashlab run-kernel matmul_tiled --tile 64 --lines\n";

static int tell(const struct options *o, const struct basic_column *k)
{
    struct error error = {0};
    struct lesson l;
    lesson_begin(&l, &usage, o, question);
    prediction(&l);
    if (same_result(&l, &error) || traffic(&l, &error) || tiles(&l, &error))
        return lesson_abandon(&l, &error);
    lesson_section(&l, "6. Experiment: from lanes to DRAM");
    if (product_claim_levels(&l, k, &error))
        return lesson_abandon(&l, &error);
    lesson_section(&l, "7. Experiment: shared memory and registers");
    product_claim_shared(&l, k);
    if (banks(&l, &error))
        return lesson_abandon(&l, &error);
    lesson_section(&l, "9. Check: the same as CUDA kernels");
    basic_column_claim(&l, k);
    lesson_section(&l, "10. Check: time");
    product_claim_times(&l, k);
    return lesson_end(&l, next);
}

static enum status check_n(struct options *o, struct error *error)
{
    const bool given = o->given & OPTION_BIT(OPTION_SEQLEN);
    if (o->cpu && !given)
        o->simulation.attention.seqlen_q = DEFAULT_CPU_N;
    if (n_of(o) > MOST_N)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--seqlen %d: must be at most %d: matrices are N x N", n_of(o),
                         MOST_N);
    if (o->cpu && n_of(o) > MOST_CPU_N)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--seqlen %d: with --cpu must be at most %d, for it executes N^3 "
                         "multiply-adds six times",
                         n_of(o), MOST_CPU_N);
    return STATUS_OK;
}

static int run(struct options *o)
{
    struct error error = {0};
    static struct basic_column k;
    if (check_n(o, &error) || figure_make(o, write_levels, figures, 1, &error) ||
        product_column_open(&k, o, n_of(o), &error))
        return usage_error(&usage, &error);
    return tell(o, &k);
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    options.simulation.attention.seqlen_q = DEFAULT_N;
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
