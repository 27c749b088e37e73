/* gpu_observe_basic(): what the lessons about vectors, matrix products and softmaxes ask a GPU.
 *
 * Protects: each kernel's result is, bit for bit, that of its launcher on the same inputs; its
 * sectors are the closed form's; it is timed; a refusal leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/problem.h"
#include "cuda/device.h"
#include "cuda/observe_basic.h"
#include "run.h"

static struct basic_request request_of(const struct run *run, float *output)
{
    struct basic_request request = {.kernel = kernel_name(run->kernel),
                                    .rows = run->rows,
                                    .cols = run->cols,
                                    .depth = run->depth,
                                    .tile = run->tile,
                                    .output = output,
                                    .outputs = run->array[run->arrays - 1].count};
    for (int n = 0; n < run->arrays - 1; n++) {
        request.input[n].name = run->array[n].name;
        request.input[n].values = run->array[n].host;
        request.input[n].count = run->array[n].count;
    }
    return request;
}

static void check_kernel(enum kernel kernel)
{
    struct run run = {.kernel = kernel, .rows = 37, .cols = 163, .depth = 20, .tile = 16};
    struct observation seen;
    struct error error;
    if (run_open(&run, 5, &error) || run_launch(&run, &error) || stream_wait(NULL, &error) ||
        run_download(&run, &error))
        fail_msg("%s", error.text);
    const struct array *result = &run.array[run.arrays - 1];
    const struct account predicted = run_predict(&run);
    float *output = allocate(result->count, sizeof *output);
    const struct basic_request request = request_of(&run, output);
    if (gpu_observe_basic(&seen, &request, &error))
        fail_msg("%s: %s", request.kernel, error.text);
    if (memcmp(output, result->host, result->count * sizeof *output) != 0)
        fail_msg("%s: another result", request.kernel);
    assert_true(seen.median_us > 0 && *seen.gpu && *seen.driver);
    if (seen.launches != 1)
        fail_msg("%s: %d launches: %s", request.kernel, seen.launches, seen.uncounted);
    assert_string_equal(seen.launch[0].kernel, request.kernel);
    assert_int_equal((int64_t)seen.launch[0].of[COUNTER_LOAD_SECTORS],
                     account_total(&predicted).of[DIRECTION_READ].sectors);
    assert_int_equal((int64_t)seen.launch[0].of[COUNTER_STORE_SECTORS],
                     account_total(&predicted).of[DIRECTION_WRITE].sectors);
    observation_free(&seen);
    free(output);
    run_close(&run);
}

static void test_every_kernel(void **state)
{
    (void)state;
    for (int kernel = KERNEL_VECTOR_ADD; kernel <= KERNEL_SOFTMAX_ONLINE; kernel++)
        check_kernel((enum kernel)kernel);
}

static void test_refusal(void **state)
{
    const float values[9] = {0};
    float output[9];
    const struct basic_request request = {.kernel = "matmul_tiled",
                                          .rows = 3,
                                          .cols = 3,
                                          .depth = 3,
                                          .tile = 17,
                                          .input = {{"A", values, 9}, {"B", values, 9}},
                                          .output = output,
                                          .outputs = 9};
    struct observation seen;
    struct error error;
    (void)state;
    assert_int_equal(gpu_observe_basic(&seen, &request, &error), STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "tile 17"));
    assert_true(seen.launches == 0 && seen.median_us == 0 && !*seen.gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel),
        cmocka_unit_test(test_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
