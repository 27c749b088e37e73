/* What the operations on tiles refuse: bugs in kernels that would read or write outside a tile,
 * or mix the memory of two thread blocks.
 *
 * Protects: for every operation and every operand, extents beyond the tile and a tile of
 * another block stop the program with file and line, with data and in counts-only mode alike.
 * Each fault is committed in a child process; all that go unnoticed are listed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/fault.h"
#include "common/tile_op_table.h"
#include "core/trace.h"

/* What is wrong with one operand of an operation. */
enum wrong {
    WRONG_NOTHING,
    WRONG_ROWS,  /* one row less than the operation works on */
    WRONG_COLS,  /* one column less */
    WRONG_BLOCK, /* belongs to another thread block */
    WRONG_COUNT
};

static const char *const wrong_names[WRONG_COUNT] = {"nothing", "too few rows",
                                                     "too few columns", "another block"};

struct op_fault {
    const struct tile_op *op;
    int operand;
    enum wrong wrong;
    enum gpu_mode mode;
};

static const struct extents extents = {4, 5, 3};

/* True if the operand has the fault to offer: a statistic has one column whatever it does. */
static bool applies(const struct op_fault *f)
{
    const char *shape = f->op->shape[f->operand];
    if (f->wrong == WRONG_BLOCK)
        return tile_op_operands(f->op) > 1;
    return f->wrong == WRONG_ROWS || (f->wrong == WRONG_COLS && shape[1] != '1');
}

static void op_fault_block(struct thread_block *b, const void *args)
{
    const struct op_fault *f = args;
    struct tile tiles[MOST_OPERANDS], *operands[MOST_OPERANDS];
    struct thread_block other = *b;
    for (int k = 0; k < tile_op_operands(f->op); k++) {
        const char *shape = f->op->shape[k];
        const bool here = k == f->operand;
        const int rows = tile_op_extent(shape[0], &extents) - (here && f->wrong == WRONG_ROWS);
        const int cols = tile_op_extent(shape[1], &extents) - (here && f->wrong == WRONG_COLS);
        struct thread_block *owner = here && f->wrong == WRONG_BLOCK ? &other : b;
        owner->tile_count = k; /* a slot of its own */
        tile_alloc(&tiles[k], owner, LEVEL_SRAM, "operand", DTYPE_F32, rows, cols);
        tile_fill(&tiles[k], 1.0f);
        operands[k] = &tiles[k];
    }
    f->op->call(operands, &extents);
}

static void commit(struct gpu *gpu, block_function *block, const void *args)
{
    struct error error = {0};
    const struct launch launch = {
        .name = "faulty", .grid = {1, 1, 1}, .block = block, .args = args};
    if (gpu_launch(gpu, &launch, &error) != STATUS_OK)
        exit(1);
}

static void commit_op(void *context)
{
    const struct op_fault *f = context;
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), f->mode);
    commit(&gpu, op_fault_block, f);
}

/* Commits the fault; 1, with a line that names it, if nothing stopped it. */
static int unnoticed(struct op_fault *f)
{
    const struct fault fault = fault_of(commit_op, f);
    if (fault_is_bug(&fault, "sim/ops/tile_ops.c", "operand"))
        return 0;
    print_error("%s, operand %d: %s (%s) goes unnoticed %s\n", f->op->name, f->operand,
                wrong_names[f->wrong], f->mode == GPU_DATA ? "data" : "counts", fault.text);
    return 1;
}

static void test_operations_refuse_wrong_operands(void **state)
{
    int count, missed = 0;
    const struct tile_op *table = tile_op_table(&count);
    (void)state;
    for (int i = 0; i < count * MOST_OPERANDS * WRONG_COUNT * 2; i++) {
        struct op_fault f = {&table[i / 2 / WRONG_COUNT / MOST_OPERANDS],
                             i / 2 / WRONG_COUNT % MOST_OPERANDS,
                             (enum wrong)(i / 2 % WRONG_COUNT), i % 2 ? GPU_COUNTS : GPU_DATA};
        if (f.operand < tile_op_operands(f.op) && applies(&f))
            missed += unnoticed(&f);
    }
    assert_int_equal(missed, 0);
}

