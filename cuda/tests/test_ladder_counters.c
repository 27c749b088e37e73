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
    {1, 1, 1, 8, 64, 128, MASK_NONE},      {1, 1, 1, 384, 8, 64, MASK_CAUSAL},
};

/* What the counters must say: sectors of loads and stores, bytes of the copy engine, and, where
 * the step has wgmma, how many of those, one a warp, and of ldmatrix, for Q only. */
struct expected {
    int64_t load_sectors, store_sectors, tma_load_bytes, tma_store_bytes;
    int64_t least_products, most_products, query_loads;
};

/* What products take from shared memory: single elements, ldmatrix's fragments, or, by wgmma,
 * tiles as they lie. */
enum operands { OPERANDS_PLAIN, OPERANDS_LDMATRIX, OPERANDS_WGMMA };

static enum operands operands_of(enum ladder_step step)
{
    if (step == LADDER_MMA)
        return OPERANDS_PLAIN;
    return strcmp(ladder_name(step), "07") < 0 ? OPERANDS_LDMATRIX : OPERANDS_WGMMA;
}

/* Of warpgroups with 64 queries each, if those of a block share the tiles that its Br queries
 * need. 16 columns of Q, and 16 keys of P, an instruction. */
static int64_t warpgroup_products(const struct attention *a)
{
    enum { ROWS = 64, WARPS = 4, DEPTH = 16 };
    int64_t tiles = 0;
    for (int i = 0; i < attention_tiles_q(a); i++)
        tiles += attention_visited_tiles(a, i);
    return tiles * attention_planes_q(a) * (a->block_q / ROWS) * WARPS *
           (a->head_dim / DEPTH + a->block_k / DEPTH);
}

/* Step 14 reads Qi into registers, where there is room for it: 16 rows and 16 columns at once.
 */
static int64_t query_loads(enum ladder_step step, const struct attention *a)
{
    enum { TILE = 16, QUERIES_HEAD_DIM = 128 };
    if (step < LADDER_QUERIES || a->head_dim != QUERIES_HEAD_DIM)
        return 0;
    return (int64_t)attention_tiles_q(a) * attention_planes_q(a) * (a->block_q / TILE) *
           (a->head_dim / TILE);
}

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
        return (struct expected){.load_sectors = read->sectors,
                                 .store_sectors = write->sectors};
    struct expected want = {.store_sectors = lse.of[DIRECTION_WRITE].sectors,
                            .tma_load_bytes = read->bytes,
                            .tma_store_bytes = write->bytes - lse.of[DIRECTION_WRITE].bytes,
                            .most_products = warpgroup_products(&s.attention),
                            .query_loads = query_loads(run->step, &s.attention)};
    /* A warpgroup may pass over the tiles that its own 64 queries do not need. */
    s.attention.block_q = 64;
    if (run->step >= LADDER_PERSISTENT) /* the last block writes the two words of taken */
        want.store_sectors += 2;
    want.least_products = warpgroup_products(&s.attention);
    return want;
}

/* NULL, or what the counters of a launch say of its passes over the banks of shared memory. An
 * ldmatrix of four matrices takes four if none conflict, a load of 16 bytes a lane too. Steps
 * for Hopper store 4 bytes a lane, and load only what a whole warp is to know; conflicts
 * are not read, as that counter has cycles in it that were lost to the copy engine and to
 * wgmma. */
static const char *conflicting(const double *of, bool hopper)
{
    if (of[COUNTER_MATRIX_LOAD_WAVEFRONTS] != 4 * of[COUNTER_MATRIX_LOAD_INSTRUCTIONS])
        return "bank conflicts of ldmatrix";
    if (hopper ? of[COUNTER_SHARED_LOAD_WAVEFRONTS] > 4 * of[COUNTER_SHARED_LOAD_INSTRUCTIONS]
               : of[COUNTER_SHARED_LOAD_WAVEFRONTS] != 4 * of[COUNTER_SHARED_LOAD_INSTRUCTIONS])
        return "bank conflicts of loads";
    if (hopper ? of[COUNTER_SHARED_STORE_WAVEFRONTS] != of[COUNTER_SHARED_STORE_INSTRUCTIONS]
               : of[COUNTER_SHARED_STORE_CONFLICTS] != 0)
        return "bank conflicts of stores";
    return NULL;
}

