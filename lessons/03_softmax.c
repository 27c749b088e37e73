/* Lesson 03, softmax: how often a row must be read, and how passes over it are merged. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/figure.h"
#include "common/kernel_run.h"
#include "common/lesson.h"
#include "common/online_softmax.h"
#include "common/report.h"
#include "common/softmax_column.h"
#include "common/softmax_rows.h"

static const struct usage usage = {
    .program = "03_softmax",
    .summary = "Lesson 03: softmax in three passes, in two, and in parts",
    .options = BASIC_LESSON_OPTIONS,
    .refused = BASIC_REFUSED_OPTIONS,
    .why = "this lesson takes rows of N x N scores of f32: --seqlen N",
};

static const char question[] =
    "1. Question\n\n"
    "y_i = exp(x_i) / sum of exp(x_j) needs the sum of a whole row before its first\n"
    "result, and to be safe the row's maximum before that. How often must the row be\n"
    "read? Can passes be merged, and rows be cut into parts?";

/* Rows beyond the most take a CPU too long. */
enum { DEFAULT_N = 8192, MOST_N = 1 << 20 };

static int n_of(const struct options *o)
{
    return o->simulation.attention.seqlen_q;
}

static void prediction(struct lesson *l)
{
    const int64_t n = (int64_t)n_of(l->options) * n_of(l->options);
    char x[3][32];
    lesson_section(l, "2. Prediction");
    lesson_say(l,
               "Milakov and Gimelshein (2018) count accesses an element; a scores matrix of\n"
               "%d x %d in f32 has %s of them:\n\n",
               n_of(l->options), n_of(l->options), report_grouped(x[0], n));
    lesson_say(l, "  naive    sum; result              2 loads, 1 store    3\n"
                  "  safe     maximum; sum; result     3 loads, 1 store    4\n"
                  "  online   maximum and sum; result  2 loads, 1 store    3\n\n");
    lesson_say(l, "  bytes    3 accesses %16s\n           4 accesses %16s\n",
               report_grouped(x[1], 12 * n), report_grouped(x[2], 16 * n));
}

static enum status count_accesses(struct lesson *l, struct error *error)
{
    const int64_t N = n_of(l->options), n = N * N;
    lesson_section(l, "3. Experiment: accesses counted");
    for (int way = 0; way < SOFTMAX_WAYS; way++) {
        struct account predicted, simulated;
        char claim[64];
        if (softmax_count(&predicted, &simulated, (enum softmax_way)way, (int)N, (int)N,
                          l->options->simulation.machine, error))
            return error->status;
        const struct traffic total = account_total(&simulated);
        const int accesses = softmax_loads((enum softmax_way)way) + 1;
        snprintf(claim, sizeof claim, "%s: %d accesses an element",
                 softmax_way_name((enum softmax_way)way), accesses);
        lesson_claim_count(l, claim, "bytes", 4 * accesses * n,
                           total.of[DIRECTION_READ].bytes + total.of[DIRECTION_WRITE].bytes);
        snprintf(claim, sizeof claim, "... exponentials, two an element%s",
                 way == SOFTMAX_ONLINE ? " and one a request of 32" : "");
        lesson_claim_count(l, claim, "exp",
                           2 * n + (way == SOFTMAX_ONLINE ? N * ((N + 31) / 32) : 0),
                           simulated.flops.exp);
    }
    return STATUS_OK;
}

/* Rows of 4 scores that tell the three apart. */
enum { TELLING_ROWS = 6, TELLING_COLS = 4 };
static const float telling[TELLING_ROWS * TELLING_COLS] = {
    1,         2,         3,         4,         /* as anybody tests */
    88,        80,        80,        80,        /* the largest that goes well */
    100,       101,       102,       103,       /* exp overflows */
    -200,      -201,      -202,      -203,      /* every exp is 0 */
    1,         2,         -INFINITY, 3,         /* one masked */
    -INFINITY, -INFINITY, -INFINITY, -INFINITY, /* all masked */
};

static void say_telling_row(struct lesson *l, int row, float (*y)[TELLING_ROWS * TELLING_COLS])
{
    const int first = row * TELLING_COLS;
    for (int k = 0; k < TELLING_COLS; k++)
        lesson_say(l, "%5g", (double)telling[first + k]);
    for (int way = 0; way < SOFTMAX_ONLINE; way++) {
        lesson_say(l, "   ");
        for (int k = 0; k < TELLING_COLS; k++) {
            const float result = y[way][first + k];
            if (isnan(result)) /* printf may give it a sign */
                lesson_say(l, "%6s", "nan");
            else
                lesson_say(l, "%6.3f", (double)result);
        }
    }
    lesson_say(l, "\n");
}

static int count_nan(const float *y, int count)
{
    int nan = 0;
    for (int n = 0; n < count; n++)
        nan += isnan(y[n]) != 0;
    return nan;
}

