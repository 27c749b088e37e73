/* Races in shared memory, found in random scripts exactly where two accesses race.
 *
 * Protects: the quick way of loads and stores of shared memory on the CPU, and what is kept of
 * a word: 64 threads follow scripts of loads, loads of four words, stores, atomics and
 * barriers, and the program stops if and only if some pair of accesses is unordered, and one
 * writes that is not an atomic beside another; it names a thread and a word of such a pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/core_fixture.h"
#include "common/fault.h"
#include "cpu/kernels/own.h"
#include "cuda/cpu/cpu.h"

enum { SCRIPTS = 300, LEAST_OF_EACH = 75, THREADS = 64, WARP = 32 };

static bool touches(const struct script_access *access, int word)
{
    return access->way == SCRIPT_LOAD4 ? word / 4 == access->word / 4
                                       : access->way != SCRIPT_NONE && word == access->word;
}

static bool is_load(const struct script_access *access)
{
    return access->way == SCRIPT_LOAD || access->way == SCRIPT_LOAD4;
}

/* Does a barrier stand between two steps that orders what the threads do there? */
static bool ordered(const struct script *script, int from, int to, bool one_warp)
{
    for (int step = from; step < to; step++)
        if (script->step[step] == STEP_BLOCK_BARRIER ||
            (one_warp && script->step[step] == STEP_WARP_BARRIER))
            return true;
    return false;
}

/* Does the thread's access to the word race with one of another thread in a later step, or in
 * the same? */
static bool races_later(const struct script *script, int step, int thread, int word)
{
    const struct script_access *a = &script->access[step][thread];
    for (int later = step; later < SCRIPT_STEPS; later++) {
        for (int other = 0; other < THREADS; other++) {
            const struct script_access *b = &script->access[later][other];
            const bool harmless = (is_load(a) && is_load(b)) ||
                                  (a->way == SCRIPT_ATOMIC && b->way == SCRIPT_ATOMIC) ||
                                  other == thread;
            if (touches(b, word) && script->step[later] == STEP_ACCESSES && !harmless &&
                !ordered(script, step, later, other / WARP == thread / WARP))
                return true;
        }
    }
    return false;
}

/* The same, of any step; word: -1: any. */
static bool races(const struct script *script, int thread, int word)
{
    for (int step = 0; step < SCRIPT_STEPS; step++)
        for (int w = 0; w < SCRIPT_WORDS && script->step[step] == STEP_ACCESSES; w++)
            if ((word < 0 || w == word) && touches(&script->access[step][thread], w) &&
                races_later(script, step, thread, w))
                return true;
    return false;
}

/* The later of two accesses races too: the same script backwards, in which it is the first. */
static struct script backwards(const struct script *script)
{
    struct script back;
    for (int step = 0; step < SCRIPT_STEPS; step++) {
        back.step[SCRIPT_STEPS - 1 - step] = script->step[step];
        memcpy(back.access[SCRIPT_STEPS - 1 - step], script->access[step],
               sizeof script->access[step]);
    }
    return back;
}

/* In a step one or two threads, of a few, touch one of a few words, or all lanes of a warp load
 * one of them. */
static struct script random_script(struct rng *rng)
{
    const int words[] = {random_int(rng, 0, 3), random_int(rng, 4, 7), random_int(rng, 4, 7)};
    struct script script;
    memset(&script, 0, sizeof script);
    for (int step = 0; step < SCRIPT_STEPS; step++) {
        const int kind = random_int(rng, 0, 6), warp = random_int(rng, 0, THREADS / WARP - 1);
        script.step[step] = kind <= 1   ? STEP_BLOCK_BARRIER
                            : kind == 2 ? STEP_WARP_BARRIER
                                        : STEP_ACCESSES;
        const struct script_access load = {SCRIPT_LOAD, words[random_int(rng, 0, 2)]};
        for (int lane = 0; kind == 3 && lane < WARP; lane++)
            script.access[step][warp * WARP + lane] = load;
        for (int n = random_int(rng, 1, 2); kind > 3 && n > 0; n--)
            script.access[step][warp * WARP + random_int(rng, 0, 1)] = (struct script_access){
                (enum script_way)random_int(rng, SCRIPT_LOAD, SCRIPT_ATOMIC),
                words[random_int(rng, 0, 2)]};
    }
    return script;
}

static float x[THREADS];

static void follow(void *context)
{
    const struct cpu_options defaults = {.unobserved = false};
    cpu_begin(&defaults);
    cpu_array("x", x, sizeof x, CPU_UNWRITTEN);
    launch_script(context, x);
    cpu_end();
}

/* Is the thread, and the word, that of a pair that races? */
static bool names_a_race(const struct fault *fault, const struct script *script)
{
    const struct script back = backwards(script);
    const char *at = strstr(fault->text, "thread (");
    const char *element = strstr(fault->text, "element ");
    int thread, word;
    return at && element && strstr(fault->text, ": race: ") &&
           sscanf(at, "thread (%d,", &thread) == 1 &&
           sscanf(element, "element %d of s", &word) == 1 &&
           (races(script, thread, word) || races(&back, thread, word));
}

static void test_races_are_found_where_they_are(void **state)
{
    struct rng rng = {1};
    int racing = 0;
    (void)state;
    for (int n = 0; n < SCRIPTS; n++) {
        struct script script = random_script(&rng);
        bool races_somewhere = false;
        for (int thread = 0; thread < THREADS; thread++)
            races_somewhere |= races(&script, thread, -1);
        const struct fault fault = fault_of(follow, &script);
        racing += races_somewhere;
        if (fault.aborted != races_somewhere)
            fail_msg("script %d: %s, but: %s", n, races_somewhere ? "a race" : "no race",
                     fault.text);
        if (races_somewhere && !names_a_race(&fault, &script))
            fail_msg("script %d does not race there: %s", n, fault.text);
    }
    assert_in_range(racing, LEAST_OF_EACH, SCRIPTS - LEAST_OF_EACH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_races_are_found_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
