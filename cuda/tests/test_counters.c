/* Predicted, simulated and measured sectors of every CUDA kernel: equal, launch by launch.
 *
 * Measured are the hardware's counters of global loads, stores and reductions. There is no
 * tolerance. Passes over shared memory's banks are those of kernels without conflicts, where
 * there are none. FLASHLAB_COUNTERS_CSV=FILE writes a line for every run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/problem.h"
#include "cuda/counters.h"
#include "results.h"
#include "shapes.h"

enum { MAX_KERNELS = 3 };

/* What the tests of this file share. */
struct session {
    struct counters *counters;
    FILE *csv; /* NULL: none */
};

/* Sectors of one launch, by direction: simulated and measured. */
struct sectors {
    int64_t of[DIRECTION_COUNT];
};

static struct sectors simulated(const struct launch_record *record)
{
    const struct traffic total = account_total(&record->account);
    struct sectors sectors;
    for (int k = 0; k < DIRECTION_COUNT; k++)
        sectors.of[k] = total.of[k].sectors;
    return sectors;
}

static struct sectors measured(const struct counter_values *values)
{
    return (struct sectors){{[DIRECTION_READ] = (int64_t)values->of[COUNTER_LOAD_SECTORS],
                             [DIRECTION_WRITE] = (int64_t)values->of[COUNTER_STORE_SECTORS],
                             [DIRECTION_REDUCE] = (int64_t)values->of[COUNTER_REDUCE_SECTORS]}};
}

/* True if they differ; text (256 bytes) says where. */
static bool sectors_differ(const struct sectors *sim, const struct sectors *gpu, char *text)
{
    static const char *const names[DIRECTION_COUNT] = {"load", "store", "reduction"};
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        if (sim->of[k] != gpu->of[k]) {
            snprintf(text, 256, "%s sectors: %" PRId64 " simulated, %" PRId64 " measured",
                     names[k], sim->of[k], gpu->of[k]);
            return true;
        }
    }
    return false;
}

static void compare_launches(const struct run *run, const struct gpu *gpu,
                             const struct counter_values *values, int launches)
{
    char text[256];
    if (launches != gpu->launch_count)
        fail_msg("%s: %d launches measured, %d simulated", run_text(run), launches,
                 gpu->launch_count);
    for (int k = 0; k < launches; k++) {
        const struct sectors sim = simulated(&gpu->launches[k]), got = measured(&values[k]);
        if (sectors_differ(&sim, &got, text))
            fail_msg("%s, launch %s: %s", run_text(run), gpu->launches[k].name, text);
    }
}

/* Tiles whose rows and columns are multiples of 32 meet no bank conflicts. */
static bool is_conflict_free(const struct run *run)
{
    const struct attention *a = &run->a;
    return kernel_is_attention(run->kernel) && a->head_dim == 64 && a->head_dim_v == 64 &&
           a->seqlen_q % 32 == 0 && a->seqlen_k % 32 == 0 && a->block_q % 32 == 0 &&
           a->block_k % 32 == 0;
}

static bool has_shared_memory(enum kernel kernel)
{
    return kernel != KERNEL_VECTOR_ADD && kernel != KERNEL_MATMUL_NAIVE &&
           kernel != KERNEL_NAIVE;
}

/* What is wrong with a launch's passes over shared memory's banks, or NULL. All stores are of 4
 * bytes: without conflicts each takes one pass. Loads of 16 bytes may take more. */
static const char *passes_wrong(const struct counter_values *values, bool has_shared,
                                bool conflict_free)
{
    const double loads = values->of[COUNTER_SHARED_LOAD_INSTRUCTIONS],
                 load_passes = values->of[COUNTER_SHARED_LOAD_WAVEFRONTS],
                 stores = values->of[COUNTER_SHARED_STORE_INSTRUCTIONS],
                 store_passes = values->of[COUNTER_SHARED_STORE_WAVEFRONTS];
    if (loads < 0 || load_passes < 0 || stores < 0 || store_passes < 0)
        return "not counted";
    if (has_shared != (loads > 0) || has_shared != (load_passes > 0))
        return has_shared ? "no loads" : "loads without shared memory";
    if (has_shared != (stores > 0) || has_shared != (store_passes > 0))
        return has_shared ? "no stores" : "stores without shared memory";
    if (conflict_free && load_passes < loads)
        return "fewer passes than loads";
    if (conflict_free && store_passes != stores)
        return "bank conflicts of stores";
    return NULL;
}