static enum status why_the_maximum(struct lesson *l, struct error *error)
{
    enum { COUNT = TELLING_ROWS * TELLING_COLS };
    float y[SOFTMAX_WAYS][COUNT];
    lesson_section(l, "4. Experiment: why the maximum is subtracted");
    for (int way = 0; way < SOFTMAX_WAYS; way++)
        if (softmax_rows(y[way], telling, (enum softmax_way)way, TELLING_ROWS, TELLING_COLS,
                         l->options->simulation.machine, error))
            return error->status;
    lesson_say(
        l, "exp(x) is infinite in f32 from x = 88.73 on, and 0 below -103.98. Rows of four\n"
           "scores in the simulator:\n\n");
    lesson_say(l, "%-20s   %-24s   %s\n", "scores", "naive", "safe (online: the same)");
    for (int row = 0; row < TELLING_ROWS; row++)
        say_telling_row(l, row, y);
    lesson_say(l, "\n");
    lesson_claim_count(l, "naive: inf / inf and 0 / 0 make NaN of three of these rows",
                       "elements", 3 * TELLING_COLS, count_nan(y[SOFTMAX_NAIVE], COUNT));
    lesson_claim_count(l, "safe: none; a row that is masked throughout is 0", "elements", 0,
                       count_nan(y[SOFTMAX_SAFE], COUNT));
    lesson_claim_count(l, "online: none either", "elements", 0,
                       count_nan(y[SOFTMAX_ONLINE], COUNT));
    lesson_claim_error(l, "safe against float64, relative", 1e-6,
                       softmax_error(y[SOFTMAX_SAFE], telling, TELLING_ROWS, TELLING_COLS));
    lesson_claim_error(l, "online against float64, relative", 1e-6,
                       softmax_error(y[SOFTMAX_ONLINE], telling, TELLING_ROWS, TELLING_COLS));
    return STATUS_OK;
}

static const char derivation[] =
    "Let m be the maximum and l the sum of exp(x_j - m) over the elements so far. A\n"
    "new x makes the maximum m' = max(m, x). Every old term changes by one factor,\n\n"
    "  exp(x_j - m') = exp(x_j - m) exp(m - m')\n"
    "  so         l' = l exp(m - m') + exp(x - m')\n\n"
    "and the factor is at most 1: nothing overflows. m starts at -inf, l at 0.\n\n";

/* An element at a time. */
static void trace_row(struct lesson *l)
{
    static const float x[] = {1, 3, 2, -INFINITY, 5, 4};
    enum { COUNT = sizeof x / sizeof x[0] };
    struct softmax_state s = softmax_state_empty();
    double worst = 0;
    int maxima = 0;
    lesson_section(l, "5. Experiment: the running rescale");
    lesson_say(l, "%s%4s %6s %6s %10s %12s %20s\n", derivation, "k", "x", "m", "factor", "l",
               "l, by the definition");
    for (int k = 0; k < COUNT; k++) {
        const float factor = softmax_state_add(&s, x[k]);
        const struct softmax_state want = softmax_state_defined(x, k + 1);
        maxima += s.m == want.m;
        worst = fmax(worst, fabs((double)(s.l - want.l)) / (double)want.l);
        lesson_say(l, "%4d %6g %6g %10.6f %12.6f %20.6f\n", k, (double)x[k], (double)s.m,
                   (double)factor, (double)s.l, (double)want.l);
    }
    lesson_say(l, "\n");
    lesson_claim_count(l, "After every element m is the maximum so far", "elements", COUNT,
                       maxima);
    lesson_claim_error(l, "... and l the sum that the definition gives, relative", 1e-6, worst);
}

/* Starts of m that teaching code has instead of -inf. */
static void wrong_starts(struct lesson *l)
{
    static const struct {
        const char *claim;
        float start, score;
    } cases[] = {
        {"m started at 0, scores of -200: every exp is 0, l = 0, y = 0 / 0", 0.0f, -200.0f},
        {"m started at -10000, scores of -20000: the same", -10000.0f, -20000.0f},
    };
    for (int n = 0; n < 2; n++) {
        struct softmax_state wrong = {cases[n].start, 0.0f}, right = softmax_state_empty();
        for (int k = 0; k < 4; k++) {
            softmax_state_add(&wrong, cases[n].score);
            softmax_state_add(&right, cases[n].score);
        }
        lesson_claim_count(l, cases[n].claim, "= l", 0, (int64_t)wrong.l);
        lesson_claim_count(l, "... started at -inf: four terms of exp(0)", "= l", 4,
                           (int64_t)right.l);
    }
}

