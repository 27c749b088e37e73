/* Step records of the GPU against those of the simulator: the same records in the same order.
 *
 * Kernel, block, tiles, step, bytes so far and rows are equal; m, l and the norms of O are
 * near: both sides compute in float, in different orders. Every algorithm has rows with m and l
 * and rows with a norm of O.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/problem.h"
#include "core/step_log.h"
#include "cuda/observe.h"
#include "shapes.h"

enum { MOST_ROWS = 200 }; /* longer problems have too many records */

/* Equal infinities are near, and two NaN: neither side knows the value. */
static bool near(float x, float y)
{
    const double difference = fabs((double)x - (double)y);
    return x == y || (isnan(x) && isnan(y)) ||
           (isfinite(y) && difference <= 1e-5 * (1 + fabs((double)y)));
}

/* True if they differ; text (256 bytes) says where. */
static bool rows_differ(const struct step_record *gpu, const struct step_record *sim,
                        char *text)
{
    const struct {
        const char *name;
        const float *gpu, *sim;
    } values[] = {{"m", gpu->m, sim->m},
                  {"l", gpu->l, sim->l},
                  {"the norm of O", gpu->o_norm, sim->o_norm}};
    for (int r = 0; r < sim->rows; r++) {
        for (int k = 0; k < 3; k++) {
            if (!near(values[k].gpu[r], values[k].sim[r])) {
                snprintf(text, 256, "%s of row %d: %.9g on the GPU, %.9g simulated",
                         values[k].name, r, (double)values[k].gpu[r], (double)values[k].sim[r]);
                return true;
            }
        }
    }
    return false;
}

static void step_text(char *text, const struct step_record *record)
{
    snprintf(text, 192,
             "%s block %d,%d,%d i %d j %d \"%s\" read %" PRId64 " written %" PRId64
             " reduced %" PRId64 " rows %d",
             record->kernel, record->block[0], record->block[1], record->block[2], record->i,
             record->j, record->step, record->read_bytes, record->written_bytes,
             record->reduced_bytes, record->rows);
}

/* True if they differ; text (512 bytes) says where. */
static bool records_differ(const struct step_record *gpu, const struct step_record *sim,
                           char *text)
{
    char on_gpu[192], simulated[192], rows[256];
    step_text(on_gpu, gpu);
    step_text(simulated, sim);
    if (strcmp(on_gpu, simulated) != 0) {
        snprintf(text, 512, "%s on the GPU, %s simulated", on_gpu, simulated);
        return true;
    }
    if (rows_differ(gpu, sim, rows)) {
        snprintf(text, 512, "%s: %s", simulated, rows);
        return true;
    }
    return false;
}

/* True if they differ; text (512 bytes) says where first. */
static bool logs_differ(const struct step_log *gpu, const struct step_log *sim, char *text)
{
    for (int64_t n = 0; n < gpu->count && n < sim->count; n++)
        if (records_differ(&gpu->records[n], &sim->records[n], text))
            return true;
    snprintf(text, 512, "%" PRId64 " records on the GPU, %" PRId64 " simulated", gpu->count,
             sim->count);
    return gpu->count != sim->count;
}

/* A problem, run on both sides. */
struct twins {
    struct problem p;
    struct observation seen;
    struct simulation s;
    struct step_log log;
    struct trace trace;
    float *o, *lse;
};

static void run_twins(struct twins *x, const struct run *run, bool counters)
{
    const enum algorithm algorithm = kernel_algorithm(run->kernel);
    struct error error;
    uint64_t seed = 7;
    *x = (struct twins){.p.a = run->a};
    x->p.a.dtype = DTYPE_F32;
    x->p.a.tiled_gemm = algorithm == ALGORITHM_STANDARD;
    problem_fill(&x->p, &seed);
    const struct observe_request request = {.algorithm = algorithm,
                                            .attention = x->p.a,
                                            .q = x->p.q,
                                            .k = x->p.k,
                                            .v = x->p.v,
                                            .counters = counters,
                                            .steps = true};
    if (gpu_observe(&x->seen, &request, &error))
        fail_msg("%s: %s", run_text(run), error.text);
    x->o = allocate(count_o(&x->p.a), sizeof *x->o);
    x->lse = allocate(count_lse(&x->p.a), sizeof *x->lse);
    x->trace = (struct trace){step_log_add, &x->log};
    x->s = (struct simulation){.algorithm = algorithm,
                               .attention = x->p.a,
                               .machine = machine_default(),
                               .trace = &x->trace};
    if (attention_simulate(&x->s, x->p.q, x->p.k, x->p.v, x->o, x->lse, &error))
        fail_msg("%s: %s", run_text(run), error.text);
}

static void free_twins(struct twins *x)
{
    observation_free(&x->seen);
    step_log_free(&x->log);
    problem_free(&x->p);
    free(x->o);
    free(x->lse);
}

/* Rows in which the GPU knew m and l, and those in which it knew the norm of O. */
struct known {
    int64_t statistics, norms;
};

static void count_known(struct known *known, const struct step_log *log)
{
    for (int64_t n = 0; n < log->count; n++) {
        const struct step_record *record = &log->records[n];
        for (int r = 0; r < record->rows; r++) {
            known->statistics += !isnan(record->m[r]) && !isnan(record->l[r]);
            known->norms += !isnan(record->o_norm[r]);
        }
    }
}

