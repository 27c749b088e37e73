/* exp_f32 against the C library's exp in double precision, over all of fp32 from -inf to 0.
 *
 * Protects: at most 1.5 units in the last place of error wherever the result is a normal
 * number, and exactly 0 below that, by the vectorised loop of tile_exp and by scalar calls; the
 * special values; and that a larger score never gets a weight smaller by more than one unit in
 * the last place. A sample takes every 97th bit pattern of the floats; 97 has no factor in
 * common with powers of two, so all mantissas and exponents occur.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "common/core_fixture.h"
#include "ops/exp.h"
#include "ops/tile_ops.h"

enum { STEP = 97, CHUNK = 4096, BLOCKS = 64 };

/* The float with these bits. */
static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Distance between neighbouring floats at a normal value: 2^(e - 23) for a value in
 * [2^e, 2^(e + 1)). */
static double unit_at(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= UINT64_C(0x7ff0000000000000); /* the power of two at or below value */
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * 0x1p-23;
}

/* Error of got as exp(x), in units in the last place of the true value; infinite for what no
 * rounding explains: NaN, or anything but 0 where the true value is no normal number. */
static double units_of_error(float got, float x)
{
    const double want = exp((double)x);
    bool right = isnan(x) && isnan(got);
    if (want < (double)FLT_MIN)
        right = same_bits(got, 0.0f);
    else if (isfinite(got) && !isnan(x))
        return fabs((double)got - want) / unit_at(want);
    return right ? 0 : (double)INFINITY;
}

enum { FLOATS_TO_ZERO = 0x7f800001 };

/* The floats from -inf to -0 in order of size: number 0 is -inf. */
static float float_number(int64_t n)
{
    return float_of(UINT32_C(0x80000000) + (uint32_t)(FLOATS_TO_ZERO - 1 - n));
}

static const double most_units = 1.5;

static void test_the_measure_of_error(void **state)
{
    static const struct {
        float got, x;
        double least, most; /* units */
    } known[] = {
        {1.0f, 0.0f, 0, 0},
        {1.0f + 3 * FLT_EPSILON, 0.0f, 3, 3},
        {1.0f - FLT_EPSILON, 0.0f, 1, 1},
        {0.0f, -INFINITY, 0, 0},
        {FLT_TRUE_MIN, -INFINITY, INFINITY, INFINITY},
        {-0.0f, -200.0f, INFINITY, INFINITY},
        {0.0f, -87.0f, 8e6, INFINITY},
        {FLT_MIN, -87.4f, INFINITY, INFINITY},
        {0.5f, -0.69314718f, 0, 0.4},
        {0.5f + FLT_EPSILON / 2, -0.69314718f, 2, 2.1}, /* a unit is 2^-25 */
        {NAN, -1.0f, INFINITY, INFINITY},
        {INFINITY, -1.0f, INFINITY, INFINITY},
        {0.5f, NAN, INFINITY, INFINITY},
        {0.37f, -1.0f, 1e4, INFINITY},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++) {
        const double units = units_of_error(known[i].got, known[i].x);
        if (!(units >= known[i].least && units <= known[i].most))
            fail_msg("%a as exp(%a): %g units", (double)known[i].got, (double)known[i].x,
                     units);
    }
}

/* What one block found in its share of the sample. */
struct share {
    double worst;
    float worst_x;
    int64_t count, backward; /* floats, and those that are out of order */
    float first, highest;    /* exp of the share's first float, and the largest */
};

/* The floats from number first on, every step-th, count of them. */
struct sample {
    int64_t first, step, count;
    struct share *shares; /* [BLOCKS] */
};

/* True if low is smaller than high by more than one unit; both at least 0. Their bits are in
 * the same order as they. */
static bool is_below(float low, float high)
{
    uint32_t low_bits, high_bits;
    memcpy(&low_bits, &low, sizeof low_bits);
    memcpy(&high_bits, &high, sizeof high_bits);
    return low_bits + 1 < high_bits;
}

static void judge(struct share *share, const float *x, const float *got, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const double error = units_of_error(got[i], x[i]);
        if (!(error <= share->worst)) {
            share->worst = error;
            share->worst_x = x[i];
        }
        share->backward += is_below(got[i], share->highest);
        share->first = share->count == 0 ? got[i] : share->first;
        share->highest = got[i] > share->highest ? got[i] : share->highest;
        share->count++;
    }
}

