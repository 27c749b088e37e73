/* What the launchers refuse: each with a message that names the option, its value and what is
 * allowed, or the bytes needed and there; and what they must not refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cupti_result.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/basic.h"
#include "cuda/counters.h"
#include "cuda/device.h"
#include "cuda/refusals.h"
#include "run.h"

static const struct attention fine = {.batch = 1,
                                      .heads_q = 2,
                                      .heads_kv = 1,
                                      .seqlen_q = 64,
                                      .seqlen_k = 64,
                                      .head_dim = 64,
                                      .head_dim_v = 64,
                                      .scale = 0.125f,
                                      .dtype = DTYPE_F32,
                                      .block_q = 64,
                                      .block_k = 64};

/* The launcher fails with that status and says that, before it touches any memory. */
static void assert_refused(enum algorithm algorithm, const struct attention *a,
                           enum status status, const char *message)
{
    const struct device_tensors none = {0};
    struct error error = {STATUS_OK, ""};
    if (attention_launchers[algorithm](a, &none, &error) != status || error.status != status ||
        !strstr(error.text, message))
        fail_msg("%s: expected \"%s\", got status %d, \"%s\"", algorithm_name(algorithm),
                 message, (int)error.status, error.text);
}

static void test_blocks(void **state)
{
    (void)state;
    for (int algorithm = ALGORITHM_STANDARD; algorithm < ALGORITHM_COUNT; algorithm++) {
        struct attention a = fine;
        a.block_q = MAX_BLOCK + 1;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--block-q 65");
        a = fine;
        a.block_k = MAX_BLOCK + 1;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--block-k 65");
        a.block_k = 0;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--block-k 0");
    }
}

static void test_head_dims_and_dtype(void **state)
{
    (void)state;
    for (int algorithm = 0; algorithm < ALGORITHM_COUNT; algorithm++) {
        struct attention a = fine;
        a.head_dim = MAX_HEAD_DIM + 1;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--head-dim 257");
        a = fine;
        a.head_dim_v = MAX_HEAD_DIM + 1;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--head-dim-v 257");
        a = fine;
        a.dtype = DTYPE_BF16;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--dtype bf16");
        a = fine;
        a.heads_kv = 3;
        assert_refused(algorithm, &a, STATUS_BAD_ARGUMENT, "--heads-q 2");
    }
}

/* The grid has planes along y or z, where CUDA allows 65535. */
static void test_too_many_planes(void **state)
{
    (void)state;
    struct attention a = fine;
    a.batch = 65536 / 2;
    assert_refused(ALGORITHM_FLASH2, &a, STATUS_BAD_ARGUMENT, "along y it may have 1 to 65535");
    assert_refused(ALGORITHM_STANDARD, &a, STATUS_BAD_ARGUMENT,
                   "along z it may have 1 to 65535");
}

/* 64 rows of 256 floats, four times over: more than any GPU has. */
static void test_shared_memory(void **state)
{
    (void)state;
    struct attention a = fine;
    a.head_dim = a.head_dim_v = MAX_HEAD_DIM;
    assert_refused(ALGORITHM_FLASH1, &a, STATUS_ON_CHIP_FULL,
                   "need 291840 bytes of shared memory, this GPU allows ");
}

static void test_matmul_tile(void **state)
{
    const struct matmul_shape shape = {64, 64, 64};
    struct error error;
    (void)state;
    assert_int_equal(launch_matmul_tiled(NULL, NULL, NULL, &shape, 24, NULL, &error),
                     STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "tile 24: matmul_tiled is compiled for 16, 32 and 64"));
    assert_int_equal(launch_matmul_shared(NULL, NULL, NULL, &shape, 64, NULL, &error),
                     STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "tile 64: matmul_shared is compiled for 16 and 32"));
}