static void test_kernel(enum kernel kernel)
{
    int tested = 0;
    struct known known = {0};
    for (int n = 0; n < shapes_count(kernel); n++) {
        const struct run run = shape_of(kernel, n);
        if (run.a.seqlen_q > MOST_ROWS || run.a.seqlen_k > MOST_ROWS)
            continue;
        struct twins x;
        char text[512];
        run_twins(&x, &run, false);
        if (logs_differ(&x.seen.steps, &x.log, text))
            fail_msg("%s: %s", run_text(&run), text);
        for (size_t i = 0; i < count_lse(&x.p.a); i++)
            if (!near(x.seen.lse[i], x.lse[i]))
                fail_msg("%s: LSE %zu: %.9g on the GPU, %.9g simulated", run_text(&run), i,
                         (double)x.seen.lse[i], (double)x.lse[i]);
        count_known(&known, &x.seen.steps);
        free_twins(&x);
        tested++;
    }
    assert_true(tested > 0 && known.statistics > 0 && known.norms > 0);
}

static void test_naive(void **state)
{
    (void)state;
    test_kernel(KERNEL_NAIVE);
}

static void test_standard(void **state)
{
    (void)state;
    test_kernel(KERNEL_STANDARD);
}

static void test_flash1(void **state)
{
    (void)state;
    test_kernel(KERNEL_FLASH1);
}

static void test_flash2(void **state)
{
    (void)state;
    test_kernel(KERNEL_FLASH2);
}

/* Counters, where they may be read, are of the simulator's launches, by name and in order. */
static void test_counted_launches(void **state)
{
    (void)state;
    for (enum kernel kernel = KERNEL_NAIVE; kernel <= KERNEL_FLASH2; kernel++) {
        const struct run run = shape_of(kernel, 0);
        struct twins x;
        run_twins(&x, &run, true);
        const struct observation *seen = &x.seen;
        if (seen->launches == 0) {
            assert_true(seen->uncounted[0] != '\0');
            print_message("not counted: %s\n", seen->uncounted);
            free_twins(&x);
            continue;
        }
        assert_int_equal(seen->launches, x.s.gpu.launch_count);
        for (int n = 0; n < seen->launches; n++) {
            const struct launch_record *launch = &x.s.gpu.launches[n];
            const struct traffic total = account_total(&launch->account);
            assert_string_equal(seen->launch[n].kernel, launch->name);
            assert_int_equal((int64_t)seen->launch[n].of[COUNTER_LOAD_SECTORS],
                             total.of[DIRECTION_READ].sectors);
            assert_int_equal((int64_t)seen->launch[n].of[COUNTER_STORE_SECTORS],
                             total.of[DIRECTION_WRITE].sectors);
        }
        free_twins(&x);
    }
}

/* What a launcher refuses comes back as its message, and nothing was seen. */
static void test_refusal(void **state)
{
    struct run run = shape_of(KERNEL_FLASH2, 0);
    struct problem p = {.a = run.a};
    struct observation seen;
    struct error error;
    uint64_t seed = 7;
    (void)state;
    p.a.block_q = MAX_BLOCK + 1;
    problem_fill(&p, &seed);
    const struct observe_request request = {.algorithm = ALGORITHM_FLASH2,
                                            .attention = p.a,
                                            .q = p.q,
                                            .k = p.k,
                                            .v = p.v,
                                            .counters = true,
                                            .steps = true};
    assert_int_equal(gpu_observe(&seen, &request, &error), STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "--block-q 65"));
    assert_true(!seen.o && !seen.lse && seen.launches == 0 && seen.steps.count == 0);
    problem_free(&p);
}

/* The judge of this file: one field off, and records differ. */
static void test_the_judge(void **state)
{
    float m[] = {1, -INFINITY}, other_m[] = {1.0001f, -INFINITY}, ones[] = {1, 1};
    const struct step_record same = {"kernel", {1, 2, 3}, 4, 5, "step", 6,
                                     7,        8,         2, m, ones,   ones};
    struct step_record others[14];
    char text[512];
    (void)state;
    for (int n = 0; n < 14; n++)
        others[n] = same;
    others[0].kernel = "other";
    others[1].block[0]++;
    others[2].block[1]++;
    others[3].block[2]++;
    others[4].i++;
    others[5].j++;
    others[6].step = "other";
    others[7].read_bytes++;
    others[8].written_bytes++;
    others[9].reduced_bytes++;
    others[10].rows--;
    others[11].m = other_m;
    others[12].l = m;
    others[13].o_norm = m;
    assert_false(records_differ(&same, &same, text));
    assert_true(near(NAN, NAN) && near(INFINITY, INFINITY));
    assert_false(near(NAN, 1) || near(1, NAN) || near(INFINITY, -INFINITY) ||
                 near(INFINITY, 1));
    for (int n = 0; n < 14; n++)
        if (!records_differ(&others[n], &same, text))
            fail_msg("record %d passed", n);
}

/* An argument is a pattern: test_steps 'test_flash*'. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge), cmocka_unit_test(test_naive),
        cmocka_unit_test(test_standard),  cmocka_unit_test(test_flash1),
        cmocka_unit_test(test_flash2),    cmocka_unit_test(test_counted_launches),
        cmocka_unit_test(test_refusal),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
