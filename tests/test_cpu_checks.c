/* What the CPU says of a kernel that does something wrong, fault by fault: small kernels of
 * cpu/kernels/memory.cu and waits.cu, and none of what is right there.
 *
 * Protects: races in shared memory, across warps and in one, of writes, reads and atomics; what
 * orders accesses and what does not; reads of what nobody has written, accesses outside and
 * misaligned ones, in HBM and shared memory; waits for lanes and threads that never come. Each
 * stops with both lines, the thread, the other thread and the barrier that is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "cpu/kernels/own.h"
#include "cpu/message.h"
#include "cuda/cpu/cpu.h"

#define MEMORY "tests/cpu/kernels/memory.cu"
#define WAITS_CU "tests/cpu/kernels/waits.cu"

enum { THREADS = 64, AROUND = 16 };
static float memory[AROUND + THREADS + AROUND] __attribute__((aligned(256)));
static float *const x = memory + AROUND;

static void begin(enum cpu_content content, int64_t shared_bytes)
{
    for (int i = 0; i < THREADS; i++)
        x[i] = (float)i;
    cpu_begin(&(struct cpu_options){.shared_bytes = shared_bytes});
    cpu_array("x", x, THREADS * sizeof *x, content);
}

static void use_memory(void *context)
{
    const enum memory_use use = *(const enum memory_use *)context;
    begin(use >= UNWRITTEN_HBM && use <= UNWRITTEN_ATOMIC ? CPU_UNWRITTEN : CPU_FILLED,
          use == STATIC_BESIDE_DYNAMIC ? 8192 : 0);
    if (use == MISALIGNED_HBM)
        launch_memory(use, (float *)(void *)((char *)x + 2));
    else
        launch_memory(use, x);
    cpu_end();
}

/* Memory ordered as it must be: what comes out is what the kernel says. */
static void test_right_uses(void **state)
{
    (void)state;
    use_memory(&(enum memory_use){WARP_BARRIER_ORDERS});
    for (int i = 0; i < THREADS; i++)
        assert_float_equal(x[i], (float)((THREADS - 1 - i) ^ 1), 0);
    use_memory(&(enum memory_use){ATOMICS_TOGETHER});
    for (int i = 0; i < THREADS; i++)
        assert_float_equal(x[i], (i % 2 ? 1024 : 992), 0); /* sums of odd and even numbers */
    use_memory(&(enum memory_use){TWO_INDICES});
    for (int i = 0; i < THREADS; i++) {
        const int turned = i % 8 * 8 + i / 8;
        assert_float_equal(x[i], (float)turned + 0.5f, 0);
    }
}

struct race {
    enum memory_use use;
    const char *at, *thread, *what, *other, *did, *other_at, *missing;
};

#define IN_WARP "no __syncwarp() or __syncthreads() between\n"
#define IN_BLOCK "no __syncthreads() between\n"
static const struct race races[] = {
    {WRITES_OF_TWO_WARPS, "/* two warps */", "32", "writes element 0 of s", "thread (0, 0, 0)",
     "writes", "/* two warps */", IN_BLOCK},
    {WRITES_OF_ONE_WARP, "/* one warp */", "1", "writes element 0 of s", "thread (0, 0, 0)",
     "writes", "/* one warp */", IN_WARP},
    {WRITE_THEN_READ, "/* read by the other warp */", "32", "reads element 0 of s",
     "thread (0, 0, 0)", "writes", "/* written by another warp */", IN_BLOCK},
    {WRITE_THEN_READ_IN_WARP, "/* read by another lane */", "1", "reads element 0 of s",
     "thread (0, 0, 0)", "writes", "/* written by a lane */", IN_WARP},
    {READ_THEN_WRITE, "/* written by the other warp */", "32", "writes element 32 of s",
     "thread (0, 0, 0)", "reads", "/* read by a warp */", IN_BLOCK},
    {READ_THEN_WRITE_IN_WARP, "/* written by another lane */", "1", "writes element 1 of s",
     "thread (0, 0, 0)", "reads", "/* read by a lane */", IN_WARP},
    {SHUFFLE_BETWEEN, "/* read after the shuffle */", "0", "reads element 1 of s",
     "thread (1, 0, 0)", "writes", "/* written before the shuffle */", IN_WARP},
    {STORE_THEN_ATOMIC, "/* atomic after it */", "1", "writes element 0 of s",
     "thread (0, 0, 0)", "writes", "/* plain store */", IN_WARP},
    {ATOMIC_THEN_STORE, "/* store after it */", "40", "writes element 0 of s",
     "thread (0, 0, 0)", "writes", "/* atomic before */", IN_BLOCK},
    {ATOMIC_THEN_LOAD, "/* load after them */", "63", "reads element 0 of s",
     "thread (0, 0, 0)", "writes", "/* atomics of all */", IN_BLOCK},
    {STORE_BEFORE_ATOMICS, "/* atomic of another warp */", "40", "writes element 0 of s",
     "a thread of warp 0", "has stored to before the atomic", "/* after its own store */",
     IN_BLOCK},
};

