/* The AI core of an Ascend 910B: what fits its buffers, what is said when something does not,
 * and the ways between them.
 *
 * Protects: the sizes of the buffers, to the byte, and that tiles which do not fit are refused
 * with a table of all of them; that data take no way which the hardware lacks; that a tile
 * which changes its shape forgets what it held.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/fault.h"
#include "kernels/ascend_forward.h"

static struct attention tiles(int block_q, int block_k, int head_dim)
{
    return (struct attention){.batch = 1,
                              .heads_q = 1,
                              .heads_kv = 1,
                              .seqlen_q = 1024,
                              .seqlen_k = 1024,
                              .head_dim = head_dim,
                              .head_dim_v = head_dim,
                              .scale = 0.5f,
                              .dtype = DTYPE_F16,
                              .block_q = block_q,
                              .block_k = block_k};
}

static struct ascend_run run_of(const struct attention *a, const struct ascend *chip)
{
    return (struct ascend_run){.attention = *a, .chip = chip, .scores_dtype = DTYPE_F32};
}

/* What was said; "" if the tiles fit. Valid until the next call. */
static const char *refusal(const struct attention *a, const struct ascend *chip)
{
    static struct error error;
    struct ascend_run run = run_of(a, chip);
    error.text[0] = '\0';
    const enum status status = ascend_count(&run, &error);
    assert_int_equal(status, error.text[0] ? STATUS_ON_CHIP_FULL : STATUS_OK);
    assert_int_equal(run.gpu.launch_count, status == STATUS_OK);
    return error.text;
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in:\n%s", part, text);
}

/* 128 x 256 with d = 128 in f16 fills L0A, L0B and L0C to the last byte. */
static void test_what_fills_the_buffers(void **state)
{
    const struct attention a = tiles(128, 256, 128);
    struct ascend_run run = run_of(&a, &ascend_910b2);
    struct error error;
    (void)state;
    assert_int_equal(ascend_count(&run, &error), STATUS_OK);
    const int64_t *peak = run.gpu.launches[0].peak_bytes;
    assert_int_equal(peak[LEVEL_L0A], 64 << 10);
    assert_int_equal(peak[LEVEL_L0B], 64 << 10);
    assert_int_equal(peak[LEVEL_L0C], 128 << 10);
    assert_int_equal(peak[LEVEL_L1], (32 + 64 + 64 + 64) << 10);
    assert_int_equal(peak[LEVEL_UB], (128 + 64 + 64 + 64) * 1024 + 5 * 128 * 4);
}

static void test_capacities(void **state)
{
    struct ascend small_ub = ascend_910b2, small_l1 = ascend_910b2;
    struct attention a = tiles(128, 256, 128);
    (void)state;
    assert_string_equal(refusal(&a, &ascend_910b2), "");
    a.block_k = 257;
    const char *text = refusal(&a, &ascend_910b2);
    expect_text(text, "ascend_forward");
    expect_text(text, "Ascend-910B");
    for (const char *const *name =
             (const char *const[]){"Qi ", "Kj ", "Vj ", "Pij ", "Sij ", "Qi or Pij ",
                                   "Kj or Vj ", "Sij or Oij ", "Oij ", "Oi ", "m_new ", "Li ",
                                   NULL};
         *name; name++)
        expect_text(text, *name);
    expect_text(text, "all in L0A                    65792 of 65536: too much by 256");
    expect_text(text, "all in L0B                    65792 of 65536: too much by 256");
    expect_text(text, "all in L0C                   131584 of 131072: too much by 512");
    expect_text(text, "left");
    assert_null(strstr(text, "SRAM"));
    /* 256 rows: 128 for each vector core, whose UB holds too little for S, P, Oij and Oi. */
    a = tiles(256, 128, 128);
    text = refusal(&a, &ascend_910b2);
    expect_text(text, "all in UB, both              463872 of 393216: too much by 70656");
    expect_text(text, "all in L0C                   131072 of 131072: left 0");
    /* One byte less than what 128 x 256 needs. */
    a = tiles(128, 256, 128);
    small_ub.capacity[LEVEL_UB] = (128 + 64 + 64 + 64) * 1024 + 5 * 128 * 4 - 1;
    expect_text(refusal(&a, &small_ub), "too much by 1");
    small_l1.capacity[LEVEL_L1] = ((32 + 64 + 64 + 64) << 10) - 1;
    expect_text(refusal(&a, &small_l1), "too much by 1");
}

