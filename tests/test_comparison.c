/* Simulator against GPU: what the comparison lets pass, and what it finds.
 *
 * Protects: a GPU that did what the simulator did passes, whatever the algorithm, and the rows
 * of all its K/V tiles are compared; one sector, one byte, one row's m, l or norm, one that
 * only one side knows, one step too few, too many or renamed, and one wrong element of a result
 * do not, and the report names the place. The "GPU" is the simulator's own run, kept as a
 * recording and then damaged.
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

#include "common/comparison.h"
#include "common/random_inputs.h"

enum { SEED = 5 };

static struct simulation problem(enum algorithm algorithm)
{
    return (struct simulation){.algorithm = algorithm,
                               .machine = machine_default(),
                               .attention = {.batch = 1,
                                             .heads_q = 2,
                                             .heads_kv = 1,
                                             .seqlen_q = 50,
                                             .seqlen_k = 70,
                                             .head_dim = 16,
                                             .head_dim_v = 24,
                                             .scale = 0.25f,
                                             .mask = MASK_CAUSAL,
                                             .dtype = DTYPE_F32,
                                             .block_q = 16,
                                             .block_k = 32,
                                             .tiled_gemm = algorithm == ALGORITHM_STANDARD}};
}

static void record_counters(struct observation *seen, const struct gpu *gpu)
{
    seen->launches = gpu->launch_count;
    for (int i = 0; i < gpu->launch_count; i++) {
        const struct traffic total = account_total(&gpu->launches[i].account);
        struct observed_launch *launch = &seen->launch[i];
        snprintf(launch->kernel, sizeof launch->kernel, "%s", gpu->launches[i].name);
        launch->of[COUNTER_LOAD_SECTORS] = (double)total.of[DIRECTION_READ].sectors;
        launch->of[COUNTER_STORE_SECTORS] = (double)total.of[DIRECTION_WRITE].sectors;
        launch->of[COUNTER_REDUCE_SECTORS] = (double)total.of[DIRECTION_REDUCE].sectors;
    }
}

/* What a perfect GPU would have done; of_o: added to element 7 of O. */
static struct gpu_recording record(enum algorithm algorithm, float of_o)
{
    struct simulation s = problem(algorithm);
    struct gpu_recording r = {.algorithm = algorithm, .attention = s.attention, .seed = SEED};
    struct trace trace = {step_log_add, &r.seen.steps};
    struct random_inputs x;
    struct error error = {0};
    const size_t rows = (size_t)attention_planes_q(&s.attention) * (size_t)s.attention.seqlen_q;
    const size_t count = rows * (size_t)s.attention.head_dim_v;
    float *o = malloc(count * sizeof *o), *lse = malloc(rows * sizeof *lse);
    s.trace = &trace;
    if (random_inputs_make(&x, &s.attention, SEED, &error) ||
        attention_simulate(&s, x.q, x.k, x.v, o, lse, &error))
        fail_msg("%s", error.text);
    record_counters(&r.seen, &s.gpu);
    o[7] += of_o;
    r.o = result_summarize(o, count);
    r.lse = result_summarize(lse, rows);
    random_inputs_free(&x);
    free(o), free(lse);
    return r;
}

/* Compares and forgets the recording. */
static struct comparison compare(struct gpu_recording *r)
{
    struct simulation s = {.machine = machine_default()};
    struct comparison c;
    struct error error = {0};
    if (comparison_recorded(&c, &s, r, &error))
        fail_msg("%s", error.text);
    gpu_recording_free(r);
    return c;
}

