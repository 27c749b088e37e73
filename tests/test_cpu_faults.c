/* Faults planted in the CUDA kernels, one line each (cpu/planted/), and what is said of them
 * when they run on the CPU.
 *
 * Protects: a missing barrier, a swapped index, an unguarded tail, a tile that nobody loaded
 * and a barrier that half of a block reaches stop the program; the message has the source line,
 * that of the kernel where the access is in a header, the kernel, block and thread, and the
 * other thread and its line. Of the kernels as they are nothing is said, and they are right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/problem.h"
#include "common/reference.h"
#include "cpu/kernels/own.h"
#include "cpu/message.h"
#include "cuda/attention.h"
#include "cuda/basic.h"
#include "cuda/cpu/cpu.h"

#define TILE "cuda/tile.h"
#define FLASH1 "cuda/kernels/flash1_forward.cu"
#define FLASH2 "cuda/kernels/flash2_forward.cu"

/* Arrays far apart: what misses one by a tile or two is in none. */
enum { ARRAYS = 7, ARRAY_FLOATS = 1 << 15 };
static float memory[ARRAYS][ARRAY_FLOATS] __attribute__((aligned(256)));

/* The n-th array: random, or NaN that nobody has written. */
static float *array(int n, const char *name, size_t count, bool filled)
{
    uint64_t seed = (uint64_t)n + 1;
    assert_true(count <= ARRAY_FLOATS / 2);
    for (size_t i = 0; i < count; i++)
        memory[n][i] = filled ? random_normal(&seed) : NAN;
    cpu_array(name, memory[n], (int64_t)(count * sizeof(float)),
              filled ? CPU_FILLED : CPU_UNWRITTEN);
    return memory[n];
}

struct attention_run {
    attention_launcher *launcher;
    struct attention a;
    struct device_tensors t;
};

static struct attention_run attention_open(attention_launcher *launcher, int block_q,
                                           int block_k)
{
    struct attention_run run = {.launcher = launcher,
                                .a = {.batch = 1,
                                      .heads_q = 1,
                                      .heads_kv = 1,
                                      .seqlen_q = 72,
                                      .seqlen_k = 72,
                                      .head_dim = 24,
                                      .head_dim_v = 20,
                                      .scale = 0.25f,
                                      .dtype = DTYPE_F32,
                                      .block_q = block_q,
                                      .block_k = block_k}};
    cpu_begin(&(struct cpu_options){0});
    run.t = (struct device_tensors){.Q = array(0, "Q", count_q(&run.a), true),
                                    .K = array(1, "K", count_k(&run.a), true),
                                    .V = array(2, "V", count_v(&run.a), true),
                                    .O = array(3, "O", count_o(&run.a), false),
                                    .LSE = array(4, "LSE", count_lse(&run.a), false),
                                    .l = array(5, "l", count_lse(&run.a), false),
                                    .m = array(6, "m", count_lse(&run.a), false)};
    return run;
}

/* The launcher's refusal would not stop the program: the test sees that it did not. */
static void attention_launch(void *context)
{
    const struct attention_run *run = context;
    struct error error;
    run->launcher(&run->a, &run->t, &error);
}

static double attention_error(const struct attention_run *run)
{
    const struct problem p = {run->a, run->t.Q, run->t.K, run->t.V};
    struct truth truth;
    double most = 0.0;
    reference_attention(&truth, &p, (double)run->a.scale);
    for (size_t i = 0; i < count_o(&run->a); i++) {
        const double error = fabs((double)run->t.O[i] - truth.o[i]);
        most = error <= most ? most : error; /* NaN stays */
    }
    truth_free(&truth);
    return most;
}

static void assert_attention_right(attention_launcher *launcher, int block_q, int block_k)
{
    struct attention_run run = attention_open(launcher, block_q, block_k);
    attention_launch(&run);
    assert_true(attention_error(&run) < 1e-5);
    cpu_end();
}

/* What the planted kernel says, after the kernel as it is has been found right on the same
 * problem. */
static struct fault fault_in(attention_launcher *right, attention_launcher *planted,
                             int block_q, int block_k)
{
    assert_attention_right(right, block_q, block_k);
    struct attention_run run = attention_open(planted, block_q, block_k);
    const struct fault fault = fault_of(attention_launch, &run);
    cpu_end();
    return fault;
}

