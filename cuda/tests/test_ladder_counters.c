/* What the ladder's steps move, by the hardware's counters: global sectors equal to those of
 * the simulated FlashAttention-2 on the step's tiles, nothing by the copy engine, and no bank
 * conflicts from step 02 on. There is no tolerance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>

#include "cuda/counters.h"
#include "kernels/attention_forward.h"
#include "ladder_run.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Rows of LSE begin at a sector's first byte: lengths are multiples of 8. */
static const struct {
    int batch, heads_q, heads_kv, seqlen_q, seqlen_k, d;
    enum mask mask;
} shapes[] = {
    {1, 2, 2, 256, 256, 64, MASK_NONE},    {2, 2, 2, 256, 256, 128, MASK_CAUSAL},
    {1, 4, 2, 200, 328, 128, MASK_CAUSAL}, {1, 2, 2, 264, 136, 64, MASK_CAUSAL},
    {1, 1, 1, 136, 200, 256, MASK_NONE},   {1, 2, 1, 512, 512, 256, MASK_CAUSAL},
};

/* One launch on the memory of an ideal GPU; the tiles are the step's. */
static struct traffic simulated(const struct ladder_run *run)
{
    struct simulation s = {
        .algorithm = ALGORITHM_FLASH2, .attention = run->p.a, .machine = machine_default()};
    struct error error;
    ladder_tile(&s.attention.block_q, &s.attention.block_k, run->step, run->p.a.head_dim);
    if (attention_count(&s, &error))
        fail_msg("%s: %s", ladder_run_text(run), error.text);
    const struct account account = gpu_account(&s.gpu);
    return account_total(&account);
}

/* NULL, or what the counters of a launch say against it. An ldmatrix of four matrices takes
 * four passes over the banks if none conflict. */
static const char *wrong(const double *of, const struct traffic *want, bool swizzled)
{
    if (of[COUNTER_LOAD_SECTORS] != (double)want->of[DIRECTION_READ].sectors)
        return "load sectors";
    if (of[COUNTER_STORE_SECTORS] != (double)want->of[DIRECTION_WRITE].sectors)
        return "store sectors";
    if (of[COUNTER_REDUCE_SECTORS] != 0)
        return "sectors of reductions";
    if (of[COUNTER_TMA_LOAD_BYTES] > 0 || of[COUNTER_TMA_STORE_BYTES] > 0)
        return "bytes of the copy engine";
    if (of[COUNTER_TENSOR_INSTRUCTIONS] <= of[COUNTER_TENSOR_HALF_FMA])
        return "no products of the tensor cores";
    if (swizzled != (of[COUNTER_MATRIX_LOAD_INSTRUCTIONS] > 0))
        return "ldmatrix";
    if (swizzled &&
        of[COUNTER_MATRIX_LOAD_WAVEFRONTS] != 4 * of[COUNTER_MATRIX_LOAD_INSTRUCTIONS])
        return "bank conflicts of ldmatrix";
    if (swizzled &&
        of[COUNTER_SHARED_LOAD_WAVEFRONTS] != 4 * of[COUNTER_SHARED_LOAD_INSTRUCTIONS])
        return "bank conflicts of loads";
    if (swizzled && of[COUNTER_SHARED_STORE_CONFLICTS] != 0)
        return "bank conflicts of stores";
    return NULL;
}

