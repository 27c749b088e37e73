#include "vit/vit_claims.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/float64.h"
#include "models/io_basic.h"

static int64_t bytes_of(const struct account *account)
{
    const struct traffic total = account_total(account);
    return total.of[DIRECTION_READ].bytes + total.of[DIRECTION_WRITE].bytes;
}

static void claim_product(struct lesson *l, const char *what, int cols,
                          const struct account *simulated)
{
    const struct io_matmul shape = {VIT_PATCHES, cols, VIT_WIDTH};
    const struct account predicted = io_matmul_tiled(&shape, PROJECTION_TILE);
    char claim[80];
    snprintf(claim, sizeof claim, "%s: %d x %d times %d x %d", what, VIT_PATCHES, VIT_WIDTH,
             VIT_WIDTH, cols);
    lesson_claim_count(l, claim, "bytes", bytes_of(&predicted), bytes_of(simulated));
}

void vit_claim_patches(struct lesson *l, const struct vit *vit)
{
    const struct heads h = vit_heads(vit);
    const int cut = vit->width < vit->height ? vit->width : vit->height;
    lesson_say(l, "%s: %d x %d pixels", vit->picture, vit->width, vit->height);
    if (cut != vit->width || cut != vit->height)
        lesson_say(l, ", of which the middle %d x %d", cut, cut);
    if (cut != VIT_SIDE)
        lesson_say(l, ", resized to %d x %d", VIT_SIDE, VIT_SIDE);
    lesson_say(l, "\n\n");
    lesson_say(
        l,
        "A trained ViT has learnt its weights. Here a construction stands in for them,\n"
        "which any picture can be put through: the embedding is the 2-D DCT of a patch,\n"
        "positions are sines and cosines, W_Q = W_K are random, and queries and keys\n"
        "have the length sqrt(d). So a score says how alike two patches look and lie,\n"
        "and no more. Both products run on the simulated GPU, in f32 and tiles of %d:\n\n",
        PROJECTION_TILE);
    claim_product(l, "Embedding", VIT_WIDTH, &vit->embedding);
    claim_product(l, "Q, K and V", 3 * VIT_WIDTH, &vit->projection);
    /* twice what is expected at most: 12 heads draw their weights once */
    lesson_claim_error(l, "A head of 64 keeps the cosine of 768 numbers: rms about 1/sqrt(64)",
                       2 / sqrt(VIT_HEAD_DIM),
                       attention_map_angle_error(&h, vit->x, VIT_WIDTH));
    if (vit_is_trained(vit))
        lesson_say(
            l,
            "\nBeside it: queries and keys of a trained model, %d heads of %d, which saw\n"
            "this picture as 14 x 14 patches too, and a class token: "
            "lessons/data/README.md\n",
            (int)vit->trained_q.shape[1], (int)vit->trained_q.shape[3]);
}

enum { LEVELS = 10 };

static char shade(double value, double largest)
{
    static const char of[LEVELS + 1] = " .:-=+*#%@";
    return of[largest > 0 ? (int)fmin(value / largest * LEVELS, LEVELS - 1) : 0];
}

/* Of all but the patch that looks, which would outshine the rest. */
static double largest_of_others(const double *map, int patch)
{
    double largest = 0;
    for (int i = 0; i < VIT_PATCHES; i++)
        largest = i == patch ? largest : fmax(largest, map[i]);
    return largest;
}

/* Both maps side by side, two characters a patch; trained may be NULL. */
static void draw_maps(struct lesson *l, const double *map, const double *trained, int patch)
{
    const double most = largest_of_others(map, patch);
    const double trained_most = trained ? largest_of_others(trained, patch) : 1;
    lesson_say(l, "    %-34s%s\n", "alike: random weights", trained ? "trained" : "");
    for (int row = 0; row < VIT_GRID; row++) {
        lesson_say(l, "%4d", row);
        for (int of = 0; of < (trained ? 2 : 1); of++) {
            for (int i = row * VIT_GRID; i < (row + 1) * VIT_GRID; i++) {
                const char c = of ? shade(trained[i], trained_most) : shade(map[i], most);
                lesson_say(l, "%c%c", i == patch ? '[' : c, i == patch ? ']' : c);
            }
            lesson_say(l, "%s", of || !trained ? "\n" : "|     ");
        }
    }
    lesson_say(l, "\n");
}