/* The text of the message that begins with a place of the source. */
static const char *bug_at(const char *file, const char *text, const char *kernel)
{
    static char begin[256];
    snprintf(begin, sizeof begin, "%s:%d: bug: %s, block (0, 0, 0), thread (", file,
             line_of(file, text), kernel);
    return begin;
}

/* " at FILE:LINE (called at FILE:LINE)" */
static const char *at_called_at(const char *file, const char *text, const char *kernel_file,
                                const char *call)
{
    static char both[256];
    snprintf(both, sizeof both, " at %s:%d (called at %s:%d)", file, line_of(file, text),
             kernel_file, line_of(kernel_file, call));
    return both;
}

static const char *called_at(const char *kernel_file, const char *call)
{
    static char called[256];
    snprintf(called, sizeof called, " (called at %s:%d)\n", kernel_file,
             line_of(kernel_file, call));
    return called;
}

/* Lines of the sources. */
#define LOADED "dst[place[n]] = value[n];"
#define LOAD_OF_HBM "value[n] = src[(int64_t)at.row * stride + at.col];"
#define CLEARED "dst[at.row * pitch + at.col] = 0.0f;"
#define PRODUCT_READS_P "load4(p[r], P + r * ROW_THREADS * p_pitch + k);"
#define SCORES_READ_K "key[c] = K[c * COL_THREADS * pitch + k];"
#define STORED "dst[(int64_t)at.row * stride + at.col] = src[at.row * pitch + at.col];"
#define PUT "dst[(thread_row() + r * ROW_THREADS) * pitch + thread_col() + c * COL_THREADS] ="
#define LOAD_K "tile_load(Kj, pitch, K"
#define SCORES "tile_scores(Sij, Qi, Kj, pitch, d);"
#define PUT_P "tile_put(Pij, P_PITCH, Sij);"
#define PRODUCT "tile_add_product(Oi, Pij, P_PITCH, Vj, V_PITCH, cols);"

attention_launcher planted_no_barrier;

/* Thread 0 is through with Pij and loads the next Kj, which lies there. */
static void test_no_barrier(void **state)
{
    const struct fault fault = fault_in(launch_flash2_forward, planted_no_barrier, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, PRODUCT_READS_P, "flash2_forward"),
                "1, 0, 0): race: reads element ", " of shared memory, which thread (0, 0, 0) ",
                "writes", at_called_at(TILE, LOADED, FLASH2, LOAD_K),
                ", no __syncwarp() or __syncthreads() between", called_at(FLASH2, PRODUCT),
                NULL);
}

attention_launcher planted_no_barrier_after_reduction;

static void test_no_barrier_after_reduction(void **state)
{
    const struct fault fault =
        fault_in(launch_flash2_forward, planted_no_barrier_after_reduction, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, PUT, "flash2_forward"), "0, 0, 0): race: writes element ",
                " of shared memory, which thread (", ") reads",
                at_called_at(TILE, SCORES_READ_K, FLASH2, SCORES), " between",
                called_at(FLASH2, PUT_P), NULL);
}

attention_launcher planted_no_warp_barrier;

static void test_no_warp_barrier(void **state)
{
    const struct fault fault = fault_in(launch_flash2_forward, planted_no_warp_barrier, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, PUT, "flash2_forward"), "1, 0, 0): race: writes element ",
                " of shared memory, which thread (0, 0, 0) reads",
                at_called_at(TILE, PRODUCT_READS_P, FLASH2, PRODUCT),
                ", no __syncwarp() or __syncthreads() between", called_at(FLASH2, PUT_P), NULL);
}

attention_launcher planted_divergent_barrier;

/* The other half waits at the next barrier. */
static void test_divergent_barrier(void **state)
{
    static const char cut[] = "__syncthreads(); /* all have read the previous Pij and Vj */";
    const struct fault fault =
        fault_in(launch_flash2_forward, planted_divergent_barrier, 16, 16);
    char other[128];
    (void)state;
    snprintf(other, sizeof other, "__syncthreads() at %s:%d\n", FLASH2,
             line_of(FLASH2, "tile_load(Vj, V_PITCH, V") + 1);
    assert_says(&fault, bug_at(FLASH2, cut, "flash2_forward"),
                "0, 0, 0): waits at __syncthreads() for all threads of the block, but ",
                "thread (64, 0, 0) waits at ", other, NULL);
}

