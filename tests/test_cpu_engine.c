/* The engine that runs kernels on the CPU, by small kernels of which everything is known.
 *
 * Protects: what shuffles, votes, reductions and atomics give; indices in three dimensions;
 * requests, sectors and passes of places that only the line of a caller tells apart, and of
 * loops of any length; that counts do not depend on the number of threads and results not on
 * being observed; kernels that do not end, and launches that a GPU would refuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "common/bits.h"
#include "common/problem.h"
#include "cpu/kernels/own.h"
#include "cpu/message.h"
#include "cuda/attention.h"
#include "cuda/cpu/cpu.h"

#define COUNTING "tests/cpu/kernels/counting.cu"

enum { LANES = 32, ELEMENTS = 512, MOST_THREADS = 4 };
static float from[ELEMENTS] __attribute__((aligned(256)));
static float to[ELEMENTS] __attribute__((aligned(256)));
static int numbers[ELEMENTS] __attribute__((aligned(256)));

static void begin(const struct cpu_options *options)
{
    cpu_begin(options);
    for (int i = 0; i < ELEMENTS; i++)
        from[i] = (float)(i % 7);
    memset(to, 0xff, sizeof to);
    memset(numbers, 0xff, sizeof numbers);
    cpu_array("from", from, sizeof from, CPU_FILLED);
    cpu_array("to", to, sizeof to, CPU_UNWRITTEN);
    cpu_array("numbers", numbers, sizeof numbers, CPU_UNWRITTEN);
}

static int value[LANES]; /* what each lane passes */

static void begin_exchanges(void)
{
    begin(&(struct cpu_options){0});
    for (int lane = 0; lane < LANES; lane++)
        value[lane] = lane * lane % 37;
    cpu_array("value", value, sizeof value, CPU_FILLED);
}

static void assert_column(int column, int lane, int expected)
{
    const int found = numbers[LANES * column + lane];
    if (found != expected)
        fail_msg("column %d, lane %d: %d, not %d", column, lane, found, expected);
}

/* As the CUDA C++ Programming Guide has them, "Warp Shuffle Functions". */
static void test_shuffles(void **state)
{
    (void)state;
    begin_exchanges();
    launch_shuffles(numbers, value);
    for (int lane = 0; lane < LANES; lane++) {
        assert_column(0, lane, value[3]);
        assert_column(1, lane, value[lane / 8 * 8 + (lane + 1) % 8]);
        assert_column(2, lane, value[lane ^ 5]);
        /* parts before one's own are within reach, those after it are not */
        assert_column(3, lane, value[(lane ^ 12) / 8 <= lane / 8 ? lane ^ 12 : lane]);
        assert_column(4, lane, value[lane >= 3 ? lane - 3 : lane]);
        assert_column(5, lane, value[lane % 8 >= 3 ? lane - 3 : lane]);
        assert_column(6, lane, value[lane + 3 < 32 ? lane + 3 : lane]);
        assert_column(7, lane, value[lane % 16 + 3 < 16 ? lane + 3 : lane]);
        assert_column(8, lane, value[lane < 16 ? 7 : 23]);
        assert_column(9, lane, value[lane ^ 1]);
        assert_column(10, lane, value[lane ^ 1]);
    }
    assert_int_equal(cpu_counts()->launch[0].exchanges, 12);
    cpu_end();
}

static void test_votes_and_reductions(void **state)
{
    int votes = 0, sum = 0, least = 1000, most = -1000;
    (void)state;
    begin_exchanges();
    launch_votes(numbers, value);
    for (int lane = 0; lane < LANES; lane++) {
        votes |= (int)((unsigned)(value[lane] % 3 != 0) << lane);
        sum += value[lane];
        least = 10 - value[lane] < least ? 10 - value[lane] : least;
        most = 10 - value[lane] > most ? 10 - value[lane] : most;
    }
    assert_true(least < 0 && most > 0); /* signs matter */
    for (int lane = 0; lane < LANES; lane++) {
        assert_column(0, lane, votes);
        assert_column(1, lane, 0);
        assert_column(2, lane, 1);
        assert_column(3, lane, 1);
        assert_column(4, lane, 0);
        assert_column(5, lane, sum);
        assert_column(6, lane, least);
        assert_column(7, lane, most);
        assert_column(8, lane, -1); /* the largest of unsigned numbers */
        assert_column(9, lane, lane < 8 ? 1 + 0xaa + 28 : -1);
    }
    cpu_end();
}