static void test_step(struct ladder_run *run, struct counters *counters)
{
    struct counter_values values;
    struct error error;
    int launches = 0;
    if (counters_measure(&values, 1, &launches, counters, ladder_run_launch, run, &error))
        fail_msg("%s: %s", ladder_run_text(run), error.text);
    const struct traffic want = simulated(run);
    const char *what = wrong(values.of, &want, run->step != LADDER_MMA);
    if (launches != 1 || what)
        fail_msg("%s: %s: %d launches, %.0f load and %.0f store sectors where %" PRId64
                 " and %" PRId64
                 " were simulated, %.0f ldmatrix in %.0f passes, %.0f loads in %.0f, "
                 "%.0f conflicts of stores",
                 ladder_run_text(run), what ? what : "launches", launches,
                 values.of[COUNTER_LOAD_SECTORS], values.of[COUNTER_STORE_SECTORS],
                 want.of[DIRECTION_READ].sectors, want.of[DIRECTION_WRITE].sectors,
                 values.of[COUNTER_MATRIX_LOAD_INSTRUCTIONS],
                 values.of[COUNTER_MATRIX_LOAD_WAVEFRONTS],
                 values.of[COUNTER_SHARED_LOAD_INSTRUCTIONS],
                 values.of[COUNTER_SHARED_LOAD_WAVEFRONTS],
                 values.of[COUNTER_SHARED_STORE_CONFLICTS]);
}

static void test_counters(void **state)
{
    uint64_t seed = 1;
    for (size_t n = 0; n < LENGTH(shapes); n++) {
        struct ladder_run run = {.p = {.a = {.batch = shapes[n].batch,
                                             .heads_q = shapes[n].heads_q,
                                             .heads_kv = shapes[n].heads_kv,
                                             .seqlen_q = shapes[n].seqlen_q,
                                             .seqlen_k = shapes[n].seqlen_k,
                                             .head_dim = shapes[n].d,
                                             .head_dim_v = shapes[n].d,
                                             .scale = 1.0f / sqrtf((float)shapes[n].d),
                                             .mask = shapes[n].mask,
                                             .dtype = n % 2 ? DTYPE_F16 : DTYPE_BF16}}};
        struct error error;
        problem_fill(&run.p, &seed);
        if (ladder_run_open(&run, &error))
            fail_msg("%s: %s", ladder_run_text(&run), error.text);
        for (run.step = 0; run.step < LADDER_STEPS; run.step++)
            test_step(&run, *state);
        ladder_run_close(&run);
        problem_free(&run.p);
    }
}

/* The judge of this file: one sector or one pass more or less does not pass. */
static void test_the_judge(void **state)
{
    const struct traffic want = {
        {[DIRECTION_READ] = {.sectors = 10}, [DIRECTION_WRITE] = {.sectors = 5}}};
    const double good[COUNTER_COUNT] = {
        [COUNTER_LOAD_SECTORS] = 10,           [COUNTER_STORE_SECTORS] = 5,
        [COUNTER_TENSOR_INSTRUCTIONS] = 7,     [COUNTER_MATRIX_LOAD_INSTRUCTIONS] = 3,
        [COUNTER_MATRIX_LOAD_WAVEFRONTS] = 12, [COUNTER_SHARED_LOAD_INSTRUCTIONS] = 2,
        [COUNTER_SHARED_LOAD_WAVEFRONTS] = 8};
    static const enum counter exact[] = {
        COUNTER_LOAD_SECTORS,           COUNTER_STORE_SECTORS,
        COUNTER_REDUCE_SECTORS,         COUNTER_MATRIX_LOAD_WAVEFRONTS,
        COUNTER_SHARED_LOAD_WAVEFRONTS, COUNTER_SHARED_STORE_CONFLICTS};
    (void)state;
    assert_null(wrong(good, &want, true));
    assert_non_null(wrong(good, &want, false));
    for (size_t i = 0; i < LENGTH(exact); i++)
        for (int change = -1; change <= 1; change += 2) {
            double other[COUNTER_COUNT];
            for (int c = 0; c < COUNTER_COUNT; c++)
                other[c] = good[c];
            other[exact[i]] += change;
            assert_non_null(wrong(other, &want, true));
        }
}

static int open_session(void **state)
{
    static struct counters *counters;
    struct error error;
    if (counters_open(&counters, &error)) {
        print_error("%s\n", error.text);
        return -1;
    }
    *state = counters;
    return 0;
}

static int close_session(void **state)
{
    counters_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_judge),
                                       cmocka_unit_test(test_counters)};
    return cmocka_run_group_tests(tests, open_session, close_session);
}