static void test_a_gpu_that_does_the_same_passes(void **state)
{
    (void)state;
    for (int i = 0; i < ALGORITHM_COUNT; i++) {
        struct gpu_recording r = record((enum algorithm)i, 0.0f);
        struct comparison c = compare(&r);
        assert_true(comparison_equal(&c));
        assert_true(c.traffic_equal && c.results_equal && !c.step.found);
        assert_int_equal(c.launches, i == ALGORITHM_STANDARD ? 3 : 1);
        assert_true(c.steps_compared > 10 && c.steps_compared == c.simulated_steps.count);
        if (i == ALGORITHM_STANDARD) /* m and l of each row and K/V tile, and O of each */
            assert_int_equal(c.rows_compared, 2 * (2 * 50 * 3));
        else
            assert_true(c.rows_compared > 0);
        assert_true(c.largest_difference == 0.0 && c.o_difference == 0.0);
        assert_true(c.measured[DIRECTION_READ] == c.predicted[DIRECTION_READ]);
        comparison_free(&c);
    }
}

static void test_one_sector_is_found(void **state)
{
    (void)state;
    for (int k = COUNTER_LOAD_SECTORS; k <= COUNTER_REDUCE_SECTORS; k++) {
        struct gpu_recording r = record(ALGORITHM_STANDARD, 0.0f);
        r.seen.launch[1].of[k] += 1.0;
        struct comparison c = compare(&r);
        assert_false(comparison_equal(&c));
        assert_true(c.launch[0].equal && !c.launch[1].equal && c.launch[2].equal);
        assert_true(c.results_equal && !c.step.found);
        comparison_free(&c);
    }
}

static void test_launches_too_few_or_renamed_are_found(void **state)
{
    (void)state;
    struct gpu_recording r = record(ALGORITHM_STANDARD, 0.0f);
    r.seen.launches--;
    struct comparison c = compare(&r);
    assert_false(c.traffic_equal);
    comparison_free(&c);
    r = record(ALGORITHM_FLASH2, 0.0f);
    r.seen.launch[0].kernel[0] = 'F';
    c = compare(&r);
    assert_false(c.traffic_equal);
    comparison_free(&c);
}

static void test_without_counters_the_rest_is_compared(void **state)
{
    (void)state;
    struct gpu_recording r = record(ALGORITHM_FLASH1, 0.0f);
    r.seen.launches = 0;
    struct comparison c = compare(&r);
    assert_true(comparison_equal(&c));
    assert_int_equal(c.launches, 0);
    comparison_free(&c);
}

/* Damages one step of a perfect recording. */
typedef void damage(struct step_log *steps, int64_t n);

static void damage_m(struct step_log *steps, int64_t n)
{
    steps->records[n].m[3] += 1e-3f;
}

static void damage_l(struct step_log *steps, int64_t n)
{
    steps->records[n].l[3] *= 1.001f;
}

static void damage_norm(struct step_log *steps, int64_t n)
{
    steps->records[n].o_norm[3] = NAN;
}

static void damage_read(struct step_log *steps, int64_t n)
{
    steps->records[n].read_bytes += 4;
}

static void damage_written(struct step_log *steps, int64_t n)
{
    steps->records[n].written_bytes -= 4;
}

static void damage_rows(struct step_log *steps, int64_t n)
{
    steps->records[n].rows--;
}

static void damage_place(struct step_log *steps, int64_t n)
{
    steps->records[n].j++;
}

static void damage_name(struct step_log *steps, int64_t n)
{
    steps->records[n].step = "another step";
}

static void test_one_wrong_step_is_named(void **state)
{
    static const struct {
        damage *damage;
        const char *what;
        int row;
    } cases[] = {{damage_m, "m", 3},
                 {damage_l, "l", 3},
                 {damage_norm, "norm of O", 3},
                 {damage_read, "bytes read", -1},
                 {damage_written, "bytes written", -1},
                 {damage_rows, "rows", -1},
                 {damage_place, "kernel, block, (i, j) or step", -1},
                 {damage_name, "kernel, block, (i, j) or step", -1}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct gpu_recording r = record(ALGORITHM_FLASH2, 0.0f);
        int64_t n = r.seen.steps.count / 2;
        while (r.seen.steps.records[n].rows == 0)
            n++;
        const int i = r.seen.steps.records[n].i;
        cases[k].damage(&r.seen.steps, n);
        struct comparison c = compare(&r);
        assert_false(comparison_equal(&c));
        assert_true(c.step.found && c.traffic_equal && c.results_equal);
        assert_string_equal(c.step.what, cases[k].what);
        assert_int_equal(c.step.row, cases[k].row);
        assert_int_equal(c.step.record.i, i);
        assert_int_equal(c.steps_compared, n + 1);
        comparison_free(&c);
    }
}

