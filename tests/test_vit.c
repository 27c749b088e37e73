/* lessons/vit: patches, embedding, projections, heads; attention maps and what is said of them;
 * what the options may be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/random_inputs.h"
#include "common/tool.h"
#include "core/npy.h"
#include "vit/vit.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static float *floats(size_t count)
{
    float *x = calloc(count, sizeof *x);
    assert_non_null(x);
    return x;
}

static void expect_near(double value, double expected, double tolerance, const char *what)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%s is %g, not %g", what, value, expected);
}

/* Pixel (y, x) lies in patch (y / 16, x / 16), at its place in it, brightness first. */
static void test_patches_cut(void **state)
{
    float *square = floats((size_t)VIT_SIDE * VIT_SIDE * 3);
    float *patches = floats((size_t)VIT_PATCHES * VIT_WIDTH);
    const int y = 3 * 16 + 5, x = 7 * 16 + 2;
    double sum = 0, squares = 0;
    (void)state;
    for (int c = 0; c < 3; c++)
        square[3 * (y * VIT_SIDE + x) + c] = 1.0f; /* one white pixel */
    patches_cut(patches, square);
    for (int patch = 0; patch < VIT_PATCHES; patch++)
        for (int i = 0; i < VIT_WIDTH; i++) {
            const double value = (double)patches[patch * VIT_WIDTH + i];
            const bool is_white = patch == 3 * VIT_GRID + 7 && i == 5 * 16 + 2;
            /* of n values one is 1: mean 1/n, variance (1 - 1/n)/n */
            const double n = VIT_SIDE * VIT_SIDE;
            const double expected = i >= 256 ? 0 : (is_white - 1 / n) / sqrt((1 - 1 / n) / n);
            expect_near(value, expected, 1e-3, "a pixel");
            sum += value;
            squares += value * value;
        }
    expect_near(sum / (VIT_SIDE * VIT_SIDE), 0, 1e-6, "the mean");
    expect_near(squares / (VIT_SIDE * VIT_SIDE), 1, 1e-5, "the variance");
    memset(square, 0, (size_t)VIT_SIDE * VIT_SIDE * 3 * sizeof *square);
    patches_cut(patches, square); /* nothing varies */
    for (int i = 0; i < VIT_PATCHES * VIT_WIDTH; i++)
        expect_near((double)patches[i], 0, 0, "a pixel of a plain picture");
    free(square);
    free(patches);
}

/* All three colours vary by themselves: red alone is brightness and two differences. */
static void test_patches_colours(void **state)
{
    float *square = floats((size_t)VIT_SIDE * VIT_SIDE * 3);
    float *patches = floats((size_t)VIT_PATCHES * VIT_WIDTH);
    (void)state;
    random_fill(square, (size_t)VIT_SIDE * VIT_SIDE * 3, 3, 1);
    patches_cut(patches, square);
    for (int c = 0; c < 3; c++) {
        double sum = 0, squares = 0;
        for (int patch = 0; patch < VIT_PATCHES; patch++)
            for (int i = 0; i < 256; i++) {
                const double value = (double)patches[patch * VIT_WIDTH + c * 256 + i];
                sum += value;
                squares += value * value;
            }
        expect_near(sum / (VIT_SIDE * VIT_SIDE), 0, 1e-6, "the mean of a colour");
        expect_near(squares / (VIT_SIDE * VIT_SIDE), 1, 1e-5, "the variance of a colour");
    }
    /* red - blue of the first pixel, up to the mean and a factor that all pixels share */
    const float *p = patches + 256, *q = square;
    const double slope =
        ((double)(q[0] - q[2]) - (double)(q[3] - q[5])) / (double)(p[0] - p[1]);
    expect_near(((double)(q[0] - q[2]) - (double)(q[6] - q[8])) / (double)(p[0] - p[2]), slope,
                1e-4 * fabs(slope), "red - blue");
    free(square);
    free(patches);
}