/* A reduction gives the bits, and counts the shuffles, of those that it stands for. */
static void test_reductions_are_their_shuffles(void **state)
{
    enum { COUNT = 5 * 2 * LANES, SHUFFLES = 2 * (1 + 2 + 3 + 4 + 5) };
    static const float special[] = {NAN, INFINITY, -INFINITY, 1e-40f, 3e38f};
    static float plain[COUNT] __attribute__((aligned(256)));
    (void)state;
    for (int trial = 0; trial < 20; trial++) {
        begin(&(struct cpu_options){0});
        for (int lane = 0; lane < LANES; lane++)
            from[lane] = sinf((float)(trial * LANES + lane)) * expf((float)(lane % 9));
        if (trial % 2)
            from[7 * trial % LANES] = special[trial / 2 % 5];
        cpu_array("plain", plain, sizeof plain, CPU_UNWRITTEN);
        launch_reductions(to, from, false);
        launch_reductions(plain, from, true);
        for (int i = 0; i < COUNT; i++)
            if (!(isnan(to[i]) && isnan(plain[i])) && bits_of(to[i]) != bits_of(plain[i]))
                fail_msg("trial %d, result %d: %a, not %a", trial, i, to[i], plain[i]);
        assert_int_equal(cpu_counts()->launch[0].exchanges, SHUFFLES);
        assert_int_equal(cpu_counts()->launch[1].exchanges, SHUFFLES);
        cpu_end();
    }
}

/* Integers and floats, 64 blocks of 100 threads, in HBM and in shared memory. */
static void test_atomics_of_many_blocks(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads += MOST_THREADS - 1) {
        omp_set_num_threads(threads);
        begin(&(struct cpu_options){0});
        static int count[64] __attribute__((aligned(256)));
        count[0] = 0;
        from[0] = 0.0f;
        cpu_array("count", count, sizeof count, CPU_FILLED);
        launch_count_up(count, from, 64);
        assert_int_equal(count[0], 6400);
        assert_float_equal(from[0], 3200.0f, 0);
        const struct cpu_launch_counts *launch = &cpu_counts()->launch[0];
        assert_int_equal(cpu_array_traffic(launch, "count", CPU_REDUCE).requests, 64);
        assert_int_equal(cpu_array_traffic(launch, "from", CPU_REDUCE).requests, 4 * 64);
        assert_int_equal(cpu_array_traffic(launch, "from", CPU_REDUCE).sectors, 4 * 64);
        assert_int_equal(launch->shared[CPU_REDUCE].accesses, 6400);
        assert_int_equal(launch->barriers, 2 * 4 * 64);
        cpu_end();
    }
}

static void test_three_dimensions(void **state)
{
    (void)state;
    begin(&(struct cpu_options){0});
    launch_three_dims(numbers);
    for (int i = 0; i < 12 * 30; i++)
        assert_int_equal(numbers[i], 1000 * (i / 30) + i % 30);
    cpu_end();
}

static struct cpu_traffic loads_at(const char *text)
{
    const struct cpu_launch_counts *launch = &cpu_counts()->launch[0];
    struct cpu_traffic sum = {0};
    for (int n = 0; n < launch->lines; n++)
        if (launch->line[n].line == line_of(COUNTING, text) && launch->line[n].way == CPU_LOAD)
            cpu_traffic_add(&sum, &launch->line[n].traffic);
    return sum;
}

/* One line of a header, reached by two lines: the halves of a warp make a request each. */
static void test_callers_tell_places_apart(void **state)
{
    (void)state;
    begin(&(struct cpu_options){0});
    launch_counting(TWO_CALLS, to, from, 0);
    assert_int_equal(loads_at("/* first half */").requests, 1);
    assert_int_equal(loads_at("/* first half */").accesses, 16);
    assert_int_equal(loads_at("/* second half */").requests, 1);
    assert_int_equal(cpu_counts()->launch[0].hbm[CPU_LOAD].requests, 2);
    begin(&(struct cpu_options){0});
    launch_counting(TWO_INNER_CALLS, to, from, 0);
    assert_int_equal(loads_at("first_of_either(from,").requests, 2);
    assert_int_equal(loads_at("first_of_either(from,").accesses, 32);
    assert_int_equal(cpu_counts()->launch[0].hbm[CPU_STORE].requests, 1);
    cpu_end();
}