/* The same operands with nothing wrong pass, so it is the fault that is refused. */
static void test_right_operands_pass(void **state)
{
    int count;
    const struct tile_op *table = tile_op_table(&count);
    (void)state;
    for (int i = 0; i < 2 * count; i++) {
        struct op_fault f = {&table[i / 2], 0, WRONG_NOTHING, i % 2 ? GPU_COUNTS : GPU_DATA};
        const struct fault fault = fault_of(commit_op, &f);
        assert_false(fault.aborted);
        assert_string_equal(fault.text, "");
    }
}

/* Faults of the calls that are not in the table. */
enum other_fault {
    COPY_OF_ANOTHER_SHAPE,
    COPY_FROM_ANOTHER_BLOCK,
    MASK_BEYOND_ROWS,
    MASK_BEYOND_COLUMNS,
    NEGATIVE_ROWS,
    NEGATIVE_COLUMNS,
    STEP_ROWS_BEYOND_M,
    STEP_ROWS_BEYOND_O,
    STEP_ROWS_OF_M_ALONE,
    STEP_ROWS_OF_NOTHING,
    OTHER_FAULT_COUNT
};

static void other_fault_block(struct thread_block *b, const void *args)
{
    const enum other_fault fault = *(const enum other_fault *)args;
    const struct attention a = {.seqlen_q = 9, .seqlen_k = 9, .mask = MASK_CAUSAL};
    struct thread_block other = *b;
    struct tile S, T, U, m, l;
    tile_alloc(&S, b, LEVEL_SRAM, "S", DTYPE_F32, 4, 5);
    tile_alloc(&T, b, LEVEL_SRAM, "T", DTYPE_F32, 5, 4);
    tile_alloc(&m, b, LEVEL_SRAM, "m", DTYPE_F32, 3, 1);
    tile_alloc(&l, b, LEVEL_SRAM, "l", DTYPE_F32, 5, 1);
    other.tile_count = 4;
    tile_alloc(&U, &other, LEVEL_SRAM, "U", DTYPE_F32, 4, 5);
    if (fault == COPY_OF_ANOTHER_SHAPE)
        tile_copy(&S, &T);
    else if (fault == COPY_FROM_ANOTHER_BLOCK)
        tile_copy(&S, &U);
    else if (fault == MASK_BEYOND_ROWS)
        tile_mask(&S, &a, 0, 0, 5, 5);
    else if (fault == MASK_BEYOND_COLUMNS)
        tile_mask(&S, &a, 0, 0, 4, 6);
    else if (fault == NEGATIVE_ROWS)
        tile_exp(&S, &m, -1, 2);
    else if (fault == NEGATIVE_COLUMNS)
        tile_exp(&S, &m, 2, -1);
    else if (fault == STEP_ROWS_BEYOND_M)
        block_step_rows(b, "step", 0, 0, 4, &m, &l, &S);
    else if (fault == STEP_ROWS_BEYOND_O)
        block_step_rows(b, "step", 0, 0, 5, NULL, NULL, &S);
    else if (fault == STEP_ROWS_OF_M_ALONE)
        block_step_rows(b, "step", 0, 0, 3, &m, NULL, &S);
    else if (fault == STEP_ROWS_OF_NOTHING)
        block_step_rows(b, "step", 0, 0, 3, NULL, NULL, NULL);
}

static void ignore_record(void *context, const struct step_record *record)
{
    (void)context, (void)record;
}

static void commit_other(void *context)
{
    struct trace trace = {ignore_record, NULL};
    struct gpu gpu;
    gpu_init(&gpu, machine_default(), GPU_DATA);
    gpu.trace = &trace;
    commit(&gpu, other_fault_block, context);
}

static void test_other_faults(void **state)
{
    (void)state;
    int missed = 0;
    for (enum other_fault f = 0; f < OTHER_FAULT_COUNT; f++) {
        const struct fault fault = fault_of(commit_other, &f);
        const bool step = f >= STEP_ROWS_BEYOND_M;
        if (fault_is_bug(&fault, step ? "sim/core/trace.c" : "sim/ops/tile_ops.c", ""))
            continue;
        print_error("fault %d goes unnoticed %s\n", (int)f, fault.text);
        missed++;
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_operands_pass),
        cmocka_unit_test(test_operations_refuse_wrong_operands),
        cmocka_unit_test(test_other_faults),
    };
    return cmocka_run_group_tests_name("tile_ops_faults", tests, NULL, NULL);
}