static void assert_passes(const struct run *run, const struct counter_values *values,
                          int launches)
{
    for (int k = 0; k < launches; k++) {
        const double *of = values[k].of;
        const char *wrong =
            passes_wrong(&values[k], has_shared_memory(run->kernel), is_conflict_free(run));
        if (wrong)
            fail_msg("%s, launch %d, shared memory: %s: %.0f loads in %.0f passes, %.0f stores "
                     "in %.0f",
                     run_text(run), k, wrong, of[COUNTER_SHARED_LOAD_INSTRUCTIONS],
                     of[COUNTER_SHARED_LOAD_WAVEFRONTS], of[COUNTER_SHARED_STORE_INSTRUCTIONS],
                     of[COUNTER_SHARED_STORE_WAVEFRONTS]);
    }
}

/* Only in small runs: the counter also has the odd cycle lost to other traffic of the L1 cache.
 */
static void assert_no_conflicts(const struct run *run, const struct counter_values *values,
                                int launches)
{
    if (!is_conflict_free(run) || run->a.seqlen_q > 512)
        return;
    for (int k = 0; k < launches; k++)
        if (values[k].of[COUNTER_SHARED_LOAD_CONFLICTS] != 0 ||
            values[k].of[COUNTER_SHARED_STORE_CONFLICTS] != 0)
            fail_msg("%s, launch %d: %.0f bank conflicts of loads, %.0f of stores",
                     run_text(run), k, values[k].of[COUNTER_SHARED_LOAD_CONFLICTS],
                     values[k].of[COUNTER_SHARED_STORE_CONFLICTS]);
}

/* fp32 kernels multiply no matrices on the tensor cores. */
static void assert_no_tensor_products(const struct run *run,
                                      const struct counter_values *values, int launches)
{
    for (int k = 0; k < launches; k++)
        if (values[k].of[COUNTER_TENSOR_INSTRUCTIONS] != values[k].of[COUNTER_TENSOR_HALF_FMA])
            fail_msg("%s, launch %d: %.0f instructions of the tensor pipe, %.0f HFMA2",
                     run_text(run), k, values[k].of[COUNTER_TENSOR_INSTRUCTIONS],
                     values[k].of[COUNTER_TENSOR_HALF_FMA]);
}

/* Without host arrays if seed is 0. */
static void test_run(struct session *session, struct run run, uint64_t seed)
{
    struct counter_values values[MAX_KERNELS];
    struct error error;
    struct gpu gpu;
    int launches = 0;
    if (run_open(&run, seed, &error) || run_simulate(&gpu, &run, &error) ||
        counters_measure(values, MAX_KERNELS, &launches, session->counters, run_launch, &run,
                         &error))
        fail_msg("%s: %s", run_text(&run), error.text);
    const struct account predicted = run_predict(&run), account = gpu_account(&gpu);
    if (!account_equal(&predicted, &account))
        fail_msg("%s: prediction and simulation differ", run_text(&run));
    results_counters_row(session->csv, &run, &gpu, values, launches);
    compare_launches(&run, &gpu, values, launches);
    assert_passes(&run, values, launches);
    assert_no_conflicts(&run, values, launches);
    assert_no_tensor_products(&run, values, launches);
    run_close(&run);
}

static void test_kernel(struct session *session, enum kernel kernel)
{
    for (int n = 0; n < shapes_count(kernel); n++)
        test_run(session, shape_of(kernel, n), 1);
    for (int n = 0; n < large_shapes_count(kernel); n++)
        test_run(session, large_shape(kernel, n), 0);
}

static void test_vector_add(void **state)
{
    test_kernel(*state, KERNEL_VECTOR_ADD);
}

static void test_matmul_naive(void **state)
{
    test_kernel(*state, KERNEL_MATMUL_NAIVE);
}

static void test_matmul_shared(void **state)
{
    test_kernel(*state, KERNEL_MATMUL_SHARED);
}

static void test_matmul_tiled(void **state)
{
    test_kernel(*state, KERNEL_MATMUL_TILED);
}