static void test_embedding_is_orthonormal(void **state)
{
    float *basis = floats((size_t)VIT_WIDTH * VIT_WIDTH);
    (void)state;
    patches_embedding(basis);
    for (int i = 0; i < VIT_WIDTH; i += 5)
        for (int j = 0; j < VIT_WIDTH; j++) {
            double dot = 0;
            for (int k = 0; k < VIT_WIDTH; k++)
                dot += (double)basis[k * VIT_WIDTH + i] * (double)basis[k * VIT_WIDTH + j];
            expect_near(dot, i == j, 1e-5, "a product of columns");
        }
    /* the lowest frequency is the mean, the next of a row a half wave from left to right */
    expect_near((double)basis[0], 1 / 16.0, 1e-6, "basis[0][0]");
    expect_near((double)basis[1], sqrt(2) / 16 * cos(M_PI / 32), 1e-6, "basis[0][1]");
    expect_near((double)basis[15 * VIT_WIDTH + 1], -sqrt(2) / 16 * cos(M_PI / 32), 1e-6,
                "basis[15][1]");
    expect_near((double)basis[240 * VIT_WIDTH + 1], sqrt(2) / 16 * cos(M_PI / 32), 1e-6,
                "basis[240][1]");
    free(basis);
}

/* Patches of a row share two of four columns, patches of a column the other two; no two patches
 * share all. */
static void test_positions(void **state)
{
    float *x = floats((size_t)VIT_PATCHES * VIT_WIDTH);
    (void)state;
    patches_add_positions(x);
    for (int a = 0; a < VIT_PATCHES; a += 7)
        for (int b = 0; b < VIT_PATCHES; b++) {
            int differing[2] = {0};
            for (int i = 0; i < VIT_WIDTH; i++)
                differing[i % 4 / 2] += x[a * VIT_WIDTH + i] != x[b * VIT_WIDTH + i];
            assert_int_equal(differing[0] == 0, a / VIT_GRID == b / VIT_GRID);
            assert_int_equal(differing[1] == 0, a % VIT_GRID == b % VIT_GRID);
        }
    free(x);
}

static void test_projection(void **state)
{
    float *weights = floats((size_t)3 * VIT_WIDTH * VIT_WIDTH);
    double squares[3] = {0}, alike = 0;
    (void)state;
    patches_projection(weights);
    for (int row = 0; row < VIT_WIDTH; row++) {
        const float *w = weights + (ptrdiff_t)3 * VIT_WIDTH * row;
        assert_memory_equal(w, w + VIT_WIDTH, VIT_WIDTH * sizeof *w); /* W_Q = W_K */
        for (int i = 0; i < VIT_WIDTH; i++) {
            for (int part = 0; part < 3; part++)
                squares[part] += pow((double)w[part * VIT_WIDTH + i], 2);
            alike += (double)w[i] * (double)w[2 * VIT_WIDTH + i];
        }
    }
    for (int part = 0; part < 3; part++)
        expect_near(squares[part] / VIT_WIDTH, 1, 0.01, "the sum of a column's squares");
    expect_near(alike / VIT_WIDTH, 0, 0.01, "the product of W_Q and W_V");
    free(weights);
}

static void test_heads(void **state)
{
    float *qkv = floats((size_t)VIT_PATCHES * 3 * VIT_WIDTH);
    float *heads = floats((size_t)VIT_PATCHES * VIT_WIDTH);
    (void)state;
    for (int i = 0; i < VIT_PATCHES * 3 * VIT_WIDTH; i++)
        qkv[i] = (float)i;
    for (int part = 0; part < 3; part++) {
        patches_split_heads(heads, qkv, part);
        for (int h = 0; h < VIT_HEADS; h++)
            for (int n = 0; n < VIT_PATCHES; n++)
                for (int c = 0; c < VIT_HEAD_DIM; c++)
                    if (heads[(h * VIT_PATCHES + n) * VIT_HEAD_DIM + c] !=
                        qkv[n * 3 * VIT_WIDTH + part * VIT_WIDTH + h * VIT_HEAD_DIM + c])
                        fail_msg("part %d, head %d, patch %d, %d", part, h, n, c);
    }
    memset(heads, 0, VIT_HEAD_DIM * sizeof *heads);
    const float ratio = heads[VIT_HEAD_DIM + 1] / heads[VIT_HEAD_DIM];
    patches_normalise(heads);
    for (int row = 0; row < VIT_HEADS * VIT_PATCHES; row++) {
        double squares = 0;
        for (int c = 0; c < VIT_HEAD_DIM; c++)
            squares += pow((double)heads[row * VIT_HEAD_DIM + c], 2);
        expect_near(squares, row == 0 ? 0 : VIT_HEAD_DIM, 1e-4, "a squared length");
    }
    expect_near((double)(heads[VIT_HEAD_DIM + 1] / heads[VIT_HEAD_DIM]), (double)ratio, 1e-6,
                "a direction");
    free(qkv);
    free(heads);
}

