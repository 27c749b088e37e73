/* The device helpers of cuda/ladder, each by itself, against what its header says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/problem.h"
#include "ladder_helpers.h"
#include "models/banks.h"

enum { LANES = 32 };

/* out (out_bytes) <- what the helper makes of in (in_bytes). */
static void run(enum helper helper, const void *in, size_t in_bytes, void *out,
                size_t out_bytes)
{
    void *device_in = NULL, *device_out = NULL;
    struct error error;
    if (device_alloc(&device_in, "in", in_bytes + 1, &error) ||
        device_alloc(&device_out, "out", out_bytes, &error) ||
        device_upload(device_in, in, in_bytes, &error) ||
        run_helper(helper, device_in, device_out, &error) ||
        device_download(out, device_out, out_bytes, &error))
        fail_msg("helper %d: %s", (int)helper, error.text);
    device_free(device_in);
    device_free(device_out);
}

/* Small whole numbers: every product and sum is exact. */
static void test_mma(void **state)
{
    uint64_t seed = 1;
    float A[16][16], B[16][8], C[16][8];
    uint16_t in[16 * 16 + 16 * 8];
    (void)state;
    for (int i = 0; i < 16 * 16; i++)
        A[i / 16][i % 16] = (float)random_between(&seed, -9, 9);
    for (int i = 0; i < 16 * 8; i++)
        B[i / 8][i % 8] = (float)random_between(&seed, -9, 9);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const enum dtype dtype = bf16 ? DTYPE_BF16 : DTYPE_F16;
        dtype_encode(in, dtype, &A[0][0], 16 * 16);
        dtype_encode(in + 16 * 16, dtype, &B[0][0], 16 * 8);
        run(bf16 ? HELPER_MMA_BF16 : HELPER_MMA_F16, in, sizeof in, C, sizeof C);
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++) {
                float want = 0;
                for (int k = 0; k < 16; k++)
                    want += 2 * A[i][k] * B[k][j];
                assert_true(C[i][j] == want);
            }
    }
}

static void test_pack(void **state)
{
    uint64_t seed = 2;
    float x[2 * LANES], got[2 * LANES];
    uint16_t out[2 * LANES];
    (void)state;
    for (int i = 0; i < 2 * LANES; i++)
        x[i] = random_normal(&seed);
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const enum dtype dtype = bf16 ? DTYPE_BF16 : DTYPE_F16;
        run(bf16 ? HELPER_PACK_BF16 : HELPER_PACK_F16, x, sizeof x, out, sizeof out);
        dtype_decode(got, dtype, out, 2 * LANES);
        for (int i = 0; i < 2 * LANES; i++) {
            float want;
            dtype_round(&want, dtype, &x[i], 1);
            assert_true(got[i] == want);
        }
    }
}

/* Element (row, col) of the tile is 64 row + col. */
static void test_ldmatrix(void **state)
{
    uint16_t tile[32 * 64], R[LANES][4][2];
    (void)state;
    for (int i = 0; i < 32 * 64; i++)
        tile[i] = (uint16_t)i;
    for (enum helper helper = HELPER_LDMATRIX_DOWN; helper <= HELPER_LDMATRIX_TRANSPOSED;
         helper++) {
        const bool right_first = helper == HELPER_LDMATRIX_RIGHT;
        const bool transposed = helper == HELPER_LDMATRIX_TRANSPOSED;
        run(helper, tile, sizeof tile, R, sizeof R);
        for (int lane = 0; lane < LANES; lane++)
            for (int r = 0; r < 4; r++)
                for (int e = 0; e < 2; e++) {
                    const int g = lane / 4, t2 = lane % 4 * 2 + e;
                    const int below = right_first ? r / 2 : r % 2;
                    const int right = right_first ? r % 2 : r / 2;
                    const int row = 16 + 8 * below + (transposed ? t2 : g);
                    const int col = 32 + 8 * right + (transposed ? g : t2);
                    assert_int_equal(R[lane][r][e], 64 * row + col);
                }
    }
}

/* Every chunk has a place of its own in its row; swizzled, a chunk of 8 rows is in 8 different
 * groups of 4 banks, and in row-major order in one. */
static void test_layouts(void **state)
{
    unsigned at[3][16][16];
    (void)state;
    run(HELPER_LAYOUTS, "", 0, at, sizeof at);
    for (int layout = 0; layout < 2; layout++)
        for (int row = 0; row < 16; row++) {
            unsigned taken = 0;
            for (int chunk = 0; chunk < 16; chunk++) {
                assert_int_equal(at[layout][row][chunk] / 256, row);
                assert_int_equal(at[layout][row][chunk] % 16, 0);
                taken |= 1u << at[layout][row][chunk] % 256 / 16;
            }
            assert_int_equal(taken, 0xffff);
        }
    for (int chunk = 0; chunk < 16; chunk++)
        for (int first = 0; first < 16; first += 8) {
            unsigned plain = 0, swizzled = 0;
            for (int row = first; row < first + 8; row++) {
                plain |= 1u << at[0][row][chunk] % 128 / 16;
                swizzled |= 1u << at[1][row][chunk] % 128 / 16;
            }
            assert_int_equal(plain, 1u << chunk % 8);
            assert_int_equal(swizzled, 0xff);
        }
}