static void test_softmax_naive(void **state)
{
    test_kernel(*state, KERNEL_SOFTMAX_NAIVE);
}

static void test_softmax_safe(void **state)
{
    test_kernel(*state, KERNEL_SOFTMAX_SAFE);
}

static void test_softmax_online(void **state)
{
    test_kernel(*state, KERNEL_SOFTMAX_ONLINE);
}

static void test_naive(void **state)
{
    test_kernel(*state, KERNEL_NAIVE);
}

static void test_standard(void **state)
{
    test_kernel(*state, KERNEL_STANDARD);
}

static void test_flash1(void **state)
{
    test_kernel(*state, KERNEL_FLASH1);
}

static void test_flash2(void **state)
{
    test_kernel(*state, KERNEL_FLASH2);
}

/* The judge of this file: one sector too many or too few, in any direction, does not pass. */
static void test_the_judge(void **state)
{
    const struct sectors same = {{10, 20, 30}};
    char text[256];
    (void)state;
    assert_false(sectors_differ(&same, &same, text));
    for (int k = 0; k < DIRECTION_COUNT; k++) {
        struct sectors other = same;
        other.of[k]++;
        assert_true(sectors_differ(&same, &other, text));
        other.of[k] -= 2;
        assert_true(sectors_differ(&same, &other, text));
    }
}

static void test_the_judge_of_passes(void **state)
{
    const struct counter_values good = {{[COUNTER_SHARED_LOAD_INSTRUCTIONS] = 10,
                                         [COUNTER_SHARED_LOAD_WAVEFRONTS] = 12,
                                         [COUNTER_SHARED_STORE_INSTRUCTIONS] = 5,
                                         [COUNTER_SHARED_STORE_WAVEFRONTS] = 5}};
    const struct counter_values none = {{0}};
    (void)state;
    assert_null(passes_wrong(&good, true, true));
    assert_null(passes_wrong(&none, false, true));
    assert_non_null(passes_wrong(&good, false, false));
    assert_non_null(passes_wrong(&none, true, false));
    for (int c = COUNTER_SHARED_LOAD_INSTRUCTIONS; c <= COUNTER_SHARED_STORE_WAVEFRONTS; c++) {
        struct counter_values other = good;
        other.of[c] = -1;
        assert_non_null(passes_wrong(&other, true, false));
        other.of[c] = 0;
        assert_non_null(passes_wrong(&other, true, false));
        other = none;
        other.of[c] = 1;
        assert_non_null(passes_wrong(&other, false, false));
    }
    struct counter_values other = good;
    other.of[COUNTER_SHARED_STORE_WAVEFRONTS]++;
    assert_null(passes_wrong(&other, true, false));
    assert_non_null(passes_wrong(&other, true, true));
    other = good;
    other.of[COUNTER_SHARED_LOAD_INSTRUCTIONS] = 13;
    assert_non_null(passes_wrong(&other, true, true));
}

static int open_session(void **state)
{
    static struct session session;
    struct error error;
    const char *path = getenv("FLASHLAB_COUNTERS_CSV");
    *state = &session;
    if (counters_open(&session.counters, &error)) {
        print_error("%s\n", error.text);
        return -1;
    }
    session.csv = path ? fopen(path, "w") : NULL;
    if (path && !session.csv) {
        print_error("%s: cannot be written\n", path);
        return -1;
    }
    results_counters_header(session.csv);
    return 0;
}

static int close_session(void **state)
{
    struct session *session = *state;
    counters_close(session->counters);
    return session->csv ? fclose(session->csv) : 0;
}

/* An argument is a pattern: test_counters 'test_flash*'. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge),      cmocka_unit_test(test_the_judge_of_passes),
        cmocka_unit_test(test_vector_add),     cmocka_unit_test(test_matmul_naive),
        cmocka_unit_test(test_matmul_shared),  cmocka_unit_test(test_matmul_tiled),
        cmocka_unit_test(test_softmax_naive),  cmocka_unit_test(test_softmax_safe),
        cmocka_unit_test(test_softmax_online), cmocka_unit_test(test_naive),
        cmocka_unit_test(test_standard),       cmocka_unit_test(test_flash1),
        cmocka_unit_test(test_flash2),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, open_session, close_session);
}