/* Two heads of 5 tokens and 3 dimensions, softmax written out. */
static void test_map(void **state)
{
    enum { HEADS = 2, TOKENS = 5, DIM = 3 };
    float q[HEADS * TOKENS * DIM], k[HEADS * TOKENS * DIM], lse[HEADS * TOKENS];
    double p[HEADS][TOKENS], row[TOKENS];
    const int query = 3;
    const struct heads h = {HEADS, TOKENS, DIM, 0.7, q, k};
    (void)state;
    random_fill(q, LENGTH(q), 5, 1);
    random_fill(k, LENGTH(k), 5, 2);
    for (int head = 0; head < HEADS; head++) {
        double sum = 0;
        for (int key = 0; key < TOKENS; key++) {
            double s = 0;
            for (int c = 0; c < DIM; c++)
                s += (double)q[(head * TOKENS + query) * DIM + c] *
                     (double)k[(head * TOKENS + key) * DIM + c];
            sum += p[head][key] = exp(0.7 * s);
        }
        for (int key = 0; key < TOKENS; key++)
            p[head][key] /= sum;
        lse[head * TOKENS + query] = (float)log(sum);
        attention_map_row(row, &h, head, query, lse);
        for (int key = 0; key < TOKENS; key++)
            expect_near(row[key], p[head][key], 1e-6, "P");
    }
    attention_map_mean(row, &h, query, lse);
    for (int key = 0; key < TOKENS; key++)
        expect_near(row[key], (p[0][key] + p[1][key]) / 2, 1e-6, "the mean of P");
}

/* One query of two keys, scores 0 and ln 3: P is 1/4 and 3/4. */
static void test_scores(void **state)
{
    const float q[2] = {1.0f, 1.0f}, k[2] = {0.0f, (float)log(3)};
    const float zero[6] = {0};
    (void)state;
    struct score_numbers n = attention_map_scores(&(struct heads){1, 2, 1, 1.0, q, k});
    expect_near(n.variance, pow(log(3) / 2, 2), 1e-6, "the variance");
    expect_near(n.entropy, 0.25 * log(4) + 0.75 * log(4.0 / 3), 1e-6, "the entropy");
    expect_near(n.largest, 0.75, 1e-6, "the largest");
    n = attention_map_scores(&(struct heads){1, 2, 1, 3.0, q, k});
    expect_near(n.largest, 27.0 / 28, 1e-6, "the largest of three times the scores");
    n = attention_map_scores(&(struct heads){2, 3, 1, 1.0, zero, zero});
    expect_near(n.variance, 0, 0, "the variance of equal scores");
    expect_near(n.entropy, log(3), 1e-12, "their entropy");
    expect_near(n.largest, 1.0 / 3, 1e-12, "their largest");
}

static void test_angle_error(void **state)
{
    const float x[6] = {1, 0, 0, 1, 0, 0}, turned[6] = {0, 2, -3, 0, 0, 0};
    const float bent[6] = {1, 0, 1, 0, 0, 0};
    const struct heads same = {1, 3, 2, 1.0, turned, turned},
                       other = {1, 3, 2, 1.0, bent, bent};
    (void)state;
    expect_near(attention_map_angle_error(&same, x, 2), 0, 1e-12, "the error of a rotation");
    /* one of three pairs lies along instead of across */
    expect_near(attention_map_angle_error(&other, x, 2), sqrt(1.0 / 3), 1e-12, "the error");
}

static void open_default(struct vit *vit, struct options *o)
{
    struct error error;
    options_init(o);
    if (vit_open(vit, o, &error))
        fail_msg("%s", error.text);
}

/* The cat: LSE of the simulator makes rows that sum to 1, for both models. */
static void test_picture(void **state)
{
    struct options o;
    struct vit vit;
    struct vit_maps maps;
    struct error error;
    double sum = 0, trained = 0;
    (void)state;
    open_default(&vit, &o);
    assert_int_equal(vit.width, 224);
    assert_int_equal(vit.height, 224);
    assert_int_equal(vit.patch, 5 * 14 + 4);
    assert_true(vit_is_trained(&vit));
    assert_int_equal(vit_trained_heads(&vit).tokens, 197);
    assert_int_equal(vit_map(&maps, &o.simulation, &vit, &error), STATUS_OK);
    for (int i = 0; i < VIT_PATCHES; i++)
        sum += maps.alike[i];
    for (int i = 0; i < 1 + VIT_PATCHES; i++)
        trained += maps.trained[i];
    expect_near(sum, 1, 1e-5, "the sum of the map");
    expect_near(trained, 1, 1e-5, "the sum of the trained map");
    /* nothing is more like a patch than itself; nor does the model find anything */
    for (int i = 0; i < VIT_PATCHES; i++) {
        assert_true(maps.alike[i] <= maps.alike[vit.patch]);
        assert_true(maps.trained[1 + i] <= maps.trained[1 + vit.patch]);
    }
    vit_close(&vit);
}