/* exp of a share of the sample, as tile_exp computes it: 32 rows of 128, each minus m = 0. */
static void exp_block(struct thread_block *b, const void *args)
{
    const struct sample *sample = args;
    struct share *share = &sample->shares[b->x];
    struct tile S, m;
    float x[CHUNK];
    tile_alloc(&S, b, LEVEL_SRAM, "S", DTYPE_F32, 32, CHUNK / 32);
    tile_alloc(&m, b, LEVEL_SRAM, "m", DTYPE_F32, 32, 1);
    tile_fill(&m, 0.0f);
    const int64_t begin = sample->count * b->x / BLOCKS,
                  end = sample->count * (b->x + 1) / BLOCKS;
    for (int64_t n = begin; n < end; n += CHUNK) {
        const int64_t count = end - n < CHUNK ? end - n : CHUNK;
        tile_fill(&S, 0.0f);
        for (int64_t i = 0; i < count; i++)
            tile_writable(&S)[i] = x[i] = float_number(sample->first + (n + i) * sample->step);
        tile_exp(&S, &m, 32, CHUNK / 32);
        judge(share, x, S.data, count);
    }
}

static void expect_exp(const struct sample *sample)
{
    struct share shares[BLOCKS] = {{0}};
    struct sample run = *sample;
    run.shares = shares;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    launch_ok(&gpu,
              &(struct launch){
                  .name = "exp", .grid = {BLOCKS, 1, 1}, .block = exp_block, .args = &run});
    int64_t count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        if (!(shares[i].worst <= most_units))
            fail_msg("exp(%a) is wrong by %g units", (double)shares[i].worst_x,
                     shares[i].worst);
        assert_int_equal(shares[i].backward, 0);
        assert_false(i > 0 && is_below(shares[i].first, shares[i - 1].highest));
        count += shares[i].count;
    }
    assert_int_equal(count, sample->count);
}

static void test_every_97th_float(void **state)
{
    (void)state;
    assert_true(float_number(0) == -INFINITY);
    assert_true(same_bits(float_number(FLOATS_TO_ZERO - 1), -0.0f));
    expect_exp(&(struct sample){.step = STEP, .count = (FLOATS_TO_ZERO + STEP - 1) / STEP});
}

/* Every float around the places where the range reduction, or the kind of result, changes. */
static void test_every_float_near_the_edges(void **state)
{
    static const float edges[] = {-87.33655f, -88.0f,   -86.99f, -0.34657359f, -1.0397208f,
                                  -60.0f,     -104.0f,  -1.0f,   -43.668274f,  -0.69314718f,
                                  -1e-3f,     -2.5e-8f, -1e6f,   -4194304.0f,  -8388608.0f};
    enum { AROUND = 20000 };
    (void)state;
    for (size_t i = 0; i < LENGTH(edges); i++) {
        uint32_t bits;
        memcpy(&bits, &edges[i], sizeof bits);
        const int64_t number = FLOATS_TO_ZERO - 1 - (int64_t)(bits & 0x7fffffff);
        assert_true(float_number(number) == edges[i]);
        expect_exp(&(struct sample){.first = number - AROUND, .step = 1, .count = 2 * AROUND});
    }
}

static void test_scalar_calls(void **state)
{
    (void)state;
    struct rng rng = {61};
    for (int n = 0; n < 200000; n++) {
        const float x = n % 2 ? float_of(random_bits(&rng) | 0x80000000) /* NaN among them */
                              : -52.0f * fabsf(random_value(&rng));
        const double error = units_of_error(exp_f32(x), x);
        if (!(error <= most_units))
            fail_msg("exp(%a) is wrong by %g units", (double)x, error);
    }
}

static void test_special_values(void **state)
{
    static const struct {
        float x, want;
    } known[] = {
        {0.0f, 1.0f},      {-0.0f, 1.0f},   {-INFINITY, 0.0f},     {-FLT_MAX, 0.0f},
        {-1000.0f, 0.0f},  {-104.5f, 0.0f}, {-FLT_TRUE_MIN, 1.0f}, {-FLT_MIN, 1.0f},
        {-20000.0f, 0.0f}, {-1e30f, 0.0f},
    };
    static const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0xff800001};
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++)
        assert_true(same_bits(exp_f32(known[i].x), known[i].want));
    for (size_t i = 0; i < LENGTH(nans); i++)
        assert_true(isnan(exp_f32(float_of(nans[i]))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_measure_of_error),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_scalar_calls),
        cmocka_unit_test(test_every_float_near_the_edges),
        cmocka_unit_test(test_every_97th_float),
    };
    return cmocka_run_group_tests_name("exp", tests, NULL, NULL);
}