static void assert_race(const struct race *race)
{
    const struct fault fault = fault_of(use_memory, &(enum memory_use){race->use});
    char start[256], other[128], at[128];
    snprintf(start, sizeof start,
             "%s:%d: bug: kernel, block (0, 0, 0), thread (%s, 0, 0): race: %s", MEMORY,
             line_of(MEMORY, race->at), race->thread, race->what);
    snprintf(other, sizeof other, ", which %s", race->other);
    snprintf(at, sizeof at, " %s at %s:%d, ", race->did, MEMORY,
             line_of(MEMORY, race->other_at));
    assert_says(&fault, start, other, at, race->missing, NULL);
}

static void test_races(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof races / sizeof races[0]; n++)
        assert_race(&races[n]);
}

/* What one thread does wrong alone, or cannot get: the rest of the message. */
struct wrong {
    int kernel;
    const char *at, *thread, *what;
};

static const struct wrong wrongs[] = {
    {UNWRITTEN_STATIC, "/* static, unwritten */", "0",
     "reads element 0 of never, which nobody has written"},
    {UNWRITTEN_DYNAMIC, "/* dynamic, unwritten */", "5",
     "reads element 5 of shared memory, which nobody has written"},
    {UNWRITTEN_HBM, "/* HBM, unwritten */", "5",
     "load of element 5 of x, which nobody has written"},
    {UNWRITTEN_ATOMIC, "/* atomic, unwritten */", "0",
     "atomic of element 0 of x, which nobody has written"},
    {STORE_BEHIND, "/* behind */", "63",
     "store of 4 bytes outside all arrays: 256 bytes after the start of x, which has 256"},
    {LOAD_BEFORE, "/* before */", "0", "load of 4 bytes outside all arrays"},
    {BEHIND_STATIC, "/* behind s */", "63",
     "store of 4 bytes outside the block's shared memory: 256 bytes after the start of s, "
     "which "
     "has 256"},
    {BEHIND_ROWS, "/* behind rows */", "56",
     "store of 4 bytes outside the block's shared memory: 256 bytes after the start of rows, "
     "which has 256"},
    {BEHIND_DYNAMIC, "/* behind shared */", "63",
     "store of 4 bytes outside the block's shared memory: 256 bytes after the start of shared "
     "memory, which has 256"},
    {MISALIGNED_HBM, "/* between elements */", "0",
     "store of 4 bytes at 2 bytes after the start of x: not a multiple"},
    {MISALIGNED_SHARED, "/* between fours */", "1",
     "load of 16 bytes at 4 bytes after the start of shared memory: not a multiple"},
    {TOO_MUCH_STATIC, "/* 49156 bytes */", "0",
     "s: 49156 bytes of static shared memory; CUDA has 49152"},
    {STATIC_BESIDE_DYNAMIC, "/* 8192 bytes */", "0",
     "s: 8192 bytes of static and 256 of dynamic shared memory; a block may have 8192"},
};

static void test_accesses_that_are_wrong(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof wrongs / sizeof wrongs[0]; n++) {
        enum memory_use use = (enum memory_use)wrongs[n].kernel;
        const struct fault fault = fault_of(use_memory, &use);
        char text[512];
        snprintf(text, sizeof text,
                 "%s:%d: bug: kernel, block (0, 0, 0), thread (%s, 0, 0): %s\n", MEMORY,
                 line_of(MEMORY, wrongs[n].at), wrongs[n].thread, wrongs[n].what);
        assert_says(&fault, text, NULL);
    }
}