static void expect_patch(const char *text, int patch)
{
    struct options o;
    struct vit vit;
    struct error error;
    options_init(&o);
    o.patch = text;
    if (vit_open(&vit, &o, &error)) {
        assert_int_equal(error.status, STATUS_BAD_ARGUMENT);
        if (patch >= 0 || strncmp(error.text, "--patch ", 8) != 0)
            fail_msg("%s: %s", text, error.text);
        return;
    }
    if (vit.patch != patch)
        fail_msg("%s: %d, not %d", text, vit.patch, patch);
    vit_close(&vit);
}

static void test_patch_option(void **state)
{
    static const char *const bad[] = {
        "14,0", "0,14", "-1,0", "1,-1", "1,", ",1",  "1,2,3", "196", "-1",
        "",     "a",    " 1",   "1 ",   "+1", "1.5", "0x1",   "1;2", "99999999999999999999",
        "1, 2"};
    (void)state;
    expect_patch("0,0", 0);
    expect_patch("13,13", 195);
    expect_patch("2,3", 31);
    expect_patch("31", 31);
    expect_patch("195", 195);
    for (size_t n = 0; n < LENGTH(bad); n++)
        expect_patch(bad[n], -1);
}

static void expect_refused(const struct options *o, const char *begin, const char *found)
{
    struct vit vit;
    struct error error = {0};
    assert_int_not_equal(vit_open(&vit, o, &error), STATUS_OK);
    if (strncmp(error.text, begin, strlen(begin)) != 0 || !strstr(error.text, found))
        fail_msg("\"%s\" does not begin with \"%s\" and say \"%s\"", error.text, begin, found);
}

static void test_refused_files(void **state)
{
    const struct workplace *place = *state;
    static const int64_t wrong[][4] = {
        {1, 2, 196, 8}, {2, 2, 197, 8}, {1, 65, 197, 1}, {1, 1, 197, 257}};
    const int64_t shape[4] = {1, 2, 197, 8}, other[4] = {1, 4, 197, 4};
    float *values = floats((size_t)65 * 197 * 257);
    char q[300], k[300];
    struct options o;
    struct error error;
    options_init(&o);
    o.image = "no/such.png";
    expect_refused(&o, "--image no/such.png: ", "No such file");
    o.image = NULL;
    o.q = "q.npy";
    expect_refused(&o, "--q: ", "needs --k");
    o.q = NULL;
    o.k = "k.npy";
    expect_refused(&o, "--k: ", "needs --q");
    snprintf(q, sizeof q, "%s", workplace_path(place, "q.npy"));
    snprintf(k, sizeof k, "%s", workplace_path(place, "k.npy"));
    o.q = q;
    o.k = k;
    expect_refused(&o, "--q ", "No such file");
    assert_int_equal(npy_write(k, values, 4, shape, &error), STATUS_OK);
    for (size_t n = 0; n < LENGTH(wrong); n++) {
        assert_int_equal(npy_write(q, values, 4, wrong[n], &error), STATUS_OK);
        expect_refused(&o, "--q ", "must be finite, of shape (1, heads, 197, d)");
    }
    assert_int_equal(npy_write(q, values, 4, other, &error), STATUS_OK);
    expect_refused(&o, "--q and --k", "the same shape");
    values[7] = NAN;
    assert_int_equal(npy_write(q, values, 4, shape, &error), STATUS_OK);
    expect_refused(&o, "--q ", "must be finite");
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patches_cut),
        cmocka_unit_test(test_patches_colours),
        cmocka_unit_test(test_embedding_is_orthonormal),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_projection),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_angle_error),
        cmocka_unit_test(test_picture),
        cmocka_unit_test(test_patch_option),
        cmocka_unit_test_setup_teardown(test_refused_files, workplace_make, workplace_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
