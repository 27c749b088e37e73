/* What the ladder refuses: each with a message that names the argument, its value and what is
 * allowed, and no launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cuda/device.h"
#include "ladder_run.h"

static const struct attention fine = {.batch = 1,
                                      .heads_q = 2,
                                      .heads_kv = 1,
                                      .seqlen_q = 70,
                                      .seqlen_k = 64,
                                      .head_dim = 64,
                                      .head_dim_v = 64,
                                      .scale = 0.125f,
                                      .dtype = DTYPE_BF16};

/* Every step before end that this GPU can run fails with that, and O stays as it was. */
static void assert_refused_before(enum ladder_step end, const struct attention *a,
                                  const struct ladder_tensors *t, const char *message)
{
    struct error error = {STATUS_OK, ""};
    for (enum ladder_step step = 0; step < end; step++)
        if (ladder_run_is_possible(step) &&
            (ladder_launch(step, a, t, &error) != STATUS_BAD_ARGUMENT ||
             !strstr(error.text, message) || !strstr(error.text, ladder_name(step))))
            fail_msg("%s: expected \"%s\", got status %d, \"%s\"", ladder_name(step), message,
                     (int)error.status, error.text);
}

static void assert_refused(const struct attention *a, const struct ladder_tensors *t,
                           const char *message)
{
    assert_refused_before(LADDER_STEPS, a, t, message);
}

static void open_run(struct ladder_run *run)
{
    uint64_t seed = 1;
    struct error error;
    run->p.a = fine;
    problem_fill(&run->p, &seed);
    if (ladder_run_open(run, &error) || ladder_run_poison(run, &error))
        fail_msg("%s", error.text);
}

/* Nothing was launched: O is still NaN. */
static void close_run(struct ladder_run *run)
{
    struct answer answer;
    struct error error;
    if (stream_wait(NULL, &error) || ladder_run_download(run, &answer, &error))
        fail_msg("%s", error.text);
    for (size_t i = 0; i < count_o(&fine); i++)
        assert_true(isnan(answer.o[i]));
    answer_free(&answer);
    ladder_run_close(run);
    problem_free(&run->p);
}

static void test_problem(void **state)
{
    struct ladder_run run = {0};
    (void)state;
    open_run(&run);
    struct attention a = fine;
    a.dtype = DTYPE_F32;
    assert_refused(&a, &run.t, "--dtype f32");
    a = fine;
    a.dtype = DTYPE_E4M3;
    assert_refused(&a, &run.t, "computes in f16 and bf16");
    a = fine;
    a.head_dim = a.head_dim_v = 96;
    assert_refused(&a, &run.t, "--head-dim 96");
    a = fine;
    a.head_dim_v = 128;
    assert_refused(&a, &run.t, "--head-dim-v 128");
    a = fine;
    a.mask = MASK_CAUSAL_TOP_LEFT;
    assert_refused(&a, &run.t, "--mask causal-top-left");
    close_run(&run);
}

/* attention_check()'s own refusals do not name the step. */
static void test_shape(void **state)
{
    struct ladder_run run = {0};
    struct error error;
    struct attention a = fine;
    (void)state;
    open_run(&run);
    a.heads_q = 3;
    a.heads_kv = 2;
    assert_int_equal(ladder_launch(LADDER_MMA, &a, &run.t, &error), STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "--heads-q 3"));
    a = fine;
    a.batch = 70000; /* the grid of persistent steps does not depend on it */
    assert_refused_before(LADDER_PERSISTENT, &a, &run.t, "along z it may have 1 to 65535");
    close_run(&run);
}

static void test_tensors(void **state)
{
    struct ladder_run run = {0};
    (void)state;
    open_run(&run);
    struct ladder_tensors t = run.t;
    t.Q.at = (char *)t.Q.at + 2;
    assert_refused(&fine, &t, "the address of Q is 0x");
    t = run.t;
    t.V.at = NULL;
    assert_refused(&fine, &t, "the address of V is");
    t = run.t;
    t.O.row += 4;
    assert_refused(&fine, &t, "the row stride of O is 68 elements");
    t = run.t;
    t.K.head = -8;
    assert_refused(&fine, &t, "the head stride of K is -8 elements");
    t = run.t;
    t.K.batch += 1;
    assert_refused(&fine, &t, "the batch stride of K is ");
    t = run.t;
    t.LSE = NULL;
    assert_refused(&fine, &t, "the address of LSE is");
    close_run(&run);
}

/* Other steps take any stride: here none is used, as there is one batch. */
static void test_copy_engine(void **state)
{
    struct ladder_run run = {0};
    (void)state;
    open_run(&run);
    for (int i = 0; i < 4; i++) {
        struct ladder_tensors t = run.t;
        struct ladder_tensor *const x = (struct ladder_tensor *[]){&t.Q, &t.K, &t.V, &t.O}[i];
        x->batch = (int64_t)1 << 39;
        for (enum ladder_step step = 0; step < LADDER_STEPS; step++) {
            struct error error = {STATUS_OK, ""};
            if (!ladder_needs_hopper(step) || !ladder_run_is_possible(step))
                continue;
            assert_int_equal(ladder_launch(step, &fine, &t, &error), STATUS_BAD_ARGUMENT);
            assert_non_null(strstr(error.text, "the copy engine takes less than"));
        }
    }
    close_run(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_copy_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