/* What a 910B refuses, its successor holds. */
static void test_the_next_generation(void **state)
{
    const struct attention a = tiles(256, 128, 128);
    struct ascend_run run = run_of(&a, &ascend_950);
    struct error error;
    (void)state;
    assert_int_equal(ascend_count(&run, &error), STATUS_OK);
    assert_int_equal(run.gpu.launches[0].peak_bytes[LEVEL_UB], 463872);
    assert_true(ascend_950.direct && run.gpu.launches[0].path_bytes[PATH_L0C_TO_UB] > 0);
    assert_int_equal(run.gpu.launches[0].path_bytes[PATH_L0C_TO_GM], 0);
}

/* An odd row belongs to one of the vector cores: the other's half is as large. */
static void test_an_odd_row(void **state)
{
    const struct attention a = tiles(5, 8, 16), even = tiles(6, 8, 16);
    struct ascend_run run = run_of(&a, &ascend_910b2);
    struct ascend_run other = run_of(&even, &ascend_910b2);
    struct error error;
    (void)state;
    assert_int_equal(ascend_count(&run, &error), STATUS_OK);
    assert_int_equal(ascend_count(&other, &error), STATUS_OK);
    assert_int_equal(run.gpu.launches[0].peak_bytes[LEVEL_UB],
                     other.gpu.launches[0].peak_bytes[LEVEL_UB]);
}

/* The AI core's sizes are those of the table of machines, which calls L1 SRAM and the three L0
 * buffers registers. */
static void test_the_table_of_machines(void **state)
{
    const struct machine *machine = machine_find("Ascend-910B");
    const int64_t *capacity = ascend_910b2.capacity;
    (void)state;
    assert_non_null(machine);
    assert_int_equal(ascend_910b2.ai_cores, machine->sms);
    assert_int_equal(capacity[LEVEL_L1], machine->sram_bytes_per_block);
    assert_int_equal(capacity[LEVEL_L0A] + capacity[LEVEL_L0B] + capacity[LEVEL_L0C],
                     machine->register_bytes);
    assert_false(ascend_910b2.direct);
}

/* A use of the engines that the hardware lacks. */
enum misuse {
    LOAD_INTO_L0C,
    MOVE_INTO_UB_BY_MTE1,
    MOVE_OUT_OF_UB_BY_MTE1,
    STORE_UB_BY_FIXPIPE,
    STORE_L0C_BY_MTE3,
    MOVE_L0C_TO_L1_BY_FIXPIPE,
    MOVE_L0C_TO_L1_BY_MTE3,
    MOVE_TO_ANOTHER_DTYPE,
    LOAD_PAST_THE_TENSOR,
    STORE_PAST_THE_TENSOR,
    MISUSES,
};

struct misused {
    enum misuse misuse;
    enum gpu_mode mode;
    struct hbm_tensor *tensor;
};

static void misuse_block(struct thread_block *b, const void *args)
{
    const struct misused *m = args;
    struct tile l1, l0a, l0c, ub;
    tile_alloc(&l1, b, LEVEL_L1, "one", DTYPE_F16, 4, 4);
    tile_alloc(&l0a, b, LEVEL_L0A, "two", DTYPE_F32, 4, 4);
    tile_alloc(&l0c, b, LEVEL_L0C, "three", DTYPE_F32, 4, 4);
    tile_alloc(&ub, b, LEVEL_UB, "four", DTYPE_F32, 4, 4);
    switch (m->misuse) {
    case LOAD_INTO_L0C:
        mte2_load(&l0c, 4, 4, m->tensor, 0, 0);
        break;
    case MOVE_INTO_UB_BY_MTE1:
        mte1_move(&ub, &l1);
        break;
    case MOVE_OUT_OF_UB_BY_MTE1:
        mte1_move(&l0a, &ub);
        break;
    case STORE_UB_BY_FIXPIPE:
        fixpipe_store(m->tensor, 0, &ub);
        break;
    case STORE_L0C_BY_MTE3:
        mte3_store(m->tensor, 0, 0, &l0c);
        break;
    case MOVE_L0C_TO_L1_BY_FIXPIPE:
        fixpipe_move(&l1, &l0c);
        break;
    case MOVE_L0C_TO_L1_BY_MTE3:
        mte3_move(&l1, &l0c);
        break;
    case MOVE_TO_ANOTHER_DTYPE:
        mte1_move(&l0a, &l1);
        break;
    case LOAD_PAST_THE_TENSOR:
        mte2_load(&ub, 4, 4, m->tensor, 0, 1);
        break;
    default:
        mte3_store(m->tensor, 0, 1, &ub);
    }
}

static void commit(void *context)
{
    struct misused *m = context;
    struct gpu gpu;
    struct error error;
    struct hbm_tensor tensor;
    gpu_init(&gpu, machine_find("Ascend-910B"), m->mode);
    if (hbm_alloc(&tensor, &gpu, "T", DTYPE_F32, 1, 4, 4, &error))
        exit(1);
    m->tensor = &tensor;
    if (gpu_launch(&gpu,
                   &(struct launch){.name = "faulty",
                                    .grid = {1, 1, 1},
                                    .block = misuse_block,
                                    .args = m,
                                    .capacity = ascend_910b2.capacity},
                   &error))
        exit(1);
}