attention_launcher planted_swapped_blocks;

/* With Br > Bc later tiles lie behind the end of K. */
static void test_swapped_blocks(void **state)
{
    const struct fault fault = fault_in(launch_flash2_forward, planted_swapped_blocks, 32, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, LOAD_OF_HBM, "flash2_forward"),
                "0, 0, 0): load of 4 bytes outside all arrays: ",
                " bytes after the start of K, which has 6912", called_at(FLASH2, LOAD_K), NULL);
}

/* With Br < Bc they overlap: every access is right, and what comes out is not. */
static void test_swapped_blocks_inside(void **state)
{
    struct attention_run run = attention_open(planted_swapped_blocks, 16, 32);
    (void)state;
    attention_launch(&run);
    assert_true(attention_error(&run) > 0.1);
    cpu_end();
    assert_attention_right(launch_flash2_forward, 16, 32);
}

attention_launcher planted_unguarded_tail;

static void test_unguarded_tail(void **state)
{
    const struct fault fault = fault_in(launch_flash2_forward, planted_unguarded_tail, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, LOAD_OF_HBM, "flash2_forward"),
                "load of 4 bytes outside all arrays: ",
                " bytes after the start of K, which has 6912", called_at(FLASH2, LOAD_K), NULL);
}

attention_launcher planted_unloaded_tile;

static void test_unloaded_tile(void **state)
{
    const struct fault fault = fault_in(launch_flash2_forward, planted_unloaded_tile, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, SCORES_READ_K, "flash2_forward"),
                "0, 0, 0): reads element ", " of shared memory, which nobody has written",
                called_at(FLASH2, SCORES), NULL);
}

attention_launcher planted_no_barrier_before_stores;

/* Warp 0 stores rows of which other warps have not yet put their part. */
static void test_no_barrier_before_stores(void **state)
{
    const struct fault fault =
        fault_in(launch_flash1_forward, planted_no_barrier_before_stores, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, STORED, "flash1_forward"), "0, 0, 0): reads element ",
                " of shared memory, which nobody has written",
                called_at(FLASH1, "tile_store(O + q_row * dv"), NULL);
}

attention_launcher planted_no_barrier_after_stores;

/* The last tile has 8 rows: thread 0 clears what lies behind them, while thread 8 still has to
 * store what the tile before had there. */
static void test_no_barrier_after_stores(void **state)
{
    const struct fault fault =
        fault_in(launch_flash1_forward, planted_no_barrier_after_stores, 16, 16);
    (void)state;
    assert_says(&fault, bug_at(TILE, STORED, "flash1_forward"), ", 0, 0): race: reads element ",
                " of shared memory, which thread (0, 0, 0) writes",
                at_called_at(TILE, CLEARED, FLASH1, "tile_load(sl, 1, l_hbm"), " between",
                called_at(FLASH1, "tile_store(l_hbm"), NULL);
}

/* Kernels that are not attention: 1000 elements, or two rows of 300, from array 0 to 1. */
typedef enum status add_launcher(float *c, const float *a, const float *b, int64_t count,
                                 void *stream, struct error *error);
typedef enum status softmax_launcher(float *Y, const float *X, int rows, int cols, void *stream,
                                     struct error *error);
add_launcher planted_unguarded_load;
softmax_launcher planted_no_barrier_in_reduction;

struct basic_run {
    add_launcher *add;
    softmax_launcher *softmax;
};

static void basic_launch(void *context)
{
    const struct basic_run *run = context;
    struct error error;
    cpu_begin(&(struct cpu_options){0});
    float *from = array(0, "from", 1000, true), *to = array(1, "to", 1000, false);
    if (run->add)
        run->add(to, from, from, 1000, NULL, &error);
    else
        run->softmax(to, from, 2, 300, NULL, &error);
    cpu_end();
}

