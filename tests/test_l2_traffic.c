/* The model of L2 and DRAM on launches of the simulator.
 *
 * Protects: that the observer of a GPU sees every byte that is counted; the cases that can be
 * told without a model: cold and warm caches, data that fit and data that do not, copies in
 * both partitions; that a sample stands for all lines; that results do not depend on threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/core_fixture.h"
#include "kernels/attention_forward.h"
#include "kernels/attention_kernels.h"
#include "kernels/basic_kernels.h"
#include "models/l2_traffic.h"

static struct l2_traffic *new_l2(const struct l2_options *options)
{
    static struct l2_traffic l2; /* in place: its observer points to it */
    struct error error;
    if (l2_traffic_init(&l2, options, &error))
        fail_msg("%s", error.text);
    return &l2;
}

static struct attention problem(int heads, int seqlen, int head_dim)
{
    return (struct attention){.batch = 1,
                              .heads_q = heads,
                              .heads_kv = heads,
                              .seqlen_q = seqlen,
                              .seqlen_k = seqlen,
                              .head_dim = head_dim,
                              .head_dim_v = head_dim,
                              .scale = 1,
                              .dtype = DTYPE_F32,
                              .block_q = 64,
                              .block_k = 64};
}

/* Runs the kernel without data on a GPU that is observed; its tensors are the same every time.
 */
static struct account run_kernel(attention_kernel *kernel, const struct attention *a,
                                 const struct move_observer *observer)
{
    struct gpu gpu;
    struct attention_tensors t = {0};
    struct error error;
    gpu_init(&gpu, machine_find("H200"), GPU_COUNTS);
    gpu.observer = observer;
    const int planes = a->batch * a->heads_q, d = a->head_dim;
    t.Q = new_tensor(&gpu, "Q", a->dtype, planes, a->seqlen_q, d);
    t.K = new_tensor(&gpu, "K", a->dtype, planes, a->seqlen_k, d);
    t.V = new_tensor(&gpu, "V", a->dtype, planes, a->seqlen_k, d);
    t.O = new_tensor(&gpu, "O", a->dtype, planes, a->seqlen_q, d);
    t.LSE = new_tensor(&gpu, "LSE", DTYPE_F32, planes, a->seqlen_q, 1);
    if (kernel(&gpu, a, &t, &error))
        fail_msg("%s", error.text);
    return gpu_account(&gpu);
}

/* Bytes that a launch's observer saw. */
struct seen {
    int64_t bytes[DIRECTION_COUNT], blocks;
    int last_z;
    bool in_order;
};

static void see(void *context, const struct thread_block *b, struct move_list *moves)
{
    struct seen *seen = context;
    for (int64_t k = 0; k < moves->count; k++)
        seen->bytes[moves->moves[k].direction] +=
            (int64_t)moves->moves[k].rows * moves->moves[k].row_bytes;
    seen->in_order = seen->in_order && b->z >= seen->last_z;
    seen->last_z = b->z;
    seen->blocks++;
}

static void test_an_observer_sees_every_byte_of_every_block(void **state)
{
    static const struct {
        attention_kernel *kernel;
        int64_t blocks;
    } cases[] = {{flash2_forward, 40 * 47}, {flash1_forward, 40}};
    (void)state;
    for (size_t k = 0; k < LENGTH(cases); k++) {
        struct seen seen = {.in_order = true};
        const struct attention a = problem(40, 3001, 20); /* ragged, and many alike blocks */
        const struct account account =
            run_kernel(cases[k].kernel, &a, &(struct move_observer){see, &seen});
        const struct account unobserved = run_kernel(cases[k].kernel, &a, NULL);
        assert_true(account_equal(&account, &unobserved));
        for (int direction = 0; direction < DIRECTION_COUNT; direction++)
            assert_int_equal(seen.bytes[direction],
                             account_total(&account).of[direction].bytes);
        assert_int_equal(seen.blocks, cases[k].blocks);
        assert_true(seen.in_order);
    }
}