/* Boxes of 16 rows, 64 columns each: every chunk has a place of its own; ldmatrix, whole rows
 * and a warp's C, two elements a lane, pass over the banks as few times as can be. */
static void test_boxes(void **state)
{
    unsigned at[3][16][16];
    uint32_t matrix[LANES], chunks[LANES], pairs[LANES];
    bool taken[256] = {false};
    (void)state;
    run(HELPER_LAYOUTS, "", 0, at, sizeof at);
    for (unsigned row = 0; row < 16; row++)
        for (unsigned chunk = 0; chunk < 16; chunk++) {
            const unsigned offset = at[2][row][chunk];
            assert_int_equal(offset, chunk / 8 * 2048 + row * 128 + 16 * (chunk % 8 ^ row % 8));
            assert_false(taken[offset / 16]);
            taken[offset / 16] = true;
        }
    for (unsigned n = 0; n < 16; n++) {
        for (unsigned lane = 0; lane < LANES; lane++) {
            matrix[lane] = at[2][lane % 16][n / 2 * 2 + lane / 16];
            chunks[lane] = at[2][n / 2 * 2 + lane / 16][lane % 16];
            pairs[lane] = at[2][lane / 4 + 8 * (n % 2)][n] + lane % 4 * 4;
        }
        assert_int_equal(bank_matrix_wavefronts(matrix, 4), 4);
        assert_int_equal(bank_wavefronts(chunks, ~0u, 16, true), 4);
        assert_int_equal(bank_wavefronts(pairs, ~0u, 4, false), 1);
    }
}

static void test_cp_async(void **state)
{
    uint16_t in[2 * LANES * 8], out[2 * LANES * 8];
    (void)state;
    for (int i = 0; i < 2 * LANES * 8; i++)
        in[i] = (uint16_t)(i + 1);
    run(HELPER_CP_ASYNC, in, sizeof in, out, sizeof out);
    for (int i = 0; i < 2 * LANES * 8; i++)
        assert_int_equal(out[i], i / 8 % 2 == 0 ? in[i] : 0);
}

static void test_row_reductions(void **state)
{
    uint64_t seed = 3;
    float x[LANES], most[LANES], sum[LANES];
    (void)state;
    for (int i = 0; i < LANES; i++)
        x[i] = i == 5 ? -INFINITY : (float)random_between(&seed, -99, 99);
    run(HELPER_ROW_MAX, x, sizeof x, most, sizeof most);
    run(HELPER_ROW_SUM, x, sizeof x, sum, sizeof sum);
    for (int i = 0; i < LANES; i++) {
        const float *row = x + i / 4 * 4;
        assert_true(most[i] == fmaxf(fmaxf(row[0], row[1]), fmaxf(row[2], row[3])));
        assert_true(sum[i] == row[0] + row[1] + row[2] + row[3]);
    }
}

/* What lanes 4g hold of tile i, half h, is the value of row 16 i + 8 h + g. */
static void test_row_gather(void **state)
{
    float x[LANES][2][2], out[LANES];
    (void)state;
    for (int lane = 0; lane < LANES; lane++)
        for (int n = 0; n < 4; n++)
            x[lane][n / 2][n % 2] = lane % 4 == 0 ? (float)(8 * n + lane / 4) : -1.0f;
    run(HELPER_ROW_GATHER, x, sizeof x, out, sizeof out);
    for (int lane = 0; lane < LANES; lane++)
        assert_true(out[lane] == (float)lane);
}

static void test_exp2(void **state)
{
    float x[LANES], y[LANES];
    (void)state;
    for (int i = 0; i < LANES; i++)
        x[i] = i == 0 ? -INFINITY : i == 1 ? 0.0f : -0.37f * (float)(i * i) / 8;
    run(HELPER_EXP2, x, sizeof x, y, sizeof y);
    assert_true(y[0] == 0 && y[1] == 1);
    for (int i = 2; i < LANES; i++)
        assert_true(fabs((double)y[i] / exp2((double)x[i]) - 1) <= 0x1p-22);
}

/* Query 0 sees no key, before or now; 1 sees its first; 2's maximum does not move. */
static void softmax_fill(struct softmax_case *x, uint64_t *seed)
{
    for (int i = 0; i < SOFTMAX_ROWS; i++) {
        x->m[i] = i < 2 ? -INFINITY : i == 2 ? 40.0f : (float)random_between(seed, -8, 8);
        x->l[i] = i < 2 ? 0.0f : (float)random_between(seed, 1, 8);
        x->seen[i] = i == 0 ? 0 : i == 1 ? 1 : i < 8 ? SOFTMAX_KEYS : 9 * i - 64;
        for (int j = 0; j < SOFTMAX_KEYS; j++)
            x->S[i][j] = (float)random_between(seed, -160, 160) / 8;
        for (int j = 0; j < SOFTMAX_COLUMNS; j++)
            x->O[i][j] = i < 2 ? 0.0f : random_normal(seed);
    }
}