static void damage_unknown_m(struct step_log *steps, int64_t n)
{
    steps->records[n].m[3] = 0.0f;
}

static void damage_unknown_norm(struct step_log *steps, int64_t n)
{
    steps->records[n].o_norm[3] = 0.0f;
}

static void damage_known_l(struct step_log *steps, int64_t n)
{
    steps->records[n].l[3] = NAN;
}

/* The softmax of standard attention knows no O, and its last launch neither m nor l. */
static void test_what_one_side_does_not_know_is_found(void **state)
{
    static const struct {
        damage *damage;
        const char *kernel, *what;
    } cases[] = {{damage_unknown_m, "standard_output", "m"},
                 {damage_norm, "standard_output", "norm of O"},
                 {damage_unknown_norm, "standard_softmax", "norm of O"},
                 {damage_known_l, "standard_softmax", "l"}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct gpu_recording r = record(ALGORITHM_STANDARD, 0.0f);
        int64_t n = 0;
        while (r.seen.steps.records[n].rows == 0 ||
               strcmp(r.seen.steps.records[n].kernel, cases[k].kernel) != 0)
            n++;
        cases[k].damage(&r.seen.steps, n);
        struct comparison c = compare(&r);
        assert_true(c.step.found && c.traffic_equal && c.results_equal);
        assert_string_equal(c.step.what, cases[k].what);
        assert_string_equal(c.step.record.kernel, cases[k].kernel);
        assert_int_equal(c.step.row, 3);
        assert_int_equal(c.steps_compared, n + 1);
        comparison_free(&c);
    }
}

static void test_missing_and_additional_steps_are_found(void **state)
{
    (void)state;
    struct gpu_recording r = record(ALGORITHM_FLASH1, 0.0f);
    free(r.seen.steps.records[--r.seen.steps.count].m);
    struct comparison c = compare(&r);
    assert_true(c.step.found);
    assert_string_equal(c.step.what, "steps that the kernel does not have");
    comparison_free(&c);
    r = record(ALGORITHM_FLASH1, 0.0f);
    const struct step_record last = r.seen.steps.records[r.seen.steps.count - 1];
    step_log_add(&r.seen.steps, &last);
    c = compare(&r);
    assert_true(c.step.found);
    assert_string_equal(c.step.what, "steps that the simulator does not have");
    comparison_free(&c);
}

static void test_one_wrong_element_is_found(void **state)
{
    (void)state;
    struct gpu_recording r = record(ALGORITHM_FLASH2, 0.01f);
    struct comparison c = compare(&r);
    assert_false(c.results_equal);
    assert_true(c.traffic_equal && !c.step.found);
    assert_true(c.o_difference > 1.0 && c.lse_difference == 0.0);
    comparison_free(&c);
    r = record(ALGORITHM_FLASH2, NAN);
    c = compare(&r);
    assert_false(c.results_equal);
    comparison_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gpu_that_does_the_same_passes),
        cmocka_unit_test(test_one_sector_is_found),
        cmocka_unit_test(test_launches_too_few_or_renamed_are_found),
        cmocka_unit_test(test_without_counters_the_rest_is_compared),
        cmocka_unit_test(test_one_wrong_step_is_named),
        cmocka_unit_test(test_what_one_side_does_not_know_is_found),
        cmocka_unit_test(test_missing_and_additional_steps_are_found),
        cmocka_unit_test(test_one_wrong_element_is_found),
    };
    return cmocka_run_group_tests_name("comparison", tests, NULL, NULL);
}
