/* The project's central claim: what is predicted on paper and what the simulator counts are
 * equal, in every byte, sector and FLOP, tensor by tensor.
 *
 * Three accounts of random shapes are compared: io_predict(), a run with data, and a run that
 * only counts. A fourth, of bytes alone, walks the algorithms' loops (tests/common/walk.h), so
 * that the closed forms and the simulator cannot be wrong together. Then the formulas that the
 * project teaches are checked as a reader would write them down, up to a million tokens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>

#include "common/problem.h"
#include "common/walk.h"
#include "models/io.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const char *const direction_names[DIRECTION_COUNT] = {"read", "written", "reduced"};

/* Traffic of a tensor; zeros if the account lacks it. */
static struct traffic traffic_of(const struct account *account, const char *name)
{
    struct account copy = *account;
    return *account_tensor(&copy, name);
}

static int64_t bytes_of(const struct account *account, const char *name,
                        enum direction direction)
{
    return traffic_of(account, name).of[direction].bytes;
}

/* Shows where two accounts differ, once account_equal() has found that they do. */
static void print_differences(const struct account *a, const struct account *b)
{
    for (int t = 0; t < a->tensor_count; t++) {
        const char *name = a->tensor[t].name;
        const struct traffic other = traffic_of(b, name);
        for (int k = 0; k < DIRECTION_COUNT; k++) {
            const struct amount x = a->tensor[t].traffic.of[k], y = other.of[k];
            if (x.bytes != y.bytes || x.sectors != y.sectors)
                print_error("%s %s: %" PRId64 " and %" PRId64 " bytes, %" PRId64 " and %" PRId64
                            " sectors\n",
                            name, direction_names[k], x.bytes, y.bytes, x.sectors, y.sectors);
        }
    }
    print_error("FLOPs: matrix %" PRId64 " and %" PRId64 ", other %" PRId64 " and %" PRId64
                ", exp %" PRId64 " and %" PRId64 "\n",
                a->flops.matrix, b->flops.matrix, a->flops.other, b->flops.other, a->flops.exp,
                b->flops.exp);
}

static void assert_same(const char *what, const struct simulation *s, const struct account *a,
                        const struct account *b)
{
    if (account_equal(a, b))
        return;
    print_differences(a, b);
    fail_msg("%s%s%s, %s: %s differ", algorithm_name(s->algorithm),
             s->attention.tiled_gemm ? " on tiles" : "", s->tma ? " by TMA" : "",
             attention_text(&s->attention), what);
}

/* An account without its sectors and FLOPs, which a walk does not have. */
static struct account bytes_alone(const struct account *account)
{
    struct account bytes = *account;
    bytes.flops = (struct flops){0};
    for (int t = 0; t < bytes.tensor_count; t++)
        for (int k = 0; k < DIRECTION_COUNT; k++)
            bytes.tensor[t].traffic.of[k].sectors = 0;
    return bytes;
}

static struct account count(struct simulation *s)
{
    struct error error;
    if (attention_count(s, &error))
        fail_msg("%s", error.text);
    return gpu_account(&s->gpu);
}

static struct account count_with_data(struct simulation *s, uint64_t *seed)
{
    struct problem p = {.a = s->attention};
    struct error error;
    problem_fill(&p, seed);
    float *o = allocate(count_o(&p.a), sizeof *o);
    float *lse = allocate(count_lse(&p.a), sizeof *lse);
    if (attention_simulate(s, p.q, p.k, p.v, o, lse, &error))
        fail_msg("%s", error.text);
    free(o);
    free(lse);
    problem_free(&p);
    return gpu_account(&s->gpu);
}