/* What exp2_software() may be off by: see exp2.h. */
static const double software = 1.7e-7;

static void test_exp2_software(void **state)
{
    float x[LANES], y[LANES];
    uint64_t seed = 5;
    (void)state;
    for (int n = 0; n < 64; n++) {
        for (int i = 0; i < LANES; i++)
            x[i] = (float)random_between(&seed, -126 * 4096, 8 * 4096) / 4096;
        x[0] = (float)(n - 60);
        x[1] = (float)n - 60.5f;
        x[2] = -200;
        x[3] = -INFINITY;
        run(HELPER_EXP2_SOFTWARE, x, sizeof x, y, sizeof y);
        for (int i = 0; i < LANES; i++) {
            const double want = x[i] < -126 ? 0 : exp2((double)x[i]);
            assert_true(fabs((double)y[i] - want) <= software * want);
        }
    }
}

static void assert_near(float got, double want, double relative, double floor)
{
    if (!(fabs((double)got - want) <= relative * fabs(want) + floor))
        fail_msg("%.9g, not %.9g", (double)got, want);
}

/* The scores and maxima are such that exponents are exact: what is left is exp's error and that
 * of fewer than 24 sums. */
static void assert_softmax(const struct softmax_result *y, const struct softmax_case *x, int i,
                           double exp)
{
    const double sign = x->scale < 0 ? -1 : x->scale > 0, before = (double)x->m[i];
    double m = before, l = 0, P[SOFTMAX_KEYS];
    for (int j = 0; j < x->seen[i]; j++)
        m = fmax(m, sign * (double)x->S[i][j]);
    if (m <= before + (double)x->slack)
        m = before;
    assert_true((double)y->m[i] == m);
    for (int j = 0; j < SOFTMAX_KEYS; j++) {
        P[j] = j < x->seen[i] ? exp2(sign * (double)x->S[i][j] - m) : 0;
        assert_near(y->P[i][j], P[j], exp, 0);
        l += P[j];
    }
    const double factor = x->m[i] == -INFINITY ? 0 : exp2(before - m);
    assert_near(y->factor[i], factor, 0x1p-22, 0);
    assert_near(y->l[i], l + 4 * factor * (double)x->l[i], exp + 24 * 0x1p-24, 0);
    for (int j = 0; j < SOFTMAX_COLUMNS; j++)
        assert_true(y->O[i][j] == x->O[i][j] * y->factor[i]);
}

/* From the sums as they are, whatever they are. */
static void assert_finished(const struct softmax_result *y, int i)
{
    const bool empty = y->m[i] == -INFINITY;
    const double m = empty ? -INFINITY : log(2) * (double)y->m[i];
    if (empty)
        assert_true(y->lse[i] == -INFINITY);
    else
        assert_near(y->lse[i], m + log((double)y->l[i]), 0,
                    0x1p-22 * (fabs(m) + fabs(log((double)y->l[i]))));
    for (int j = 0; j < SOFTMAX_COLUMNS; j++)
        assert_near(y->finished[i][j], empty ? 0 : (double)y->O[i][j] / (double)y->l[i],
                    0x1p-23, 0);
}

static void test_softmax(void **state)
{
    static const float scales[] = {1, -0.3f, 0}, slacks[] = {0, 8};
    static const struct {
        enum helper helper;
        enum dtype dtype;
    } helpers[] = {{HELPER_SOFTMAX_F16, DTYPE_F16},
                   {HELPER_SOFTMAX_BF16, DTYPE_BF16},
                   {HELPER_SOFTMAX_SOFTWARE, DTYPE_BF16}};
    enum { COUNT = SOFTMAX_ROWS * SOFTMAX_KEYS };
    uint64_t seed = 4;
    (void)state;
    for (size_t n = 0; n < 18; n++) {
        const enum helper helper = helpers[n % 3].helper;
        const bool exact = helper != HELPER_SOFTMAX_SOFTWARE;
        struct softmax_case x = {.scale = scales[n / 3 % 3], .slack = slacks[n / 9]};
        struct softmax_result y;
        float packed[COUNT], want[COUNT];
        softmax_fill(&x, &seed);
        run(helper, &x, sizeof x, &y, sizeof y);
        for (int i = 0; i < SOFTMAX_ROWS; i++) {
            assert_finished(&y, i);
            assert_softmax(&y, &x, i, exact ? 0x1p-22 : software);
        }
        dtype_decode(packed, helpers[n % 3].dtype, &y.packed[0][0], COUNT);
        dtype_round(want, helpers[n % 3].dtype, &y.P[0][0], COUNT);
        for (int i = 0; i < COUNT; i++)
            assert_true(packed[i] == want[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma),           cmocka_unit_test(test_pack),
        cmocka_unit_test(test_ldmatrix),      cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_cp_async),      cmocka_unit_test(test_row_reductions),
        cmocka_unit_test(test_row_gather),    cmocka_unit_test(test_exp2),
        cmocka_unit_test(test_exp2_software), cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