/* More accesses than a lane makes without a pause; the last rounds of the first loop have fewer
 * lanes. Three blocks of two warps. */
static void test_long_loops(void **state)
{
    enum { ROUNDS = 3 * (1 << 15) + 5, WARPS = 6 };
    (void)state;
    begin(&(struct cpu_options){0});
    launch_counting(LONG_LOOP, to, from, ROUNDS);
    assert_int_equal(loads_at("/* first */").requests, WARPS * (ROUNDS + 31));
    assert_int_equal(loads_at("/* first */").accesses, WARPS * (32 * ROUNDS + 31 * 32 / 2));
    /* A pause parts requests of lanes that are not at one round of their loop: those of the
     * first lane are then a few rounds ahead. */
    assert_in_range(loads_at("/* second */").requests, WARPS * ROUNDS, WARPS * (ROUNDS + 31));
    assert_int_equal(loads_at("/* third */").accesses, WARPS * 32 * ROUNDS);
    cpu_end();
}

struct endless {
    enum counting kernel;
    int n;
    struct cpu_options options;
};

static void launch_endless(void *context)
{
    const struct endless *endless = context;
    begin(&endless->options);
    launch_counting(endless->kernel, to, from, endless->n);
}

static void assert_noticed(struct endless *endless, const char *text, const char *where,
                           const char *what)
{
    const struct fault fault = fault_of(launch_endless, endless);
    char start[256];
    snprintf(start, sizeof start, "%s:%d: bug: %s", COUNTING,
             text ? line_of(COUNTING, text) : 0, where);
    assert_says(&fault, start, what, NULL);
}

static void test_kernels_that_do_not_end(void **state)
{
    const struct cpu_options few = {.step_limit = 100000}, soon = {.silent_seconds = 1};
    (void)state;
    assert_noticed(&(struct endless){ENDLESS_READS, 0, few}, "/* forever */",
                   "endless_reads, block (1, 0, 0), thread (3, 0, 0): has made up to ",
                   " accesses and waits and goes on: does the kernel end? (step limit)\n");
    assert_noticed(&(struct endless){ENDLESS_WAITS, 0, few}, "/* again and again */",
                   "endless_waits, block (0, 0, 0), thread (0, 0, 0): has made up to 100001 ",
                   "accesses and waits and goes on");
    assert_noticed(
        &(struct endless){ENDLESS_SILENCE, 1, soon}, "/* the last access */",
        "endless_silence, block (0, 0, 0), thread (1, 0, 0): ",
        "no access to memory and no wait for 1 s: does the loop after this line end?");
    assert_noticed(&(struct endless){ENDLESS_SILENCE, 0, soon}, NULL,
                   "endless_silence, block (0, 0, 0), thread (1, 0, 0): ",
                   "no access to memory and no wait for 1 s");
}

static void test_refused_launches(void **state)
{
    (void)state;
    begin(&(struct cpu_options){.shared_bytes = 100 * 1024});
    assert_string_equal(launch_shared(to, 1025, 1, 8192, false),
                        "use_shared: a block of 1025 x 1 x 1 threads; it may have 1 to 1024, "
                        "and 64 along z");
    assert_string_equal(launch_shared(to, 32, 65536, 128, false),
                        "use_shared: a grid of 1 x 65536 x 1 blocks; it may have 1 to "
                        "2147483647 along x, 65535 along y and z");
    assert_string_equal(launch_shared(to, 32, 1, 49156, false),
                        "use_shared: 49156 bytes of dynamic shared memory a block; it may have "
                        "49152");
    assert_string_equal(
        launch_shared(to, 32, 1, 102404, true),
        "use_shared: 102404 bytes of dynamic shared memory a block; it may have "
        "102400");
    assert_int_equal(cpu_counts()->launches, 0);
    assert_true(isnan(to[0])); /* none has run */
    assert_null(launch_shared(to, 512, 1, 102400, true));
    assert_float_equal(to[511], 1.0f, 0);
    assert_int_equal(cpu_counts()->launches, 1);
    cpu_end();
}

