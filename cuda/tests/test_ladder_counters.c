/* What the ladder's steps move and multiply, by the hardware's counters, without a tolerance.
 *
 * Traffic equals that of the simulated FlashAttention-2 on the step's tiles: sectors of global
 * loads and stores, nothing by the copy engine; in the steps for Hopper bytes of the copy
 * engine, whole boxes on the way in, and sectors only of LSE. No bank conflicts from step 02
 * on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

/* What the counters must say: sectors of loads and stores, bytes of the copy engine. */
struct expected {
    int64_t load_sectors, store_sectors, tma_load_bytes, tma_store_bytes;
};

/* One launch on the memory of an ideal GPU; the tiles are the step's. */
static struct expected simulated(const struct ladder_run *run)
{
    struct simulation s = {.algorithm = ALGORITHM_FLASH2,
                           .attention = run->p.a,
                           .machine = machine_default(),
                           .tma = ladder_needs_hopper(run->step)};
    struct error error;
    ladder_tile(&s.attention.block_q, &s.attention.block_k, run->step, run->p.a.head_dim);
    if (attention_count(&s, &error))
        fail_msg("%s: %s", ladder_run_text(run), error.text);
    struct account account = gpu_account(&s.gpu);
    const struct traffic lse = *account_tensor(&account, "LSE"), all = account_total(&account);
    const struct amount *read = &all.of[DIRECTION_READ], *write = &all.of[DIRECTION_WRITE];
    if (!s.tma)
        return (struct expected){read->sectors, write->sectors, 0, 0};
    return (struct expected){0, lse.of[DIRECTION_WRITE].sectors, read->bytes,
                             write->bytes - lse.of[DIRECTION_WRITE].bytes};
}

/* What products take from shared memory: single elements, ldmatrix's fragments, or, by wgmma,
 * tiles as they lie. */
enum operands { OPERANDS_PLAIN, OPERANDS_LDMATRIX, OPERANDS_WGMMA };

static enum operands operands_of(enum ladder_step step)
{
    return step == LADDER_MMA                    ? OPERANDS_PLAIN
           : strcmp(ladder_name(step), "07") < 0 ? OPERANDS_LDMATRIX
                                                 : OPERANDS_WGMMA;
}

/* NULL, or what the counters of a launch say against it. An ldmatrix of four matrices takes
 * four passes over the banks if none conflict, a load of 16 bytes a lane too. */
static const char *wrong(const double *of, const struct expected *want, enum operands operands)
{
    if (of[COUNTER_LOAD_SECTORS] != (double)want->load_sectors)
        return "load sectors";
    if (of[COUNTER_STORE_SECTORS] != (double)want->store_sectors)
        return "store sectors";
    if (of[COUNTER_REDUCE_SECTORS] != 0)
        return "sectors of reductions";
    /* Other GPUs have no such counter: -1. */
    if (fmax(of[COUNTER_TMA_LOAD_BYTES], 0) != (double)want->tma_load_bytes)
        return "bytes loaded by the copy engine";
    if (fmax(of[COUNTER_TMA_STORE_BYTES], 0) != (double)want->tma_store_bytes)
        return "bytes stored by the copy engine";
    if (of[COUNTER_TENSOR_INSTRUCTIONS] <= of[COUNTER_TENSOR_HALF_FMA])
        return "no products of the tensor cores";
    if ((of[COUNTER_MATRIX_LOAD_INSTRUCTIONS] > 0) != (operands == OPERANDS_LDMATRIX))
        return "ldmatrix";
    if (operands == OPERANDS_PLAIN)
        return NULL;
    if (of[COUNTER_MATRIX_LOAD_WAVEFRONTS] != 4 * of[COUNTER_MATRIX_LOAD_INSTRUCTIONS])
        return "bank conflicts of ldmatrix";
    if (of[COUNTER_SHARED_LOAD_WAVEFRONTS] != 4 * of[COUNTER_SHARED_LOAD_INSTRUCTIONS])
        return "bank conflicts of loads";
    if (of[COUNTER_SHARED_STORE_CONFLICTS] != 0)
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
    const struct expected want = simulated(run);
    const char *what = wrong(values.of, &want, operands_of(run->step));
    if (launches == 1 && !what)
        return;
    print_error("simulated: load sectors %" PRId64 ", store sectors %" PRId64
                ", bytes of the copy engine %" PRId64 " and %" PRId64 "; counted:\n",
                want.load_sectors, want.store_sectors, want.tma_load_bytes,
                want.tma_store_bytes);
    for (enum counter c = 0; c < COUNTER_COUNT; c++)
        print_error("  %s %.0f\n", counter_name(c), values.of[c]);
    fail_msg("%s: %d launches, %s", ladder_run_text(run), launches, what ? what : "");
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
            if (ladder_run_is_possible(run.step))
                test_step(&run, *state);
        ladder_run_close(&run);
        problem_free(&run.p);
    }
}

/* The judge of this file: one sector or one pass more or less does not pass. */
static void test_the_judge(void **state)
{
    const struct expected want = {10, 5, 4096, 1024};
    const double good[COUNTER_COUNT] = {
        [COUNTER_LOAD_SECTORS] = 10,           [COUNTER_STORE_SECTORS] = 5,
        [COUNTER_TMA_LOAD_BYTES] = 4096,       [COUNTER_TMA_STORE_BYTES] = 1024,
        [COUNTER_TENSOR_INSTRUCTIONS] = 7,     [COUNTER_MATRIX_LOAD_INSTRUCTIONS] = 3,
        [COUNTER_MATRIX_LOAD_WAVEFRONTS] = 12, [COUNTER_SHARED_LOAD_INSTRUCTIONS] = 2,
        [COUNTER_SHARED_LOAD_WAVEFRONTS] = 8};
    static const enum counter exact[] = {
        COUNTER_LOAD_SECTORS,           COUNTER_STORE_SECTORS,
        COUNTER_REDUCE_SECTORS,         COUNTER_TMA_LOAD_BYTES,
        COUNTER_TMA_STORE_BYTES,        COUNTER_MATRIX_LOAD_WAVEFRONTS,
        COUNTER_SHARED_LOAD_WAVEFRONTS, COUNTER_SHARED_STORE_CONFLICTS};
    (void)state;
    assert_null(wrong(good, &want, OPERANDS_LDMATRIX));
    assert_non_null(wrong(good, &want, OPERANDS_PLAIN));
    assert_non_null(wrong(good, &want, OPERANDS_WGMMA));
    for (size_t i = 0; i < LENGTH(exact); i++)
        for (int change = -1; change <= 1; change += 2) {
            double other[COUNTER_COUNT];
            for (int c = 0; c < COUNTER_COUNT; c++)
                other[c] = good[c];
            other[exact[i]] += change;
            assert_non_null(wrong(other, &want, OPERANDS_LDMATRIX));
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