static void test_out_of_memory(void **state)
{
    struct error error;
    void *memory = &error;
    (void)state;
    assert_int_equal(device_alloc(&memory, "S", (size_t)1 << 50, &error), STATUS_OUT_OF_MEMORY);
    assert_null(memory);
    assert_non_null(strstr(error.text, "S needs 1125899906842624 bytes of device memory, "));
    /* the failure does not stick */
    assert_int_equal(device_alloc(&memory, "S", 4096, &error), STATUS_OK);
    assert_int_equal(stream_wait(NULL, &error), STATUS_OK);
    device_free(memory);
}

static void assert_says(const char *text, const char *const *parts, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (!strstr(text, parts[k]))
            fail_msg("\"%s\" does not say \"%s\"", text, parts[k]);
}

/* This GPU is new enough; a Volta is not. */
static void test_old_gpu(void **state)
{
    static const char *const parts[] = {"Tesla V100", "compute capability 7.0",
                                        "7.5 or later is needed"};
    struct device_info info;
    struct error error;
    (void)state;
    if (device_query(&info, &error))
        fail_msg("%s", error.text);
    assert_int_equal(refuse_old_gpu(info.name, info.compute_major, info.compute_minor, &error),
                     STATUS_OK);
    assert_int_equal(refuse_old_gpu("Tesla V100", 7, 0, &error), STATUS_BAD_ARGUMENT);
    assert_says(error.text, parts, 3);
}

/* What CUPTI calls a missing permission, and how to grant it; nothing of that for others. */
static void test_counters_without_permission(void **state)
{
    static const int results[] = {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
                                  CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES};
    static const char *const parts[] = {
        "cuda/counters.cpp:7: enable()", "INSUFFICIENT_PRIVILEGES", "run as root",
        "NVreg_RestrictProfilingToAdminUsers=0", "ERR_NVGPUCTRPERM)."};
    struct error error;
    (void)state;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(counters_failed(&error, results[k], "enable()", 7),
                         STATUS_BAD_ARGUMENT);
        assert_says(error.text, parts, 5);
    }
    counters_failed(&error, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "enable()", 7);
    assert_non_null(strstr(error.text, "--ncu FILE"));
    counters_failed(&error, CUPTI_ERROR_INVALID_PARAMETER, "enable()", 7);
    assert_non_null(strstr(error.text, "CUPTI_ERROR_INVALID_PARAMETER"));
    assert_true(!strstr(error.text, "root") && !strstr(error.text, "--ncu"));
}

/* Host array to host array, on a stream of its own and on the default one: the same bits. */
static void test_streams(void **state)
{
    struct run run = {.kernel = KERNEL_FLASH2, .a = fine};
    struct error error;
    (void)state;
    if (run_open(&run, 7, &error) || stream_create(&run.stream, &error) ||
        run_launch(&run, &error) || stream_wait(run.stream, &error) ||
        run_download(&run, &error))
        fail_msg("%s", error.text);
    stream_destroy(run.stream);
    const struct array *O = run_array(&run, "O"), *LSE = run_array(&run, "LSE");
    float *o = malloc(O->count * sizeof *o), *lse = malloc(LSE->count * sizeof *lse);
    assert_true(o && lse);
    for (int algorithm = 0; algorithm < ALGORITHM_COUNT; algorithm++) {
        if (attention_on_device(algorithm, &run.a, run_array(&run, "Q")->host,
                                run_array(&run, "K")->host, run_array(&run, "V")->host, o, lse,
                                &error))
            fail_msg("%s: %s", algorithm_name(algorithm), error.text);
        for (size_t i = 0; i < LSE->count; i++)
            if (!(lse[i] - LSE->host[i] <= 1e-5f && LSE->host[i] - lse[i] <= 1e-5f))
                fail_msg("%s: LSE %zu", algorithm_name(algorithm), i);
        if (algorithm == ALGORITHM_FLASH2)
            assert_memory_equal(o, O->host, O->count * sizeof *o);
    }
    free(o);
    free(lse);
    run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_head_dims_and_dtype),
        cmocka_unit_test(test_too_many_planes),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_matmul_tile),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_old_gpu),
        cmocka_unit_test(test_counters_without_permission),
        cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