static void test_unguarded_load(void **state)
{
    const char *line = "x[n] = a[first + n * ADD_THREADS];";
    const char *file = "cuda/kernels/vector_add.cu";
    (void)state;
    basic_launch(&(struct basic_run){.add = launch_vector_add});
    for (int i = 0; i < 1000; i++)
        assert_float_equal(memory[1][i], 2 * memory[0][i], 0);
    const struct fault fault =
        fault_of(basic_launch, &(struct basic_run){.add = planted_unguarded_load});
    assert_says(&fault, bug_at(file, line, "vector_add"),
                "232, 0, 0): load of 4 bytes outside all arrays: 4000 bytes after the start of "
                "from, which has 4000\n",
                NULL);
}

static void assert_softmax_right(const float *y, const float *x, int cols)
{
    double sum = 0;
    for (int i = 0; i < cols; i++)
        sum += exp((double)x[i]);
    for (int i = 0; i < cols; i++)
        assert_true(fabs((double)y[i] - exp((double)x[i]) / sum) < 1e-6);
}

static void test_no_barrier_in_reduction(void **state)
{
    static const char file[] = "cuda/row_softmax.h", kernel[] = "cuda/kernels/softmax_safe.cu";
    (void)state;
    basic_launch(&(struct basic_run){.softmax = launch_softmax_safe});
    assert_softmax_right(memory[1], memory[0], 300);
    assert_softmax_right(memory[1] + 300, memory[0] + 300, 300);
    const struct fault fault =
        fault_of(basic_launch, &(struct basic_run){.softmax = planted_no_barrier_in_reduction});
    char begin[128]; /* block_sum() has the same line */
    snprintf(begin, sizeof begin, "%s:%d: bug: softmax_safe, block (", file,
             line_of(file, "float block_max(") + 6);
    assert_says(&fault, begin, ", 0, 0), thread (1, 0, 0): reads element 1 of maxima, which ",
                "nobody has written", called_at(kernel, "m = block_max(m, maxima);"), NULL);
}

/* Shared-memory traffic of the line with the text. */
static struct cpu_traffic tile_traffic(const char *text, enum cpu_way way)
{
    const struct cpu_launch_counts *launch = &cpu_counts()->launch[0];
    const int line = line_of("tests/cpu/planted/transpose.cu", text);
    for (int n = 0; n < launch->lines; n++) {
        const struct cpu_line *found = &launch->line[n];
        if (found->shared && found->line == line && found->way == way) {
            assert_string_equal(found->array, "tile");
            assert_string_equal(found->file, "tests/cpu/planted/transpose.cu");
            return found->traffic;
        }
    }
    fail_msg("no access to shared memory on line %d", line);
    return (struct cpu_traffic){0};
}

/* No fault of results: a tile without padding costs 31 passes more a request. */
static void test_transpose_without_padding(void **state)
{
    (void)state;
    for (int pitch = 32; pitch <= 33; pitch++) {
        cpu_begin(&(struct cpu_options){0});
        float *from = array(0, "from", 1024, true), *to = array(1, "to", 1024, false);
        launch_transpose(to, from, pitch);
        for (int i = 0; i < 1024; i++)
            assert_float_equal(to[i], from[i % 32 * 32 + i / 32], 0);
        const struct cpu_traffic rows = tile_traffic("/* by rows */", CPU_STORE);
        const struct cpu_traffic cols = tile_traffic("/* by columns */", CPU_LOAD);
        assert_int_equal(rows.requests, 32);
        assert_int_equal(rows.wavefronts - rows.requests, 0);
        assert_int_equal(cols.requests, 32);
        assert_int_equal(cols.wavefronts - cols.requests, pitch == 32 ? 31 * 32 : 0);
        assert_int_equal(cols.least_wavefronts, 32);
        cpu_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_barrier),
        cmocka_unit_test(test_no_barrier_after_reduction),
        cmocka_unit_test(test_no_warp_barrier),
        cmocka_unit_test(test_divergent_barrier),
        cmocka_unit_test(test_swapped_blocks),
        cmocka_unit_test(test_swapped_blocks_inside),
        cmocka_unit_test(test_unguarded_tail),
        cmocka_unit_test(test_unloaded_tile),
        cmocka_unit_test(test_no_barrier_before_stores),
        cmocka_unit_test(test_no_barrier_after_stores),
        cmocka_unit_test(test_unguarded_load),
        cmocka_unit_test(test_no_barrier_in_reduction),
        cmocka_unit_test(test_transpose_without_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