/* NULL, or what the counters of a launch say against it. */
static const char *wrong(const double *of, const struct expected *want, enum operands operands)
{
    const double products = of[COUNTER_TENSOR_INSTRUCTIONS] - of[COUNTER_TENSOR_HALF_FMA];
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
    if (products <= 0)
        return "no products of the tensor cores";
    if (operands == OPERANDS_WGMMA &&
        (products < (double)want->least_products || products > (double)want->most_products))
        return "products of warpgroups";
    if (operands == OPERANDS_LDMATRIX
            ? of[COUNTER_MATRIX_LOAD_INSTRUCTIONS] == 0
            : of[COUNTER_MATRIX_LOAD_INSTRUCTIONS] != (double)want->query_loads)
        return "ldmatrix";
    return operands == OPERANDS_PLAIN ? NULL : conflicting(of, want->tma_load_bytes > 0);
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
    print_error("%" PRId64 " load and %" PRId64 " store sectors, %" PRId64 " and %" PRId64
                " bytes of the copy engine, %" PRId64 " to %" PRId64
                " products were simulated; counted:\n",
                want.load_sectors, want.store_sectors, want.tma_load_bytes,
                want.tma_store_bytes, want.least_products, want.most_products);
    for (enum counter c = 0; c < COUNTER_COUNT; c++)
        print_error("  %s %.0f\n", counter_name(c), values.of[c]);
    fail_msg("%s: %d launches, %s", ladder_run_text(run), launches, what ? what : "");
}

static void open_shape(struct ladder_run *run, size_t n, uint64_t *seed)
{
    struct error error;
    *run = (struct ladder_run){.p = {.a = {.batch = shapes[n].batch,
                                           .heads_q = shapes[n].heads_q,
                                           .heads_kv = shapes[n].heads_kv,
                                           .seqlen_q = shapes[n].seqlen_q,
                                           .seqlen_k = shapes[n].seqlen_k,
                                           .head_dim = shapes[n].d,
                                           .head_dim_v = shapes[n].d,
                                           .scale = 1.0f / sqrtf((float)shapes[n].d),
                                           .mask = shapes[n].mask,
                                           .dtype = n % 2 ? DTYPE_F16 : DTYPE_BF16}}};
    problem_fill(&run->p, seed);
    if (ladder_run_open(run, &error))
        fail_msg("%s: %s", ladder_run_text(run), error.text);
}

static void close_shape(struct ladder_run *run)
{
    ladder_run_close(run);
    problem_free(&run->p);
}

static void test_counters(void **state)
{
    struct ladder_run run;
    uint64_t seed = 1;
    for (size_t n = 0; n < LENGTH(shapes); n++) {
        open_shape(&run, n, &seed);
        for (run.step = 0; run.step < LADDER_STEPS; run.step++)
            if (ladder_run_is_possible(run.step))
                test_step(&run, *state);
        close_shape(&run);
    }
}

/* wgmma reads its operands from shared memory without a bank conflict: 128 bytes a pass. */
static const char *const operand_metrics[] = {
    "smsp__sass_data_bytes_mem_shared_op_gmma.sum",
    "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"};
enum { OPERAND_BYTES, OPERAND_WAVEFRONTS, OPERAND_METRICS, WAVEFRONT_BYTES = 128 };

static enum status nothing(void *context, struct error *error)
{
    (void)context;
    (void)error;
    return STATUS_OK;
}

static void test_operands(void **state)
{
    struct ladder_run run;
    uint64_t seed = 2;
    for (size_t n = 0; n < LENGTH(shapes); n++) {
        open_shape(&run, n, &seed);
        for (run.step = 0; run.step < LADDER_STEPS; run.step++) {
            double of[OPERAND_METRICS];
            struct error error;
            if (operands_of(run.step) != OPERANDS_WGMMA || !ladder_run_is_possible(run.step))
                continue;
            if (counters_measure_range(of, *state, nothing, ladder_run_launch, &run, &error))
                fail_msg("%s: %s", ladder_run_text(&run), error.text);
            if (!(of[OPERAND_BYTES] > 0) ||
                of[OPERAND_BYTES] != WAVEFRONT_BYTES * of[OPERAND_WAVEFRONTS])
                fail_msg("%s: %.0f bytes of operands in %.0f passes over the banks",
                         ladder_run_text(&run), of[OPERAND_BYTES], of[OPERAND_WAVEFRONTS]);
        }
        close_shape(&run);
    }
}

/* good is what want says. One sector, byte, product or pass more or less does not pass. */
static void assert_strict(const double *good, const struct expected *want,
                          enum operands operands, const enum counter *exact, size_t count)
{
    assert_null(wrong(good, want, operands));
    for (size_t i = 0; i < count; i++)
        for (int change = -1; change <= 1; change += 2) {
            double other[COUNTER_COUNT];
            memcpy(other, good, sizeof other);
            other[exact[i]] += change;
            assert_non_null(wrong(other, want, operands));
        }
}

