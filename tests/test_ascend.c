/* Forward attention on a simulated Ascend 910B: results and counts. Its buffers and the ways
 * between them: test_ai_core.c.
 *
 * Protects: O and LSE against float64, over random problems, with S in f32 and in the inputs'
 * dtype, through GM and directly; that every way's and tensor's bytes, and the FLOPs, equal the
 * closed form and numbers written by hand; that neither depends on the number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>

#include "common/core_fixture.h"
#include "common/tolerance.h"
#include "kernels/ascend_forward.h"
#include "models/io.h"
#include "models/io_ascend.h"

/* How a problem is run: S's dtype in GM is F32, or that of the problem. */
struct way {
    const char *name;
    bool direct, narrow_scores;
};

static const struct way ways[] = {
    {"S in f32", false, false},
    {"S in the inputs' dtype", false, true},
    {"direct", true, false},
};

/* What the results are judged like: standard attention rounds S as it writes it to memory. */
static struct variant judged_as(const struct way *way)
{
    return (struct variant){way->name,
                            way->narrow_scores ? ALGORITHM_STANDARD : ALGORITHM_FLASH2, false};
}

static struct ascend chip_of(const struct way *way)
{
    struct ascend chip = ascend_910b2;
    chip.direct = way->direct;
    return chip;
}

static struct ascend_run run_of(const struct attention *a, const struct way *way,
                                const struct ascend *chip)
{
    return (struct ascend_run){.attention = *a,
                               .chip = chip,
                               .scores_dtype = way->narrow_scores ? a->dtype : DTYPE_F32};
}

static void simulate(struct answer *answer, struct ascend_run *run, const struct problem *p)
{
    struct error error;
    answer->o = allocate(count_o(&p->a), sizeof *answer->o);
    answer->lse = allocate(count_lse(&p->a), sizeof *answer->lse);
    if (ascend_simulate(run, p->q, p->k, p->v, answer->o, answer->lse, &error))
        fail_msg("%s: %s", attention_text(&p->a), error.text);
}

/* Shows where they differ, and fails, unless they are equal. */
static void assert_same(const char *what, const struct attention *a, const struct io_ascend *x,
                        const struct io_ascend *y)
{
    if (io_ascend_equal(x, y))
        return;
    for (int path = 0; path < PATH_COUNT; path++)
        print_error("%s: %" PRId64 " and %" PRId64 "\n", path_name((enum path)path),
                    x->path_bytes[path], y->path_bytes[path]);
    print_error("FLOPs: %" PRId64 " %" PRId64 " %" PRId64 " and %" PRId64 " %" PRId64
                " %" PRId64 "\n",
                x->account.flops.matrix, x->account.flops.other, x->account.flops.exp,
                y->account.flops.matrix, y->account.flops.other, y->account.flops.exp);
    fail_msg("%s: %s differ", attention_text(a), what);
}

/* The prediction, the run with data and the run that only counts. */
static void check_counts(const struct ascend_run *with_data)
{
    struct ascend_run counts = *with_data;
    struct error error;
    if (ascend_count(&counts, &error))
        fail_msg("%s", error.text);
    const struct attention *a = &with_data->attention;
    const struct io_ascend predicted =
        io_ascend_predict(a, with_data->scores_dtype, with_data->chip->direct);
    const struct io_ascend simulated = io_ascend_of_launch(&with_data->gpu.launches[0]);
    const struct io_ascend counted = io_ascend_of_launch(&counts.gpu.launches[0]);
    assert_same("prediction and simulation", a, &predicted, &simulated);
    assert_same("prediction and counts-only run", a, &predicted, &counted);
}

static void check_problem(const struct problem *p)
{
    struct truth truth;
    struct yardsticks yardsticks;
    reference_attention(&truth, p, (double)p->a.scale);
    yardsticks_make(&yardsticks, p);
    for (size_t w = 0; w < LENGTH(ways); w++) {
        const struct ascend chip = chip_of(&ways[w]);
        const struct variant variant = judged_as(&ways[w]);
        struct ascend_run run = run_of(&p->a, &ways[w], &chip);
        struct answer answer;
        simulate(&answer, &run, p);
        assert_right(&p->a, &variant, &answer, &yardsticks, &truth);
        check_counts(&run);
        answer_free(&answer);
    }
    yardsticks_free(&yardsticks);
    truth_free(&truth);
}