static void check_shape(struct simulation *s, uint64_t *seed)
{
    const struct account predicted = io_predict(s->algorithm, &s->attention, s->tma);
    const struct account with_data = count_with_data(s, seed);
    const struct account counted = count(s);
    const struct account walked = walk_bytes(s->algorithm, &s->attention, s->tma);
    const struct account bytes = bytes_alone(&counted);
    assert_same("the prediction and the run with data", s, &predicted, &with_data);
    assert_same("the prediction and the counts-only run", s, &predicted, &counted);
    assert_same("the bytes of the loops and of the counts-only run", s, &walked, &bytes);
    assert_true(account_total(&counted).of[DIRECTION_READ].bytes > 0);
    assert_true(counted.flops.matrix >= 0 && bytes_of(&counted, "O", DIRECTION_WRITE) > 0);
}

/* Rounds up what the copy engine needs in multiples of 16 bytes. */
static void align_for_tma(struct attention *a)
{
    const int step = 16 / dtype_bytes(a->dtype);
    int *const extents[] = {&a->head_dim, &a->head_dim_v, &a->seqlen_k, &a->block_k};
    for (size_t k = 0; k < LENGTH(extents); k++)
        *extents[k] = (*extents[k] + step - 1) / step * step;
}

/* Shape number n: mostly tens of rows; at times hundreds, or hundreds of short planes, so that
 * the counts-only mode multiplies what it has counted once. */
static struct attention shape(int n, uint64_t *seed)
{
    struct attention a = random_attention(seed, n % 7 ? 50 : 180, 16);
    if (n % 5 == 0) {
        a.batch = random_between(seed, 10, 50);
        a.seqlen_q = random_between(seed, 1, 9);
        a.seqlen_k = random_between(seed, 1, 9);
    }
    if (n % 2)
        align_for_tma(&a);
    return a;
}

/* Every random shape by every algorithm, alternately by the copy engine. */
static void test_random_shapes(void **state)
{
    uint64_t seed = 161803;
    (void)state;
    for (int n = 0; n < 240; n++) {
        const struct attention a = shape(n, &seed);
        for (int v = 0; v < VARIANT_COUNT; v++) {
            struct simulation s = {
                .algorithm = variants[v].algorithm,
                .attention = a,
                .machine = machine_default(),
                .tma = n % 2 && variants[v].algorithm != ALGORITHM_NAIVE,
            };
            s.attention.tiled_gemm = variants[v].tiled_gemm;
            check_shape(&s, &seed);
        }
    }
}

/* Elements that one head moves by the formulas of models/io.h: N queries and keys, no mask. */
struct formula {
    enum algorithm algorithm;
    bool tiled_gemm;
    int64_t q, k, v, o_read, o_written; /* elements of a->dtype */
    int64_t s_read, s_written, p_read, p_written;
    int64_t lse, l_read, l_written; /* elements of fp32; m as l */
};

static void check_formula(const struct formula *f, const struct attention *shape)
{
    struct simulation s = {
        .algorithm = f->algorithm, .attention = *shape, .machine = machine_default()};
    s.attention.tiled_gemm = f->tiled_gemm;
    const struct account counted = count(&s);
    const int64_t heads = (int64_t)shape->batch * shape->heads_q;
    const int64_t size = heads * dtype_bytes(shape->dtype), fp32 = 4 * heads;
    const struct {
        const char *name;
        int64_t read, written;
    } expected[] = {
        {"Q", size * f->q, 0},
        {"K", size * f->k, 0},
        {"V", size * f->v, 0},
        {"O", size * f->o_read, size * f->o_written},
        {"S", size * f->s_read, size * f->s_written},
        {"P", size * f->p_read, size * f->p_written},
        {"LSE", 0, fp32 * f->lse},
        {"l", fp32 * f->l_read, fp32 * f->l_written},
        {"m", fp32 * f->l_read, fp32 * f->l_written},
    };
    for (size_t t = 0; t < LENGTH(expected); t++) {
        const int64_t read = bytes_of(&counted, expected[t].name, DIRECTION_READ);
        const int64_t written = bytes_of(&counted, expected[t].name, DIRECTION_WRITE);
        if (read != expected[t].read || written != expected[t].written)
            fail_msg("%s, %s: %s reads %" PRId64 " and writes %" PRId64
                     " bytes, the formula says %" PRId64 " and %" PRId64,
                     algorithm_name(f->algorithm), attention_text(shape), expected[t].name,
                     read, written, expected[t].read, expected[t].written);
    }
}

