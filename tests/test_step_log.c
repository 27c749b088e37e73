/* core/step_log: records kept are copies, in order, whoever hands them over.
 *
 * Protects: nothing that a record pointed to is needed any more once it is in the log; order
 * and contents are those of the records; a trace of the simulator is the same for any number of
 * threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/problem.h"
#include "core/step_log.h"

enum { MOST_ROWS = 7, RECORDS = 1000 };

/* Memory of a record that the test overwrites. */
struct original {
    struct step_record record;
    char kernel[32], step[32];
    float m[MOST_ROWS], l[MOST_ROWS], o_norm[MOST_ROWS];
};

/* The number-th record of a fixed stream. */
static void make_original(struct original *x, int number)
{
    struct rng rng = {(uint64_t)number};
    snprintf(x->kernel, sizeof x->kernel, "kernel %d", number % 5);
    snprintf(x->step, sizeof x->step, "%.*s", number % 9, "step of 9");
    for (int r = 0; r < MOST_ROWS; r++) {
        x->m[r] = r == 1 ? -INFINITY : random_value(&rng);
        x->l[r] = r == 2 ? -0.0f : random_value(&rng);
        x->o_norm[r] = r == 3 ? NAN : random_value(&rng);
    }
    x->record = (struct step_record){.kernel = x->kernel,
                                     .block = {number, number + 1, number + 2},
                                     .i = number % 3 - 1,
                                     .j = number,
                                     .step = x->step,
                                     .read_bytes = (int64_t)number << 40,
                                     .written_bytes = number,
                                     .reduced_bytes = -number,
                                     .rows = number % (MOST_ROWS + 1),
                                     .m = x->m,
                                     .l = x->l,
                                     .o_norm = x->o_norm};
    if (x->record.rows == 0)
        x->record.m = x->record.l = x->record.o_norm = NULL;
}

static bool same_record(const struct step_record *a, const struct step_record *b)
{
    bool same = strcmp(a->kernel, b->kernel) == 0 && strcmp(a->step, b->step) == 0 &&
                memcmp(a->block, b->block, sizeof a->block) == 0 && a->i == b->i &&
                a->j == b->j && a->read_bytes == b->read_bytes &&
                a->written_bytes == b->written_bytes && a->reduced_bytes == b->reduced_bytes &&
                a->rows == b->rows;
    for (int r = 0; same && r < a->rows; r++)
        same = same_bits(a->m[r], b->m[r]) && same_bits(a->l[r], b->l[r]) &&
               same_bits(a->o_norm[r], b->o_norm[r]);
    return same;
}

static void test_records_are_independent_copies_in_order(void **state)
{
    struct step_log log = {0};
    struct original x;
    (void)state;
    for (int i = 0; i < RECORDS; i++) {
        make_original(&x, i);
        step_log_add(&log, &x.record);
        memset(&x, 0xa5, sizeof x); /* nothing of it may be looked at any more */
        assert_int_equal(log.count, i + 1);
    }
    for (int i = 0; i < RECORDS; i++) {
        make_original(&x, i);
        if (!same_record(&log.records[i], &x.record))
            fail_msg("record %d is not the one that was added", i);
    }
    step_log_free(&log);
    assert_int_equal(log.count, 0);
    assert_int_equal(log.room, 0);
    assert_null(log.records);
    step_log_free(&log); /* an empty one */
}

static void test_the_comparison_can_fail(void **state)
{
    struct original a, b;
    (void)state;
    make_original(&a, 15); /* of 7 rows */
    make_original(&b, 15);
    assert_true(same_record(&a.record, &b.record));
    struct step_record *r = &b.record;
    int *numbers[] = {&r->block[0], &r->block[1], &r->block[2], &r->i, &r->j, &r->rows};
    int64_t *bytes[] = {&r->read_bytes, &r->written_bytes, &r->reduced_bytes};
    float *rows[] = {&b.m[6], &b.l[2], &b.o_norm[0]};
    char *names[] = {b.kernel, b.step};
    for (size_t i = 0; i < LENGTH(numbers); i++) {
        --*numbers[i];
        assert_false(same_record(&a.record, r));
        ++*numbers[i];
    }
    for (size_t i = 0; i < LENGTH(bytes); i++) {
        --*bytes[i];
        assert_false(same_record(&a.record, r));
        ++*bytes[i];
    }
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const float good = *rows[i];
        *rows[i] = good == 0.0f ? 0.0f : -good;
        assert_false(same_record(&a.record, r));
        *rows[i] = good;
    }
    for (size_t i = 0; i < LENGTH(names); i++) {
        ++*names[i];
        assert_false(same_record(&a.record, r));
        --*names[i];
    }
    assert_true(same_record(&a.record, r));
}

/* The records of a run of the simulator. */
static struct step_log traced(const struct variant *variant, const struct problem *p,
                              int threads)
{
    struct step_log log = {0};
    struct trace trace = {step_log_add, &log};
    struct error error = {0};
    struct simulation s = {.algorithm = variant->algorithm,
                           .attention = p->a,
                           .machine = machine_default(),
                           .trace = &trace};
    s.attention.tiled_gemm = variant->tiled_gemm;
    float *o = allocate(count_o(&p->a), sizeof *o),
          *lse = allocate(count_lse(&p->a), sizeof *lse);
    omp_set_num_threads(threads);
    if (attention_simulate(&s, p->q, p->k, p->v, o, lse, &error))
        fail_msg("%s", error.text);
    omp_set_num_threads(omp_get_num_procs());
    free(o);
    free(lse);
    return log;
}

static void test_a_trace_does_not_depend_on_threads(void **state)
{
    struct problem p = {
        .a = {2, 4, 2, 50, 40, 8, 8, 0.5f, MASK_CAUSAL, DTYPE_F16, 16, 16, false}};
    uint64_t seed = 1;
    (void)state;
    problem_fill(&p, &seed);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        struct step_log one = traced(&variants[v], &p, 1), many = traced(&variants[v], &p, 5);
        assert_true(one.count > 8);
        assert_int_equal(one.count, many.count);
        for (int64_t i = 0; i < one.count; i++)
            if (!same_record(&one.records[i], &many.records[i]))
                fail_msg("%s: record %d depends on the threads", variants[v].name, (int)i);
        step_log_free(&one);
        step_log_free(&many);
    }
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_comparison_can_fail),
        cmocka_unit_test(test_records_are_independent_copies_in_order),
        cmocka_unit_test(test_a_trace_does_not_depend_on_threads),
    };
    return cmocka_run_group_tests_name("step_log", tests, NULL, NULL);
}