static void say_strongest(struct lesson *l, const char *who, const double *map)
{
    enum { STRONGEST = 5 };
    bool said[VIT_PATCHES] = {false};
    lesson_say(l, "%-10s", who);
    for (int n = 0; n < STRONGEST; n++) {
        int best = -1;
        for (int i = 0; i < VIT_PATCHES; i++)
            if (!said[i] && (best < 0 || map[i] > map[best]))
                best = i;
        said[best] = true;
        lesson_say(l, "  %2d,%-2d %4.1f %%", best / VIT_GRID, best % VIT_GRID, 100 * map[best]);
    }
    lesson_say(l, "\n");
}

/* The largest |sum - 1| over the rows of P; and of |P - other|, if other (heads, tokens,
 * tokens) is given. */
struct row_errors {
    double sum, other;
};

/* NaN if either is. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

static struct row_errors check_rows(const struct heads *h, const float *lse, const float *other)
{
    struct row_errors errors = {0};
    double row[1 + VIT_PATCHES];
    for (int head = 0; head < h->heads; head++)
        for (int query = 0; query < h->tokens; query++) {
            double sum = 0;
            attention_map_row(row, h, head, query, lse);
            for (int key = 0; key < h->tokens; key++) {
                const size_t at =
                    ((size_t)head * (size_t)h->tokens + (size_t)query) * (size_t)h->tokens +
                    (size_t)key;
                sum += row[key];
                if (other)
                    errors.other = larger(errors.other, fabs(row[key] - (double)other[at]));
            }
            errors.sum = larger(errors.sum, fabs(sum - 1));
        }
    return errors;
}

/* P of standard attention (heads, N, N): its output where V is the identity. */
static enum status standard_p(float *p, const struct simulation *base, const struct heads *h,
                              struct error *error)
{
    const size_t N = VIT_PATCHES, planes = (size_t)h->heads;
    float *identity = calloc(planes * N * N, sizeof *identity);
    float *lse = malloc(planes * N * sizeof *lse);
    struct simulation s = vit_simulation(base, ALGORITHM_STANDARD, h);
    enum status status;
    s.attention.dtype = DTYPE_F32;
    s.attention.head_dim_v = VIT_PATCHES;
    if (!identity || !lse) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for P");
    } else {
        for (size_t i = 0; i < planes * N; i++)
            identity[i * N + i % N] = 1.0f;
        status = vit_forward(&s, h, identity, p, lse, error);
    }
    free(identity);
    free(lse);
    return status;
}

static double longest_row(const struct heads *h, const float *x)
{
    double longest = 0;
    for (int row = 0; row < h->heads * h->tokens; row++) {
        double squares = 0;
        for (int i = 0; i < h->head_dim; i++)
            squares += pow((double)x[(size_t)row * (size_t)h->head_dim + (size_t)i], 2);
        longest = fmax(longest, sqrt(squares));
    }
    return longest;
}

/* How far P = exp(S - LSE) may be off: S and LSE in float32, a sum of d products with an error
 * of at most d u |q| |k| (Higham 2002, 3.1), LSE of the size of S and ln N. P is at most 1. */
static double rounding_of_p(const struct heads *h)
{
    static const double u = 0x1p-24;
    const double score = h->scale * longest_row(h, h->q) * longest_row(h, h->k);
    return u * ((h->head_dim + 4) * score + 4 * log(h->tokens));
}

/* lse (heads, tokens) of FlashAttention-2, and the p (heads, N, N) of standard attention. */
static enum status claim_rows(struct lesson *l, const struct simulation *base,
                              const struct heads *h, float *lse, float *p, struct error *error)
{
    if (vit_lse(base, h, lse, error) || standard_p(p, base, h, error))
        return error->status;
    const struct row_errors errors = check_rows(h, lse, p);
    lesson_claim_error(l, "exp(S - LSE) of FlashAttention-2 sums to 1 in all 12 x 196 rows",
                       rounding_of_p(h), errors.sum);
    lesson_claim_error(l, "and is the P that standard attention writes to HBM",
                       2 * rounding_of_p(h), errors.other);
    return STATUS_OK;
}

static enum status claim_trained_rows(struct lesson *l, const struct simulation *base,
                                      const struct heads *h, struct error *error)
{
    float *lse = malloc((size_t)h->heads * (size_t)h->tokens * sizeof *lse);
    const enum status status =
        lse ? vit_lse(base, h, lse, error)
            : error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for LSE");
    if (!status)
        lesson_claim_error(l, "So do the trained model's rows, of 197", rounding_of_p(h),
                           check_rows(h, lse, NULL).sum);
    free(lse);
    return status;
}