static void test_ways_that_do_not_exist(void **state)
{
    static const char *const messages[MISUSES] = {
        [LOAD_INTO_L0C] = "MTE2 loads tile three, which is neither in L1 nor in UB",
        [MOVE_INTO_UB_BY_MTE1] = "MTE1 moves tile one to tile four",
        [MOVE_OUT_OF_UB_BY_MTE1] = "MTE1 moves tile four to tile two",
        [STORE_UB_BY_FIXPIPE] = "FixPipe stores tile four, which is not in L0C",
        [STORE_L0C_BY_MTE3] = "MTE3 stores tile three, which is not in UB",
        [MOVE_L0C_TO_L1_BY_FIXPIPE] = "FixPipe moves tile three to tile one",
        [MOVE_L0C_TO_L1_BY_MTE3] = "MTE3 moves tile three to tile one",
        [MOVE_TO_ANOTHER_DTYPE] = "L1 -> L0A: tile one to tile two",
        [LOAD_PAST_THE_TENSOR] = "tile four of 4 x 4 at row 1 of tensor T of 4 x 4",
        [STORE_PAST_THE_TENSOR] = "tile four of 4 x 4 at row 1 of tensor T of 4 x 4",
    };
    (void)state;
    for (int i = 0; i < 2 * MISUSES; i++) {
        struct misused m = {(enum misuse)(i / 2), i % 2 ? GPU_COUNTS : GPU_DATA, NULL};
        const struct fault fault = fault_of(commit, &m);
        if (!fault_is_bug(&fault, "sim/core/ai_core.c", messages[i / 2]))
            fail_msg("expected '%s', got (aborted: %d) %s", messages[i / 2], fault.aborted,
                     fault.text);
    }
}

/* What a block saw of a tile that changes its shape. */
struct shapes {
    bool fresh, forgotten;
};

static void shaping_block(struct thread_block *b, const void *args)
{
    struct shapes *seen = *(struct shapes *const *)args;
    struct tile t;
    tile_alloc(&t, b, LEVEL_UB, "t", DTYPE_F32, 4, 6);
    seen->fresh = isnan(t.data[0]);
    float *data = tile_writable(&t);
    for (int i = 0; i < 24; i++)
        data[i] = 1.0f;
    tile_shape(&t, 8, 3); /* as many elements */
    seen->forgotten = t.rows == 8 && t.cols == 3;
    for (int i = 0; i < 24; i++)
        seen->forgotten = seen->forgotten && isnan(t.data[i]);
}

static void too_large_block(struct thread_block *b, const void *args)
{
    struct tile t;
    (void)args;
    tile_alloc(&t, b, LEVEL_UB, "t", DTYPE_F32, 4, 6);
    tile_shape(&t, 5, 5);
}

static void commit_shape(void *context)
{
    struct gpu gpu;
    struct error error;
    gpu_init(&gpu, machine_find("Ascend-910B"), *(enum gpu_mode *)context);
    if (gpu_launch(&gpu,
                   &(struct launch){.name = "faulty",
                                    .grid = {1, 1, 1},
                                    .block = too_large_block,
                                    .capacity = ascend_910b2.capacity},
                   &error))
        exit(1);
}

static void test_a_tile_changes_its_shape(void **state)
{
    struct gpu gpu;
    struct shapes seen = {false, false}, *const pointer = &seen;
    (void)state;
    gpu_init(&gpu, machine_find("Ascend-910B"), GPU_DATA);
    launch_ok(&gpu, &(struct launch){.name = "shaping",
                                     .grid = {1, 1, 1},
                                     .block = shaping_block,
                                     .args = &pointer,
                                     .capacity = ascend_910b2.capacity});
    assert_true(seen.fresh && seen.forgotten);
    for (enum gpu_mode mode = GPU_DATA; mode <= GPU_COUNTS; mode++) {
        const struct fault fault = fault_of(commit_shape, &mode);
        if (!fault_is_bug(&fault, "sim/core/on_chip.c", "tile t made for 24 elements"))
            fail_msg("%s", fault.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fills_the_buffers),
        cmocka_unit_test(test_capacities),
        cmocka_unit_test(test_the_next_generation),
        cmocka_unit_test(test_an_odd_row),
        cmocka_unit_test(test_the_table_of_machines),
        cmocka_unit_test(test_ways_that_do_not_exist),
        cmocka_unit_test(test_a_tile_changes_its_shape),
    };
    return cmocka_run_group_tests_name("ai_core", tests, NULL, NULL);
}