static void test_random_problems(void **state)
{
    uint64_t seed = 27182;
    (void)state;
    for (int n = 0; n < 200; n++) {
        struct problem p = {.a = random_attention(&seed, 48, 32)};
        problem_fill(&p, &seed);
        check_problem(&p);
        problem_free(&p);
    }
}

/* More Q tiles than AI cores, and K/V tiles enough for counts-only mode to multiply. */
static void test_counts_of_long_problems(void **state)
{
    uint64_t seed = 161803;
    (void)state;
    for (int n = 0; n < 12; n++) {
        struct problem p = {.a = random_attention(&seed, 40, 16)};
        const struct ascend chip = chip_of(&ways[n % 3]);
        p.a.seqlen_q = random_between(&seed, 100, 600);
        p.a.seqlen_k = random_between(&seed, 100, 600);
        p.a.block_q = random_between(&seed, 3, 20);
        p.a.block_k = random_between(&seed, 1, 6);
        problem_fill(&p, &seed);
        struct ascend_run run = run_of(&p.a, &ways[n % 3], &chip);
        struct answer answer;
        simulate(&answer, &run, &p);
        check_counts(&run);
        answer_free(&answer);
        problem_free(&p);
    }
}

/* 5 queries, 7 keys, d = 4, dv = 3, tiles of 2 x 3, f16: three tiles by three. */
static struct attention small(enum mask mask)
{
    return (struct attention){.batch = 1,
                              .heads_q = 1,
                              .heads_kv = 1,
                              .seqlen_q = 5,
                              .seqlen_k = 7,
                              .head_dim = 4,
                              .head_dim_v = 3,
                              .scale = 0.5f,
                              .mask = mask,
                              .dtype = DTYPE_F16,
                              .block_q = 2,
                              .block_k = 3};
}

static struct io_ascend counted(const struct attention *a, const struct way *way)
{
    const struct ascend chip = chip_of(way);
    struct ascend_run run = run_of(a, way, &chip);
    struct error error;
    if (ascend_count(&run, &error))
        fail_msg("%s", error.text);
    return io_ascend_of_launch(&run.gpu.launches[0]);
}

/* Counted with pencil and paper. Causal: the rows see 3, 4, 5, 6 and 7 keys, the Q tiles visit
 * 2, 2 and 3 tiles: 31 scores, 19 rows of K, 11 rows of Q times tiles. */
static void test_bytes_by_hand(void **state)
{
    static const struct {
        enum mask mask;
        struct way way;
        int64_t path_bytes[PATH_COUNT], S, P, Oij; /* of the tensors: each way */
    } rows[] = {
        {MASK_NONE, {"", false, false}, {404, 320, 190, 294, 320, 120, 0, 0}, 140, 70, 180},
        {MASK_NONE, {"", false, true}, {404, 250, 190, 294, 250, 120, 0, 0}, 70, 70, 180},
        {MASK_NONE, {"", true, false}, {334, 0, 190, 294, 0, 50, 320, 70}, 0, 0, 0},
        {MASK_CAUSAL, {"", false, false}, {368, 256, 150, 266, 256, 112, 0, 0}, 124, 62, 132},
    };
    (void)state;
    for (size_t r = 0; r < LENGTH(rows); r++) {
        const struct attention a = small(rows[r].mask);
        struct io_ascend io = counted(&a, &rows[r].way);
        const int64_t tensors[] = {rows[r].S, rows[r].P, rows[r].Oij};
        static const char *const names[] = {"S", "P", "Oij"};
        for (int path = 0; path < PATH_COUNT; path++)
            assert_int_equal(io.path_bytes[path], rows[r].path_bytes[path]);
        for (size_t t = 0; t < LENGTH(names); t++) {
            const struct traffic *traffic = account_tensor(&io.account, names[t]);
            assert_int_equal(traffic->of[DIRECTION_READ].bytes, tensors[t]);
            assert_int_equal(traffic->of[DIRECTION_WRITE].bytes, tensors[t]);
        }
    }
}