static void say_maps(struct lesson *l, const struct vit *vit, const struct vit_maps *maps)
{
    const double *trained = maps->trained + 1; /* after the class token */
    lesson_say(l,
               "\nWhat patch %d,%d looks at, P averaged over the heads, denser is more\n"
               "(--plot draws it beside the picture):\n\n",
               vit->patch / VIT_GRID, vit->patch % VIT_GRID);
    draw_maps(l, maps->alike, vit_is_trained(vit) ? trained : NULL, vit->patch);
    lesson_say(l, "Most of it, by row,column:\n");
    say_strongest(l, "alike", maps->alike);
    if (!vit_is_trained(vit)) {
        lesson_say(l, "\nNo trained model has seen this picture: lessons/data/make_vit_data.py "
                      "lets one,\nfor --q and --k.\n");
        return;
    }
    say_strongest(l, "trained", trained);
    lesson_say(l,
               "(The trained model's class token, which is no place, gets %.1f %%.)\n\n"
               "Random weights find what looks like the patch; trained ones what helped with\n"
               "the task that they were trained for. A map says where a patch reads from, not\n"
               "why.\n",
               100 * maps->trained[0]);
}

enum status vit_claim_map(struct lesson *l, const struct vit *vit, struct error *error)
{
    const struct simulation *base = &l->options->simulation;
    const struct heads h = vit_heads(vit), trained = vit_trained_heads(vit);
    const size_t rows = (size_t)VIT_HEADS * VIT_PATCHES;
    float *lse = malloc(rows * sizeof *lse), *p = malloc(rows * VIT_PATCHES * sizeof *p);
    struct vit_maps maps = {0};
    enum status status;
    if (!lse || !p)
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for P");
    else if (claim_rows(l, base, &h, lse, p, error) ||
             (vit_is_trained(vit) && claim_trained_rows(l, base, &trained, error)) ||
             vit_map(&maps, base, vit, error))
        status = error->status;
    else
        status = STATUS_OK;
    if (!status)
        say_maps(l, vit, &maps);
    free(lse);
    free(p);
    return status;
}

/* The largest error of each algorithm's O. */
static enum status errors_of(double errors[ALGORITHM_COUNT], double *largest,
                             const struct simulation *base, const struct vit *vit, float *o,
                             double *reference, float *lse, struct error *error)
{
    const struct heads h = vit_heads(vit);
    struct simulation s = vit_simulation(base, ALGORITHM_STANDARD, &h);
    float64_attention(reference, &s.attention, h.q, h.k, vit->v);
    *largest = 0;
    for (int i = 0; i < VIT_PATCHES * VIT_WIDTH; i++)
        *largest = fmax(*largest, fabs(reference[i]));
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        s = vit_simulation(base, (enum algorithm)i, &h);
        s.attention.dtype = DTYPE_F32;
        if (vit_forward(&s, &h, vit->v, o, lse, error))
            return error->status;
        errors[i] = float64_largest_error(&s.attention, o, reference);
    }
    return STATUS_OK;
}

enum status vit_claim_results(struct lesson *l, const struct vit *vit, struct error *error)
{
    const size_t count = (size_t)VIT_PATCHES * VIT_WIDTH;
    float *o = malloc(count * sizeof *o), *lse = malloc(count * sizeof *lse);
    double *reference = malloc(count * sizeof *reference);
    double errors[ALGORITHM_COUNT], largest;
    enum status status =
        o && lse && reference
            ? errors_of(errors, &largest, &l->options->simulation, vit, o, reference, lse,
                        error)
            : error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the results");
    if (!status)
        lesson_say(l,
                   "Reference: the formula in float64. Allowed: twice the error of standard\n"
                   "attention and four roundings of the largest output.\n\n");
    for (int i = 0; i < ALGORITHM_COUNT && !status; i++) {
        char claim[80];
        snprintf(claim, sizeof claim, "%s gives softmax(Q K^T / sqrt(d)) V on this picture",
                 algorithm_name((enum algorithm)i));
        lesson_claim_error(l, claim,
                           2 * errors[ALGORITHM_STANDARD] +
                               4 * (double)dtype_epsilon(DTYPE_F32) * largest,
                           errors[i]);
    }
    free(o);
    free(lse);
    free(reference);
    return status;
}