static void test_the_judge(void **state)
{
    static const enum counter exact_ldmatrix[] = {
        COUNTER_LOAD_SECTORS,           COUNTER_STORE_SECTORS,
        COUNTER_REDUCE_SECTORS,         COUNTER_MATRIX_LOAD_WAVEFRONTS,
        COUNTER_SHARED_LOAD_WAVEFRONTS, COUNTER_SHARED_STORE_CONFLICTS};
    static const enum counter exact_wgmma[] = {COUNTER_LOAD_SECTORS,
                                               COUNTER_STORE_SECTORS,
                                               COUNTER_TMA_LOAD_BYTES,
                                               COUNTER_TMA_STORE_BYTES,
                                               COUNTER_REDUCE_SECTORS,
                                               COUNTER_TENSOR_INSTRUCTIONS,
                                               COUNTER_SHARED_STORE_WAVEFRONTS,
                                               COUNTER_MATRIX_LOAD_INSTRUCTIONS};
    static const double ldmatrix[COUNTER_COUNT] = {
        [COUNTER_LOAD_SECTORS] = 10,           [COUNTER_STORE_SECTORS] = 5,
        [COUNTER_TENSOR_INSTRUCTIONS] = 7,     [COUNTER_MATRIX_LOAD_INSTRUCTIONS] = 3,
        [COUNTER_MATRIX_LOAD_WAVEFRONTS] = 12, [COUNTER_SHARED_LOAD_INSTRUCTIONS] = 2,
        [COUNTER_SHARED_LOAD_WAVEFRONTS] = 8};
    static const double wgmma[COUNTER_COUNT] = {[COUNTER_STORE_SECTORS] = 5,
                                                [COUNTER_TMA_LOAD_BYTES] = 4096,
                                                [COUNTER_TMA_STORE_BYTES] = 1024,
                                                [COUNTER_TENSOR_INSTRUCTIONS] = 48,
                                                [COUNTER_SHARED_LOAD_INSTRUCTIONS] = 2,
                                                [COUNTER_SHARED_LOAD_WAVEFRONTS] = 2,
                                                [COUNTER_SHARED_STORE_INSTRUCTIONS] = 9,
                                                [COUNTER_SHARED_STORE_WAVEFRONTS] = 9,
                                                [COUNTER_SHARED_STORE_CONFLICTS] = 3};
    (void)state;
    const struct expected sectors = {.load_sectors = 10, .store_sectors = 5};
    const struct expected boxes = {0, 5, 4096, 1024, 48, 48, 0};
    assert_strict(ldmatrix, &sectors, OPERANDS_LDMATRIX, exact_ldmatrix,
                  LENGTH(exact_ldmatrix));
    assert_strict(wgmma, &boxes, OPERANDS_WGMMA, exact_wgmma, LENGTH(exact_wgmma));
    double queries[COUNTER_COUNT];
    memcpy(queries, wgmma, sizeof queries);
    queries[COUNTER_MATRIX_LOAD_INSTRUCTIONS] = 8;
    queries[COUNTER_MATRIX_LOAD_WAVEFRONTS] = 32;
    const struct expected read = {0, 5, 4096, 1024, 48, 48, 8};
    assert_strict(queries, &read, OPERANDS_WGMMA, exact_wgmma, LENGTH(exact_wgmma));
    assert_non_null(wrong(ldmatrix, &sectors, OPERANDS_PLAIN));
    assert_non_null(wrong(wgmma, &boxes, OPERANDS_LDMATRIX));
}

static struct counters *session;

static int open_counters(void **state)
{
    struct error error;
    if (counters_open(&session, &error)) {
        print_error("%s\n", error.text);
        return -1;
    }
    *state = session;
    return 0;
}

static int open_operand_counters(void **state)
{
    struct error error;
    *state = session = NULL;
    if (!ladder_run_is_possible(LADDER_OVERLAP))
        return 0;
    if (counters_open_metrics(&session, operand_metrics, OPERAND_METRICS, &error)) {
        print_error("%s\n", error.text);
        return -1;
    }
    *state = session;
    return 0;
}

static int close_counters(void **state)
{
    counters_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge),
        cmocka_unit_test_setup_teardown(test_counters, open_counters, close_counters),
        cmocka_unit_test_setup_teardown(test_operands, open_operand_counters, close_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