/* What the two machines have in common is equal: Q, K, V, O and LSE, and the matrix FLOPs. */
static void test_same_inputs_as_a_gpu(void **state)
{
    uint64_t seed = 577;
    (void)state;
    for (int n = 0; n < 100; n++) {
        const struct attention a = random_attention(&seed, 90, 32);
        struct account gpu = io_predict(ALGORITHM_FLASH2, &a, false);
        struct io_ascend ascend = counted(&a, &ways[n % 3]);
        static const char *const names[] = {"Q", "K", "V", "O", "LSE"};
        for (size_t t = 0; t < LENGTH(names); t++)
            for (int k = 0; k < DIRECTION_COUNT; k++)
                assert_int_equal(account_tensor(&gpu, names[t])->of[k].bytes,
                                 account_tensor(&ascend.account, names[t])->of[k].bytes);
        assert_int_equal(gpu.flops.matrix, ascend.account.flops.matrix);
        assert_int_equal(gpu.flops.exp, ascend.account.flops.exp);
    }
}

/* Neither the result nor a count depends on the number of threads. */
static void test_threads(void **state)
{
    uint64_t seed = 7;
    struct problem p = {.a = random_attention(&seed, 48, 32)};
    (void)state;
    p.a.seqlen_q = 301;
    p.a.block_q = 5;
    problem_fill(&p, &seed);
    struct ascend_run one = run_of(&p.a, &ways[0], &ascend_910b2), many = one;
    struct answer first, second;
    simulate(&first, &one, &p);
    omp_set_num_threads(7);
    simulate(&second, &many, &p);
    omp_set_num_threads(1);
    assert_memory_equal(first.o, second.o, count_o(&p.a) * sizeof *first.o);
    assert_memory_equal(first.lse, second.lse, count_lse(&p.a) * sizeof *first.lse);
    assert_memory_equal(one.gpu.launches[0].path_bytes, many.gpu.launches[0].path_bytes,
                        sizeof one.gpu.launches[0].path_bytes);
    answer_free(&first);
    answer_free(&second);
    problem_free(&p);
}

/* 4 TiB of S, each way, in a moment: counts-only mode multiplies. */
static void test_a_million_tokens(void **state)
{
    struct attention a = small(MASK_NONE);
    (void)state;
    a.seqlen_q = a.seqlen_k = 1 << 20;
    a.head_dim = a.head_dim_v = 128;
    a.block_q = a.block_k = 128;
    struct io_ascend io = counted(&a, &ways[0]);
    const struct io_ascend predicted = io_ascend_predict(&a, DTYPE_F32, false);
    assert_same("prediction and counts-only run", &a, &predicted, &io);
    assert_int_equal(account_tensor(&io.account, "S")->of[DIRECTION_READ].bytes, INT64_C(1)
                                                                                     << 42);
}

static void test_refused_arguments(void **state)
{
    struct attention a = small(MASK_NONE);
    struct ascend_run run = run_of(&a, &ways[0], &ascend_910b2);
    struct error error;
    (void)state;
    run.scores_dtype = DTYPE_BF16;
    assert_int_equal(ascend_count(&run, &error), STATUS_BAD_ARGUMENT);
    assert_string_equal(error.text, "S in bf16: must be f32 or the dtype of Q, K and V, f16");
    run.scores_dtype = DTYPE_F16;
    run.attention.heads_q = 3;
    run.attention.heads_kv = 2;
    assert_int_equal(ascend_count(&run, &error), STATUS_BAD_ARGUMENT);
    assert_int_equal(run.gpu.launch_count, 0);
}

/* The comparison itself: one byte or one FLOP more is found. */
static void test_unequal_counts_are_found(void **state)
{
    const struct attention a = small(MASK_NONE);
    const struct io_ascend right = io_ascend_predict(&a, DTYPE_F32, false);
    (void)state;
    assert_true(io_ascend_equal(&right, &right));
    for (int path = 0; path < PATH_COUNT; path++) {
        struct io_ascend wrong = right;
        wrong.path_bytes[path]++;
        assert_false(io_ascend_equal(&right, &wrong));
    }
    struct io_ascend wrong = right;
    account_tensor(&wrong.account, "S")->of[DIRECTION_READ].bytes--;
    assert_false(io_ascend_equal(&right, &wrong));
    wrong = right;
    wrong.account.flops.other++;
    assert_false(io_ascend_equal(&right, &wrong));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unequal_counts_are_found),
        cmocka_unit_test(test_bytes_by_hand),
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_counts_of_long_problems),
        cmocka_unit_test(test_same_inputs_as_a_gpu),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_a_million_tokens),
        cmocka_unit_test(test_refused_arguments),
    };
    /* Most problems are small: a team of threads costs more than it gains. */
    omp_set_num_threads(1);
    return cmocka_run_group_tests_name("ascend", tests, NULL, NULL);
}
