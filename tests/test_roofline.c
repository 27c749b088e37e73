/* The roofline (models/roofline).
 *
 * Protects: ridges, ceilings and verdicts, against numbers worked out by hand from datasheets
 * and papers; what is not known bounds nothing; intensities, against the loops' own counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/core_fixture.h"
#include "models/io.h"
#include "models/roofline.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * want))
        fail_msg("%.9g, not %.9g", got, want);
}

/* By hand: 312 / 2.039, 989 / 4.8, 67 / 3.35, 125 / 0.9, 19.5 / 1.555; L2 of an A100 moves 5120
 * bytes a clock at 1.41 GHz. */
static void test_ridges(void **state)
{
    static const struct {
        const char *machine;
        enum roofline_unit unit;
        enum roofline_level level;
        double flops_a_byte;
    } known[] = {
        {"A100-80GB", ROOFLINE_TENSOR_F16, ROOFLINE_HBM, 153.016},
        {"A100-80GB", ROOFLINE_TENSOR_TF32, ROOFLINE_HBM, 76.508},
        {"A100-80GB", ROOFLINE_TENSOR_F16, ROOFLINE_L2, 312 / (5.12 * 1.41)},
        {"H200", ROOFLINE_TENSOR_F16, ROOFLINE_HBM, 206.042},
        {"H100", ROOFLINE_FP32, ROOFLINE_HBM, 20},
        {"V100", ROOFLINE_TENSOR_F16, ROOFLINE_HBM, 138.889},
        {"A100-40GB", ROOFLINE_FP32, ROOFLINE_HBM, 12.5402},
        {"teaching", ROOFLINE_TENSOR_FP8, ROOFLINE_HBM, 20},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(known); i++)
        assert_near(
            roofline_ridge(machine_find(known[i].machine), known[i].unit, known[i].level),
            known[i].flops_a_byte, 1e-4);
}

static void test_what_is_not_known_is_zero(void **state)
{
    const struct machine *t4 = machine_find("T4");
    (void)state;
    assert_true(roofline_peak(t4, ROOFLINE_TENSOR_BF16) == 0); /* it has none */
    assert_true(roofline_bandwidth(t4, ROOFLINE_L2) == 0);
    assert_true(roofline_ridge(t4, ROOFLINE_TENSOR_F16, ROOFLINE_L2) == 0);
    assert_true(roofline_ridge(t4, ROOFLINE_TENSOR_BF16, ROOFLINE_HBM) == 0);
}

/* A machine of round numbers: 100 FLOP/s, 10 bytes/s from HBM, 40 from L2. */
static struct machine round_machine(void)
{
    return (struct machine){
        .fp32_flops = 100, .hbm_bytes_per_second = 10, .l2_bytes_per_second = 40};
}

static void test_the_lowest_ceiling_bounds(void **state)
{
    static const struct {
        double flops, hbm, l2, attainable;
        enum roofline_bound bound;
    } points[] = {
        {1000, 1000, 1000, 10, BOUND_HBM},    /* 1 FLOP a byte at both */
        {1000, 50, 1000, 40, BOUND_L2},       /* 20 and 1 */
        {1000, 50, 100, 100, BOUND_COMPUTE},  /* 20 and 10 */
        {1000, 100, 400, 100, BOUND_COMPUTE}, /* on both ridges */
        {1000, 101, 400, 100 / 1.01, BOUND_HBM}, {1000, 100, 401, 100 / 1.0025, BOUND_L2},
    };
    struct machine m = round_machine();
    (void)state;
    for (size_t i = 0; i < LENGTH(points); i++) {
        const struct roofline_point p = {
            ROOFLINE_FP32, points[i].flops, {points[i].hbm, points[i].l2}};
        assert_near(roofline_attainable(&m, &p), points[i].attainable, 1e-12);
        assert_int_equal(roofline_bound_of(&m, &p), points[i].bound);
    }
    m.l2_bytes_per_second = 0; /* not known: it bounds nothing */
    const struct roofline_point p = {ROOFLINE_FP32, 1000, {50, 1000}};
    assert_near(roofline_attainable(&m, &p), 100, 1e-12);
    assert_int_equal(roofline_bound_of(&m, &p), BOUND_COMPUTE);
}