/* 4 MB of Q, K, V and O in an L2 of 60: read once, and O stays. */
static void test_what_fits_is_read_once_and_not_written(void **state)
{
    struct l2_traffic *l2 =
        new_l2(&(struct l2_options){.machine = machine_find("H200"), .sample = 1});
    const struct attention a = problem(2, 2048, 64);
    const int64_t tensor = INT64_C(2) * 2048 * 64 * 4, lse = INT64_C(2) * 2048 * 4;
    (void)state;
    const struct account account = run_kernel(flash2_forward, &a, &l2->observer);
    l2_traffic_finish(l2);
    assert_int_equal(l2->launch_count, 1);
    assert_string_equal(l2->launches[0].name, "flash2_forward");
    assert_int_equal(l2->launches[0].dram_read_bytes, 3 * tensor);
    assert_int_equal(l2->launches[0].dram_written_bytes, 0);
    assert_int_equal(l2->launches[0].dirty_bytes, tensor + lse);
    /* Its tiles begin and end on sectors, so that a request's sectors are the line's. */
    assert_int_equal(l2->launches[0].read_sectors,
                     account_total(&account).of[DIRECTION_READ].sectors);
    assert_int_equal(l2->launches[0].write_sectors,
                     account_total(&account).of[DIRECTION_WRITE].sectors);

    (void)run_kernel(flash2_forward, &a, &l2->observer); /* now it is warm */
    l2_traffic_finish(l2);
    assert_int_equal(l2->launches[1].dram_read_bytes, 0);
    assert_int_equal(l2->launches[1].dirty_bytes, tensor + lse);
    l2_traffic_free(l2);
}

static struct l2_launch add_vectors(struct l2_traffic *l2, int count)
{
    struct gpu gpu;
    struct error error;
    gpu_init(&gpu, l2->options.machine, GPU_COUNTS);
    gpu.observer = &l2->observer;
    struct hbm_tensor a = new_tensor(&gpu, "a", DTYPE_F32, 1, 1, count);
    struct hbm_tensor b = new_tensor(&gpu, "b", DTYPE_F32, 1, 1, count);
    struct hbm_tensor c = new_tensor(&gpu, "c", DTYPE_F32, 1, 1, count);
    if (vector_add(&gpu, &c, &a, &b, &error))
        fail_msg("%s", error.text);
    l2_traffic_finish(l2);
    return l2->launches[l2->launch_count - 1];
}

/* A stream: warm or cold makes no difference to what is read, and what is written in the end is
 * all but what L2 still holds. */
static void test_a_stream_larger_than_l2_goes_through(void **state)
{
    struct l2_traffic *l2 = new_l2(&(struct l2_options){.machine = machine_find("H200")});
    enum { COUNT = 1 << 25 };
    const int64_t bytes = (int64_t)COUNT * 4;
    (void)state;
    const struct l2_launch cold = add_vectors(l2, COUNT);
    assert_int_equal(cold.dram_read_bytes, 2 * bytes);
    assert_int_equal(cold.dram_written_bytes + cold.dirty_bytes, bytes);
    assert_true(cold.dirty_bytes > 0 && cold.dirty_bytes < l2->options.machine->l2_bytes / 2);
    const struct l2_launch warm = add_vectors(l2, COUNT);
    assert_int_equal(warm.dram_read_bytes, 2 * bytes);
    assert_int_equal(cold.dirty_bytes + bytes, warm.dram_written_bytes + warm.dirty_bytes);
    l2_traffic_free(l2);
}

/* Standard attention: what one launch writes the next reads, from L2 if it fits there. */
static void test_launches_hand_data_over_in_l2(void **state)
{
    struct l2_options options = {.machine = machine_find("H200")};
    struct attention a = problem(1, 1024, 64); /* S and P: 4 MB each */
    int64_t read[2][3];
    (void)state;
    a.tiled_gemm = true;
    for (int cold = 0; cold < 2; cold++) {
        options.cold = cold == 1;
        struct l2_traffic *l2 = new_l2(&options);
        (void)run_kernel(standard_attention, &a, &l2->observer);
        l2_traffic_finish(l2);
        assert_int_equal(l2->launch_count, 3);
        for (int k = 0; k < 3; k++)
            read[cold][k] = l2->launches[k].dram_read_bytes;
        l2_traffic_free(l2);
    }
    const int64_t tensor = INT64_C(1024) * 64 * 4, scores = INT64_C(1024) * 1024 * 4;
    assert_int_equal(read[0][0], 2 * tensor);
    assert_int_equal(read[0][1], 0);
    assert_int_equal(read[0][2], tensor);
    assert_int_equal(read[1][0], 2 * tensor);
    assert_int_equal(read[1][1], scores);
    assert_int_equal(read[1][2], scores + tensor);
}

static struct l2_launch flash2_launch(const struct attention *a, int sample)
{
    struct l2_traffic *l2 = new_l2(
        &(struct l2_options){.machine = machine_find("H200"), .sample = sample, .cold = true});
    (void)run_kernel(flash2_forward, a, &l2->observer);
    l2_traffic_finish(l2);
    const struct l2_launch launch = l2->launches[0];
    l2_traffic_free(l2);
    return launch;
}