/* A row in parts, each with m and l of its own, merged in several orders. */
static enum status merge_parts(struct lesson *l, struct error *error)
{
    static const int parts[] = {2, 3, 8, 64};
    const int N = n_of(l->options);
    double worst = 0;
    lesson_section(l, "6. Experiment: a row in parts");
    lesson_say(
        l,
        "Two parts of a row merge as an element does: m = max(m1, m2),\n"
        "l = l1 exp(m1 - m) + l2 exp(m2 - m). The order is free. FlashAttention's parts\n"
        "are tiles of K; split-KV decoding gives the parts of one row to different SMs.\n"
        "A row of %d random scores, l against float64:\n\n"
        "%6s %14s %14s %14s\n",
        N, "parts", "in order", "reversed", "as a tree");
    for (int n = 0; n < 4; n++) {
        double e[MERGE_ORDERS];
        if (softmax_merge_errors(e, N, parts[n] < N ? parts[n] : N, error))
            return error->status;
        lesson_say(l, "%6d %14.2e %14.2e %14.2e\n", parts[n] < N ? parts[n] : N, e[0], e[1],
                   e[2]);
        for (int order = 0; order < MERGE_ORDERS; order++)
            worst = e[order] <= worst ? worst : e[order];
    }
    lesson_say(l, "\n");
    lesson_claim_error(l, "Any grouping and order: m is exact, l up to rounding",
                       kernel_tolerance(N), worst);
    const struct softmax_state some = {3.0f, 1.5f}, none = softmax_state_empty();
    const struct softmax_state left = softmax_state_merge(none, some),
                               right = softmax_state_merge(some, none),
                               both = softmax_state_merge(none, none);
    lesson_claim_count(l, "A part that is masked throughout (m = -inf, l = 0) changes nothing",
                       "(1: yes, 0: no)", 1,
                       left.m == some.m && left.l == some.l && right.m == some.m &&
                           right.l == some.l && both.m == none.m && both.l == none.l);
    return STATUS_OK;
}

/* Errors on whole rows, of scores as they are and a thousand times as large. */
static enum status precision(struct lesson *l, struct error *error)
{
    const int N = n_of(l->options);
    lesson_section(l, "7. Experiment: errors against float64");
    lesson_say(l, "8 rows of %d random scores. Largest error of y, relative to y, and NaN:\n\n",
               N);
    lesson_say(l, "%-8s %14s %8s %22s %8s\n", "", "|x| <= 2", "NaN", "|x| <= 2000", "NaN");
    double worst[2] = {0};
    int64_t nan[2][SOFTMAX_WAYS];
    for (int way = 0; way < SOFTMAX_WAYS; way++) {
        double e[2];
        for (int large = 0; large < 2; large++)
            if (softmax_random_error(&e[large], &nan[large][way], (enum softmax_way)way, 8, N,
                                     large ? 1000.0f : 1.0f, l->options->simulation.machine,
                                     error))
                return error->status;
        lesson_say(l, "%-8s %14.2e %8" PRId64 " %22.2e %8" PRId64 "\n",
                   softmax_way_name((enum softmax_way)way), e[0], nan[0][way], e[1],
                   nan[1][way]);
        worst[0] = fmax(worst[0], e[0]);
        worst[1] = way == SOFTMAX_NAIVE ? worst[1] : fmax(worst[1], e[1]);
    }
    lesson_say(l, "\n");
    lesson_claim_error(l, "Small scores: all three, up to rounding", kernel_tolerance(N),
                       worst[0]);
    lesson_claim_error(l, "Large scores: safe and online, up to rounding", kernel_tolerance(N),
                       worst[1]);
    lesson_claim_count(l, "... and finite", "NaN", 0,
                       nan[1][SOFTMAX_SAFE] + nan[1][SOFTMAX_ONLINE]);
    return STATUS_OK;
}

static void say_sweep(struct lesson *l, const struct softmax_sweep *s)
{
    char x[2][32];
    lesson_say(l, "%9s %9s   %-20s   %-18s   %s\n", "", "", "accesses of DRAM", "microseconds",
               "safe /");
    lesson_say(l, "%9s %9s", "length", "rows");
    for (int column = 0; column < 2; column++)
        lesson_say(l, "   %6s %6s %6s", "naive", "safe", "online");
    lesson_say(l, "   online\n");
    for (int n = 0; n < SWEEP_LENGTHS; n++) {
        const struct softmax_length *length = &s->length[n];
        lesson_say(l, "%9s %9s  ", report_grouped(x[0], length->cols),
                   report_grouped(x[1], length->rows));
        for (int way = 0; way < SOFTMAX_WAYS; way++)
            lesson_say(l, " %6.2f", length->way[way].of_dram);
        lesson_say(l, "  ");
        for (int way = 0; way < SOFTMAX_WAYS; way++)
            lesson_say(l, " %6.0f", length->way[way].us);
        lesson_say(l, " %8.2f\n",
                   length->way[SOFTMAX_SAFE].us / length->way[SOFTMAX_ONLINE].us);
    }
    lesson_say(l, "\n");
}