static struct attention one_head(int seqlen, int head_dim, enum dtype dtype)
{
    return (struct attention){.batch = 1,
                              .heads_q = 1,
                              .heads_kv = 1,
                              .seqlen_q = seqlen,
                              .seqlen_k = seqlen,
                              .head_dim = head_dim,
                              .head_dim_v = head_dim,
                              .dtype = dtype,
                              .block_q = 64,
                              .block_k = 64};
}

/* Matrix FLOPs are 4 N N d. At HBM, with an LSE of 4 N bytes: standard moves 4 N d + 4 N N
 * elements, FlashAttention 4 N d; at L2 FlashAttention-2 moves (2 + 2 N/Br) N d. */
static void test_intensities(void **state)
{
    const double N = 4096, d = 64;
    const struct attention a = one_head(4096, 64, DTYPE_F16);
    const struct roofline_point standard = roofline_attention(ALGORITHM_STANDARD, &a);
    const struct roofline_point flash2 = roofline_attention(ALGORITHM_FLASH2, &a);
    (void)state;
    assert_int_equal(flash2.unit, ROOFLINE_TENSOR_F16);
    assert_near(flash2.flops, 4 * N * N * d, 1e-12);
    assert_near(roofline_intensity(&standard, ROOFLINE_HBM),
                4 * N * N * d / (2 * (4 * N * d + 4 * N * N) + 4 * N), 1e-12);
    assert_near(roofline_intensity(&flash2, ROOFLINE_HBM),
                4 * N * N * d / (2 * 4 * N * d + 4 * N), 1e-12);
    assert_near(roofline_intensity(&flash2, ROOFLINE_L2),
                4 * N * N * d / (2 * (2 + 2 * N / 64) * N * d + 4 * N), 1e-12);
}

/* fp32 units do all operations, not only those of matrix products. */
static void test_fp32_counts_every_flop(void **state)
{
    const struct attention a = one_head(256, 32, DTYPE_F32);
    const struct flops f = io_predict(ALGORITHM_FLASH1, &a, false).flops;
    const struct roofline_point p = roofline_attention(ALGORITHM_FLASH1, &a);
    (void)state;
    assert_true(f.other > 0 && f.exp > 0);
    assert_true(p.flops == (double)(f.matrix + f.other + f.exp));
}

/* b rows times K x N weights: near b FLOPs a byte of fp16, and exactly 2 b K N over the rest.
 */
static void test_batches(void **state)
{
    const struct io_matmul one = {1, 5120, 5120}, many = {512, 5120, 5120};
    const struct roofline_point p = roofline_matmul(&one, DTYPE_F16);
    const struct roofline_point q = roofline_matmul(&many, DTYPE_F16);
    (void)state;
    assert_near(roofline_intensity(&p, ROOFLINE_HBM), 1, 1e-3);
    assert_near(roofline_intensity(&q, ROOFLINE_HBM), 512 / (1 + 2 * 512.0 / 5120), 1e-12);
    assert_int_equal(roofline_bound_of(machine_find("H200"), &p), BOUND_HBM);
    assert_int_equal(roofline_bound_of(machine_find("H200"), &q), BOUND_COMPUTE);
}

/* No algorithm asks L2 for less than the least that DRAM must move. */
static void test_least_bytes_are_least(void **state)
{
    (void)state;
    for (int n = 64; n <= 2048; n *= 2)
        for (int i = 0; i < ALGORITHM_COUNT; i++) {
            const struct attention a = one_head(n, 64, DTYPE_F32);
            const struct roofline_point p = roofline_attention((enum algorithm)i, &a);
            assert_true(p.bytes[ROOFLINE_HBM] <= p.bytes[ROOFLINE_L2]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ridges),
        cmocka_unit_test(test_what_is_not_known_is_zero),
        cmocka_unit_test(test_the_lowest_ceiling_bounds),
        cmocka_unit_test(test_intensities),
        cmocka_unit_test(test_fp32_counts_every_flop),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_least_bytes_are_least),
    };
    return cmocka_run_group_tests_name("roofline", tests, NULL, NULL);
}