/* 6 query tiles of two heads that share K and V. */
static float q[2 * 96 * 32], k[96 * 32], v[96 * 32], o[2 * 96 * 32], lse[2 * 96];

static struct cpu_launch_counts run_flash2(int threads, bool unobserved)
{
    const struct attention a = {.batch = 1,
                                .heads_q = 2,
                                .heads_kv = 1,
                                .seqlen_q = 96,
                                .seqlen_k = 90,
                                .head_dim = 32,
                                .head_dim_v = 32,
                                .scale = 0.2f,
                                .mask = MASK_CAUSAL,
                                .dtype = DTYPE_F32,
                                .block_q = 16,
                                .block_k = 16};
    const struct device_tensors t = {.Q = q, .K = k, .V = v, .O = o, .LSE = lse};
    struct error error;
    omp_set_num_threads(threads);
    cpu_begin(&(struct cpu_options){.unobserved = unobserved});
    memset(o, 0xff, sizeof o);
    cpu_array("Q", q, sizeof q, CPU_FILLED);
    cpu_array("K", k, sizeof k, CPU_FILLED);
    cpu_array("V", v, sizeof v, CPU_FILLED);
    cpu_array("O", o, sizeof o, CPU_UNWRITTEN);
    cpu_array("LSE", lse, sizeof lse, CPU_UNWRITTEN);
    if (launch_flash2_forward(&a, &t, &error))
        fail_msg("%s", error.text);
    const struct cpu_launch_counts counts = cpu_counts()->launch[0];
    cpu_end();
    return counts;
}

/* All but the order of the lines. */
static void assert_same_counts(const struct cpu_launch_counts *a,
                               const struct cpu_launch_counts *b)
{
    assert_memory_equal(a->hbm, b->hbm, sizeof a->hbm);
    assert_memory_equal(a->shared, b->shared, sizeof a->shared);
    assert_int_equal(a->barriers, b->barriers);
    assert_int_equal(a->warp_barriers, b->warp_barriers);
    assert_int_equal(a->exchanges, b->exchanges);
    assert_int_equal(a->lines, b->lines);
    for (int n = 0; n < a->lines; n++) {
        const struct cpu_line *line = &a->line[n];
        int m = 0;
        while (m < b->lines && (b->line[m].line != line->line || b->line[m].way != line->way ||
                                strcmp(b->line[m].array, line->array) != 0))
            m++;
        assert_true(m < b->lines);
        assert_memory_equal(&line->traffic, &b->line[m].traffic, sizeof line->traffic);
    }
}

static void test_threads_and_observation_change_nothing(void **state)
{
    static float once[sizeof o / sizeof *o];
    uint64_t seed = 1;
    (void)state;
    for (size_t i = 0; i < sizeof q / sizeof *q; i++)
        q[i] = random_normal(&seed);
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        k[i] = random_normal(&seed);
        v[i] = random_normal(&seed);
    }
    const struct cpu_launch_counts alone = run_flash2(1, false);
    assert_true(alone.lines > 0 && alone.shared[CPU_LOAD].requests > 0);
    memcpy(once, o, sizeof o);
    const struct cpu_launch_counts together = run_flash2(MOST_THREADS, false);
    assert_same_counts(&alone, &together);
    assert_memory_equal(once, o, sizeof o);
    const struct cpu_launch_counts unobserved = run_flash2(MOST_THREADS, true);
    assert_memory_equal(once, o, sizeof o);
    assert_int_equal(unobserved.lines, 0);
    assert_int_equal(unobserved.hbm[CPU_LOAD].accesses, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_votes_and_reductions),
        cmocka_unit_test(test_reductions_are_their_shuffles),
        cmocka_unit_test(test_atomics_of_many_blocks),
        cmocka_unit_test(test_three_dimensions),
        cmocka_unit_test(test_callers_tell_places_apart),
        cmocka_unit_test(test_long_loops),
        cmocka_unit_test(test_kernels_that_do_not_end),
        cmocka_unit_test(test_refused_launches),
        cmocka_unit_test(test_threads_and_observation_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