static void assert_near(int64_t a, int64_t b, double tolerance)
{
    if (!(fabs((double)a / (double)b - 1) <= tolerance))
        fail_msg("%lld is not within %g of %lld", (long long)a, tolerance, (long long)b);
}

/* K and V of the heads in work come to more than a partition: reads are more than once. */
static void test_a_sample_stands_for_all_lines(void **state)
{
    const struct attention a = problem(64, 1024, 256);
    const int64_t once = 3 * INT64_C(64) * 1024 * 256 * 4;
    const struct l2_launch all = flash2_launch(&a, 1);
    (void)state;
    assert_true(all.dram_read_bytes >= once);
    for (int sample = 2; sample <= 16; sample *= 2) {
        const struct l2_launch some = flash2_launch(&a, sample);
        assert_near(some.dram_read_bytes, all.dram_read_bytes, 0.005);
        assert_near(some.dram_written_bytes, all.dram_written_bytes, 0.01);
    }
}

static void test_threads_change_nothing(void **state)
{
    const struct attention a = problem(8, 700, 64);
    (void)state;
    omp_set_num_threads(1);
    const struct l2_launch one = flash2_launch(&a, 1);
    omp_set_num_threads(5);
    const struct l2_launch five = flash2_launch(&a, 1);
    assert_memory_equal(&one, &five, sizeof one);
}

static void test_the_resident_blocks_are_those_that_fit(void **state)
{
    const struct machine *h200 = machine_find("H200");
    const int64_t flash2[LEVEL_COUNT] = {49152, 34000}, small[LEVEL_COUNT] = {0, 100};
    const int64_t whole[LEVEL_COUNT] = {INT64_C(1) << 30, 0};
    (void)state;
    assert_int_equal(l2_blocks_per_sm(h200, flash2), 4);
    assert_int_equal(l2_blocks_per_sm(h200, small), 32);
    assert_int_equal(l2_blocks_per_sm(h200, whole), 1);
}

static void test_options_that_cannot_be_are_refused(void **state)
{
    struct l2_traffic l2;
    struct error error;
    struct machine three = *machine_find("H200");
    three.l2_partitions = 3;
    (void)state;
    assert_int_equal(l2_traffic_init(&l2, &(struct l2_options){.machine = &three}, &error),
                     STATUS_BAD_ARGUMENT);
    assert_string_equal(error.text, "machine H200: 3 L2 partitions, must be 1 to 2");
    l2_traffic_free(&l2);
    static const struct {
        int64_t l2_bytes;
        int line_bytes, sector_bytes;
        const char *message;
    } machines[] = {
        {60 << 20, 256, 32,
         "machine H200: l2_line = 256 B: the model of L2 has lines of 128 B"},
        {60 << 20, 128, 64,
         "machine H200: l2_sector = 64 B: the model of L2 has sectors of 32 B"},
        {8064, 128, 32,
         "machine H200: l2_size = 8064 B: the model of L2 needs at least 8192 B"},
    };
    for (size_t k = 0; k < LENGTH(machines); k++) {
        struct machine other = *machine_find("H200");
        other.l2_bytes = machines[k].l2_bytes;
        other.l2_line_bytes = machines[k].line_bytes;
        other.l2_sector_bytes = machines[k].sector_bytes;
        assert_int_equal(l2_traffic_init(&l2, &(struct l2_options){.machine = &other}, &error),
                         STATUS_BAD_ARGUMENT);
        assert_string_equal(error.text, machines[k].message);
    }
    assert_int_equal(
        l2_traffic_init(&l2, &(struct l2_options){.machine = machine_default(), .sample = 6},
                        &error),
        STATUS_BAD_ARGUMENT);
    assert_string_equal(error.text, "sample 6: must be a power of two up to 32");
    assert_int_equal(
        l2_traffic_init(&l2, &(struct l2_options){.machine = machine_default(), .sample = 64},
                        &error),
        STATUS_BAD_ARGUMENT);
    assert_string_equal(error.text, "sample 64: must be a power of two up to 32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_observer_sees_every_byte_of_every_block),
        cmocka_unit_test(test_what_fits_is_read_once_and_not_written),
        cmocka_unit_test(test_a_stream_larger_than_l2_goes_through),
        cmocka_unit_test(test_launches_hand_data_over_in_l2),
        cmocka_unit_test(test_a_sample_stands_for_all_lines),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_the_resident_blocks_are_those_that_fit),
        cmocka_unit_test(test_options_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("L2 traffic", tests, NULL, NULL);
}
