/* What the ladder of fast kernels refuses before it asks for a GPU, so that no GPU is needed to
 * see it.
 *
 * Protects: every step refuses the dtypes, head dimensions, masks, addresses and strides that
 * it cannot take, each with a message that names the step, the argument, its value and what is
 * allowed; steps for Hopper refuse every other GPU and name the step that works there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cuda/ladder/ladder.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const int64_t too_far = (int64_t)1 << 39; /* elements: 2^40 bytes */

static const struct attention fine = {.batch = 2,
                                      .heads_q = 4,
                                      .heads_kv = 2,
                                      .seqlen_q = 70,
                                      .seqlen_k = 64,
                                      .head_dim = 64,
                                      .head_dim_v = 64,
                                      .scale = 0.125f,
                                      .dtype = DTYPE_BF16};

/* Addresses that nothing reads. */
static struct ladder_tensors fine_tensors(void)
{
    static _Alignas(16) char elements[16];
    static float lse[1];
    static uint32_t taken[2];
    const struct ladder_tensor x = {elements, (int64_t)4 * 70 * 64, (int64_t)70 * 64, 64};
    return (struct ladder_tensors){.Q = x, .K = x, .V = x, .O = x, .LSE = lse, .taken = taken};
}

static void assert_taken(enum ladder_step step, const struct attention *a,
                         const struct ladder_tensors *t)
{
    struct error error = {STATUS_OK, ""};
    if (ladder_check(step, a, t, &error) != STATUS_OK)
        fail_msg("%s refuses: %s", ladder_name(step), error.text);
}

static void assert_refused(enum ladder_step step, const struct attention *a,
                           const struct ladder_tensors *t, const char *message)
{
    struct error error = {STATUS_OK, ""};
    if (ladder_check(step, a, t, &error) != STATUS_BAD_ARGUMENT ||
        error.status != STATUS_BAD_ARGUMENT || !strstr(error.text, message) ||
        !strstr(error.text, ladder_name(step)))
        fail_msg("%s: expected \"%s\", got status %d, \"%s\"", ladder_name(step), message,
                 (int)error.status, error.text);
}

static void test_problems(void **state)
{
    const struct ladder_tensors t = fine_tensors();
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++) {
        struct attention a = fine;
        for (int d = 64; d <= 256; d *= 2) {
            a.head_dim = a.head_dim_v = d;
            a.mask = d == 128 ? MASK_CAUSAL : MASK_NONE;
            a.dtype = d == 256 ? DTYPE_F16 : DTYPE_BF16;
            assert_taken(step, &a, &t);
        }
        a.head_dim = a.head_dim_v = 96;
        assert_refused(step, &a, &t, "--head-dim 96");
        a = fine;
        a.head_dim_v = 128;
        assert_refused(step, &a, &t, "--head-dim-v 128");
        a = fine;
        a.dtype = DTYPE_F32;
        assert_refused(step, &a, &t, "--dtype f32");
        a = fine;
        a.mask = MASK_CAUSAL_TOP_LEFT;
        assert_refused(step, &a, &t, "--mask causal-top-left");
    }
}

static void test_addresses(void **state)
{
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++)
        for (int i = 0; i < 4; i++) {
            static const char *const messages[] = {"the address of Q is", "the address of K is",
                                                   "the address of V is",
                                                   "the address of O is"};
            struct ladder_tensors t = fine_tensors();
            struct ladder_tensor *const x =
                (struct ladder_tensor *[]){&t.Q, &t.K, &t.V, &t.O}[i];
            x->at = (char *)x->at + 8;
            assert_refused(step, &fine, &t, messages[i]);
            x->at = NULL;
            assert_refused(step, &fine, &t, messages[i]);
            t = fine_tensors();
            t.LSE = NULL;
            assert_refused(step, &fine, &t, "the address of LSE is");
        }
}

/* Steps whose blocks do not take numbers do without the words for them. */
static void test_taken(void **state)
{
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++) {
        struct ladder_tensors t = fine_tensors();
        uint32_t *const words[] = {NULL, (uint32_t *)((char *)t.taken + 2)};
        for (size_t i = 0; i < LENGTH(words); i++) {
            t.taken = words[i];
            if (step < LADDER_PERSISTENT)
                assert_taken(step, &fine, &t);
            else
                assert_refused(step, &fine, &t, "the address of taken is");
        }
    }
}