/* N d and N^2 elements, and how often each moves, for lengths that blocks do and do not
 * divide. */
static void test_formulas_of_the_papers(void **state)
{
    static const struct {
        int64_t N, d, Br, Bc;
    } shapes[] = {{64, 32, 16, 16}, {1024, 64, 64, 64}, {1000, 64, 128, 48}, {333, 40, 7, 350}};
    (void)state;
    for (size_t k = 0; k < LENGTH(shapes); k++) {
        const int64_t N = shapes[k].N, Nd = N * shapes[k].d, NN = N * N;
        const int64_t Tr = (N + shapes[k].Br - 1) / shapes[k].Br;
        const int64_t Tc = (N + shapes[k].Bc - 1) / shapes[k].Bc;
        const struct formula formulas[] = {
            {ALGORITHM_NAIVE, false, N * Nd, N * Nd, N * Nd, 0, Nd, 0, 0, 0, 0, N, 0, 0},
            {ALGORITHM_STANDARD, false, Nd, Nd, Nd, 0, Nd, NN, NN, NN, NN, N, 0, 0},
            {ALGORITHM_STANDARD, true, Tc * Nd, Tr * Nd, Tr * Nd, 0, Nd, 2 * NN, NN, NN, NN, N,
             0, 0},
            {ALGORITHM_FLASH1, false, Tc * Nd, Nd, Nd, (Tc - 1) * Nd, Tc * Nd, 0, 0, 0, 0, 0,
             (Tc - 1) * N, Tc * N},
            {ALGORITHM_FLASH2, false, Nd, Tr * Nd, Tr * Nd, 0, Nd, 0, 0, 0, 0, N, 0, 0},
        };
        const struct attention shape = {
            .batch = 2,
            .heads_q = 3,
            .heads_kv = 3,
            .seqlen_q = (int)N,
            .seqlen_k = (int)N,
            .head_dim = (int)shapes[k].d,
            .head_dim_v = (int)shapes[k].d,
            .scale = 1,
            .dtype = DTYPE_F16,
            .block_q = (int)shapes[k].Br,
            .block_k = (int)shapes[k].Bc,
        };
        for (size_t f = 0; f < LENGTH(formulas); f++)
            check_formula(&formulas[f], &shape);
    }
}

static struct simulation million_tokens(int seqlen, enum mask mask)
{
    return (struct simulation){
        .algorithm = ALGORITHM_FLASH2,
        .attention = {.batch = 1,
                      .heads_q = 1,
                      .heads_kv = 1,
                      .seqlen_q = seqlen,
                      .seqlen_k = seqlen,
                      .head_dim = 128,
                      .head_dim_v = 128,
                      .scale = 0.088388f,
                      .mask = mask,
                      .dtype = DTYPE_F16,
                      .block_q = 128,
                      .block_k = 128},
        .machine = machine_default(),
    };
}

/* 2^20 tokens, d = 128, B = 128, f16, with the numbers worked out by hand: Q and O are 2^28
 * bytes; K and V 2^28 each in every one of the 2^13 passes; causal, tile i of 2^13 makes i + 1
 * visits, each of 2^15 bytes. */