/* What caches leave of the accesses as rows grow, on the GPU of the recording. */
static enum status what_caches_leave(struct lesson *l, struct error *error)
{
    static struct softmax_sweep s;
    const struct machine *m = machine_find("H200");
    const int fills = softmax_fills_l2(m);
    int exact = 0, full = SWEEP_FIRST;
    if (softmax_sweep_read(&s, error))
        return error->status;
    for (int n = 0; n < SWEEP_LENGTHS; n++)
        for (int way = 0; way < SOFTMAX_WAYS; way++)
            exact += s.length[n].way[way].requested == 1 + softmax_loads((enum softmax_way)way);
    while (full < fills)
        full *= 2;
    lesson_section(l, "9. Experiment: is three better than four?");
    lesson_say(l, "2^26 scores in ever longer rows, on an %s\n(%s), recorded %s:\n\n",
               s.gpu.gpu, s.gpu.software, s.gpu.date);
    say_sweep(l, &s);
    lesson_say(l,
               "A second load of a row goes to DRAM only if caches have lost the row. %d SMs\n"
               "hold %d blocks of 256 threads, each at a row: together the rows fill L2,\n"
               "%d MB, at a length of %d.\n\n",
               m->sms, m->sms * (m->threads_per_sm / 256), (int)(m->l2_bytes >> 20), fills);
    lesson_claim_same(l, "SMs request 3, 4 and 3 accesses an element at every length",
                      "kernels and lengths", "measured equal", SWEEP_LENGTHS * SOFTMAX_WAYS,
                      exact);
    lesson_claim_error(l, "Rows to 4,096: DRAM moves 2 an element, whatever the kernel", 0.05,
                       softmax_sweep_error(&s, SWEEP_FIRST, 4096, 1));
    lesson_claim_same(l, "The first length at which no access is spared", "elements",
                      "measured", full, softmax_sweep_uncached(&s));
    lesson_claim_error(l, "From there on DRAM moves 3, 4 and 3", 0.05,
                       softmax_sweep_error(&s, full, SWEEP_LAST, 0));
    lesson_say(
        l,
        "\nSo online softmax spares DRAM a quarter where the rows being worked on do not\n"
        "fit in caches, and there about a sixth of the time; elsewhere a pass over a\n"
        "cache. On a V100 the estimate is %d, so that the paper's 1.3 times at a length\n"
        "of 4,000 lies beyond it.\n",
        softmax_fills_l2(machine_find("V100")));
    return STATUS_OK;
}

/* figure_data: accesses an element against the length of rows. */
static enum status write_sweep(FILE *csv, const struct options *o, struct error *error)
{
    (void)o;
    return softmax_sweep_write(csv, error);
}

static const struct figure figures[] = {{"softmax_accesses", "accesses"}};

static const char next[] =
    "  --seqlen 1000                 rows that do not begin at a sector: more sectors\n"
    "  flashlab run-kernel softmax_online --rows 4 --cols 1000 --lines\n"
    "  flashlab run-kernel softmax_safe --rows 4 --cols 1000 --lines\n"
    "  05_standard_attention         softmax as one of three launches\n"
    "  08_flash_attention            softmax in parts, never written to HBM\n";

static int tell(const struct options *o, const struct basic_column *k)
{
    struct error error = {0};
    struct lesson lesson;
    lesson_begin(&lesson, &usage, o, question);
    prediction(&lesson);
    if (count_accesses(&lesson, &error) || why_the_maximum(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    trace_row(&lesson);
    wrong_starts(&lesson);
    if (merge_parts(&lesson, &error) || precision(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    lesson_section(&lesson, "8. Check: the same three as CUDA kernels");
    basic_column_claim(&lesson, k);
    if (what_caches_leave(&lesson, &error))
        return lesson_abandon(&lesson, &error);
    return lesson_end(&lesson, next);
}

static int run(struct options *o)
{
    struct error error = {0};
    static struct basic_column k;
    if (n_of(o) > MOST_N) {
        error_format(&error, STATUS_BAD_ARGUMENT,
                     "--seqlen %d: must be at most %d: scores are N x N", n_of(o), MOST_N);
        return usage_error(&usage, &error);
    }
    const int code = softmax_column_open(&k, o, n_of(o), &error) ||
                             figure_make(o, write_sweep, figures, 1, &error)
                         ? usage_error(&usage, &error)
                         : tell(o, &k);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    options_init(&options);
    options.simulation.attention.seqlen_q = DEFAULT_N;
    const enum options_result result = options_parse(&options, &usage, argc, argv);
    return result == OPTIONS_RUN ? run(&options) : options_exit_status(result);
}