/* A stride that only the copy engine cannot take is no matter for the other steps. */
/* What persistent blocks count must fit an int. */
static void test_many_tiles(void **state)
{
    const struct ladder_tensors t = fine_tensors();
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++) {
        struct attention a = fine;
        a.batch = 1 << 14;
        a.heads_q = a.heads_kv = 1 << 10;
        a.seqlen_q = 64 * 64;
        assert_taken(step, &a, &t);
        a.seqlen_q++;
        if (step < LADDER_PERSISTENT)
            assert_taken(step, &a, &t);
        else
            assert_refused(step, &a, &t, "may be 1073741824 at most");
    }
}

static void test_strides(void **state)
{
    static const struct {
        const char *name;
        size_t at;
    } strides[] = {{"the batch stride of K is ", offsetof(struct ladder_tensor, batch)},
                   {"the head stride of K is ", offsetof(struct ladder_tensor, head)},
                   {"the row stride of K is ", offsetof(struct ladder_tensor, row)}};
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++)
        for (size_t i = 0; i < LENGTH(strides); i++) {
            struct ladder_tensors t = fine_tensors();
            int64_t *stride = (int64_t *)((char *)&t.K + strides[i].at);
            *stride = 0;
            assert_taken(step, &fine, &t);
            *stride = too_far - 8;
            assert_taken(step, &fine, &t);
            *stride = 4;
            assert_refused(step, &fine, &t, strides[i].name);
            *stride = -8;
            assert_refused(step, &fine, &t, strides[i].name);
            *stride = too_far;
            if (!ladder_needs_hopper(step)) {
                assert_taken(step, &fine, &t);
                continue;
            }
            assert_refused(step, &fine, &t, strides[i].name);
            assert_refused(step, &fine, &t,
                           "is 549755813888 elements: the copy engine takes less than "
                           "549755813888; 05_two_tiles takes any");
        }
}

static void assert_gpu(enum ladder_step step, int major, int minor, const char *refusal)
{
    struct error error = {STATUS_OK, ""};
    const enum status want = refusal ? STATUS_BAD_ARGUMENT : STATUS_OK;
    if (ladder_check_gpu(step, "some GPU", major, minor, &error) != want ||
        error.status != want || (refusal && !strstr(error.text, refusal)) ||
        (refusal && !strstr(error.text, ladder_name(step))))
        fail_msg("%s on %d.%d: status %d, \"%s\"", ladder_name(step), major, minor,
                 (int)error.status, error.text);
}

static void test_gpus(void **state)
{
    static const int others[][2] = {{8, 0}, {8, 6}, {8, 9}, {10, 0}, {10, 3}, {12, 0}};
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++) {
        const bool hopper = ladder_needs_hopper(step);
        assert_gpu(step, 9, 0, NULL);
        assert_gpu(step, 7, 5, "flash2 of cuda/kernels works there, in f32");
        assert_gpu(step, 7, 5, hopper ? "needs 9.0" : "needs 8.0 or later");
        for (size_t i = 0; i < LENGTH(others); i++)
            assert_gpu(step, others[i][0], others[i][1],
                       hopper ? "needs 9.0; 05_two_tiles works there" : NULL);
    }
    struct error error;
    ladder_check_gpu(LADDER_OVERLAP, "NVIDIA A100", 8, 0, &error);
    assert_string_equal(error.text, "NVIDIA A100 has compute capability 8.0: 10_overlap needs "
                                    "9.0; 05_two_tiles works there");
}

/* The numbers in the names say which steps these are. */
static void test_which_need_hopper(void **state)
{
    (void)state;
    for (enum ladder_step step = 0; step < LADDER_STEPS; step++) {
        assert_int_equal(ladder_needs_hopper(step), strcmp(ladder_name(step), "06") > 0);
        if (step > 0)
            assert_true(strcmp(ladder_name(step - 1), ladder_name(step)) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problems),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_which_need_hopper),
    };
    return cmocka_run_group_tests_name("ladder check", tests, NULL, NULL);
}