/* Block 1 finds nothing of what block 0 had in shared memory, though it lies in one place. */
static void test_shared_memory_is_not_left_to_others(void **state)
{
    const struct fault fault = fault_of(use_memory, &(enum memory_use){LEFT_BY_A_BLOCK});
    char text[256];
    (void)state;
    snprintf(
        text, sizeof text,
        "%s:%d: bug: kernel, block (1, 0, 0), thread (0, 0, 0): reads element 0 of s, which "
        "nobody has written\n",
        MEMORY, line_of(MEMORY, "/* of the block before */"));
    assert_says(&fault, text, NULL);
}

static void do_wait(void *context)
{
    begin(CPU_FILLED, 0);
    launch_wait(*(const enum wait *)context, x);
    cpu_end();
}

/* other_at: the line that ends the message; NULL: none. */
static const struct {
    struct wrong here;
    const char *other_at;
} waits[] = {
    {{ENDED_LANE, "/* one has ended */", "",
      "waits for the lanes 0xffffffff of its warp, but lane 5 has ended\n"},
     NULL},
    {{NOT_IN_MASK, "/* takes from another */", "0",
      "takes a value from lane 20 of its warp, which passes none\n"},
     NULL},
    {{NOT_ITSELF_IN_MASK, "/* with the mask of others */", "",
      "waits for the lanes 0xffff of its warp, itself not one\n"},
     NULL},
    {{EMPTY_MASK, "/* for nobody */", "",
      "waits for the lanes 0x0 of its warp, itself not one\n"},
     NULL},
    {{NO_SUCH_LANE, "/* half a warp */", "",
      "waits for lane 16 of its warp, which does not exist\n"},
     NULL},
    {{TWO_MASKS, "/* all */", "",
      "waits for the lanes 0xffffffff of its warp, but lane 16 has ended\n"},
     NULL},
    {{TWO_KINDS_OF_WAIT, "/* a barrier of the warp */", "",
      "waits for the lanes 0xffffffff of its warp, but lane 0 waits at a shuffle or vote at "},
     "/* a shuffle */"},
    {{TWO_REDUCTIONS, "/* a maximum */", "",
      "waits for the lanes 0xffffffff of its warp, but lane 0 waits at a shuffle or vote at "},
     "/* a sum */"},
    {{ENDED_IN_REDUCTION, "/* the last has ended */", "",
      "waits for the lanes 0xffffffff of its warp, but lane 31 has ended\n"},
     NULL},
    {{WARP_AND_BLOCK, "/* for the warp */", "",
      "waits for the lanes 0xffffffff of its warp, but lane 7 waits at __syncthreads() at "},
     "/* for the block */"},
    {{ENDED_THREAD, "/* one of the block has ended */", "0",
      "waits at __syncthreads() for all threads of the block, but thread (40, 0, 0) has "
      "ended\n"},
     NULL},
    {{TWO_BARRIERS, "/* of warp 0 */", "0",
      "waits at __syncthreads() for all threads of the block, but thread (32, 0, 0) waits at "
      "__syncthreads() at "},
     "/* of warp 1 */"},
};

static void test_waits_without_end(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof waits / sizeof waits[0]; n++) {
        const struct wrong *here = &waits[n].here;
        enum wait wait = (enum wait)here->kernel;
        const struct fault fault = fault_of(do_wait, &wait);
        char start[256], other[128] = "";
        snprintf(start, sizeof start, "%s:%d: bug: kernel, block (0, 0, 0), thread (%s",
                 WAITS_CU, line_of(WAITS_CU, here->at), here->thread);
        if (waits[n].other_at)
            snprintf(other, sizeof other, "%s:%d\n", WAITS_CU,
                     line_of(WAITS_CU, waits[n].other_at));
        assert_says(&fault, start, ", 0, 0): ", here->what, other, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_uses),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_accesses_that_are_wrong),
        cmocka_unit_test(test_shared_memory_is_not_left_to_others),
        cmocka_unit_test(test_waits_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