static void test_a_million_tokens(void **state)
{
    const int64_t tensor = INT64_C(1) << 28, passes = 1 << 13;
    (void)state;
    for (enum mask mask = MASK_NONE; mask < MASK_COUNT; mask++) {
        struct simulation s = million_tokens(1 << 20, mask);
        const struct account counted = count(&s);
        const struct account predicted = io_predict(s.algorithm, &s.attention, false);
        assert_same("the prediction and the counts-only run", &s, &predicted, &counted);
        const int64_t k_bytes =
            mask == MASK_NONE ? passes * tensor : passes * (passes + 1) / 2 * (1 << 15);
        assert_true(bytes_of(&counted, "Q", DIRECTION_READ) == tensor);
        assert_true(bytes_of(&counted, "K", DIRECTION_READ) == k_bytes);
        assert_true(bytes_of(&counted, "V", DIRECTION_READ) == k_bytes);
        assert_true(bytes_of(&counted, "O", DIRECTION_WRITE) == tensor);
        assert_true(bytes_of(&counted, "LSE", DIRECTION_WRITE) == 4 << 20);
        const struct traffic total = account_total(&counted);
        assert_true(total.of[DIRECTION_READ].sectors * 32 == total.of[DIRECTION_READ].bytes);
        assert_true(counted.flops.matrix == 2 * 128 * k_bytes);
    }
}

/* Twice the length: K and V four times, Q and O twice, at every step. */
static void test_growth_with_the_length(void **state)
{
    (void)state;
    int64_t q = 0, k = 0;
    for (int seqlen = 1 << 12; seqlen <= 1 << 20; seqlen *= 2) {
        struct simulation s = million_tokens(seqlen, MASK_NONE);
        const struct account counted = count(&s);
        const int64_t q_now = bytes_of(&counted, "Q", DIRECTION_READ);
        const int64_t k_now = bytes_of(&counted, "K", DIRECTION_READ);
        assert_true(q == 0 || (q_now == 2 * q && k_now == 4 * k));
        assert_true(k_now == q_now * (seqlen / 128));
        q = q_now;
        k = k_now;
    }
}

/* account_equal(), on which all of this rests, misses nothing. */
static void test_unequal_accounts_are_refused(void **state)
{
    struct simulation s = million_tokens(1000, MASK_CAUSAL);
    const struct account right = count(&s);
    int refused = 0;
    (void)state;
    assert_true(account_equal(&right, &right));
    for (int t = 0; t < right.tensor_count; t++) {
        for (int k = 0; k < 2 * DIRECTION_COUNT; k++) {
            struct account wrong = right;
            struct amount *amount = &wrong.tensor[t].traffic.of[k / 2];
            *(k % 2 ? &amount->bytes : &amount->sectors) += t % 2 ? 1 : -1;
            assert_false(account_equal(&wrong, &right) || account_equal(&right, &wrong));
            refused++;
        }
        struct account missing = right;
        missing.tensor[t] = missing.tensor[--missing.tensor_count];
        assert_false(account_equal(&missing, &right) || account_equal(&right, &missing));
        struct account renamed = right;
        renamed.tensor[t].name = "X";
        assert_false(account_equal(&renamed, &right) || account_equal(&right, &renamed));
    }
    assert_int_equal(refused, 5 * 2 * DIRECTION_COUNT);
    int64_t flops[][3] = {{1, 0, 0}, {0, -1, 0}, {0, 0, 1}};
    for (size_t k = 0; k < LENGTH(flops); k++) {
        struct account wrong = right;
        wrong.flops.matrix += flops[k][0];
        wrong.flops.other += flops[k][1];
        wrong.flops.exp += flops[k][2];
        assert_false(account_equal(&wrong, &right) || account_equal(&right, &wrong));
    }
    struct account empty_tensor = right;
    account_tensor(&empty_tensor, "S");
    assert_true(account_equal(&empty_tensor, &right) && account_equal(&right, &empty_tensor));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unequal_accounts_are_refused),
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_formulas_of_the_papers),
        cmocka_unit_test(test_a_million_tokens),
        cmocka_unit_test(test_growth_with_the_length),
    };
    /* Most shapes are small: a team of threads costs more than it gains. */
    omp_set_num_threads(1);
    return cmocka_run_group_tests_name("counts", tests, NULL, NULL);
}
