/* Groups of lanes that wait for each other on the CPU and exchange values, by random scripts.
 *
 * Protects: what each thread has in the end, where lanes of a warp wait in groups, at one line
 * or at two, leave out waits that others take, or end early; in blocks of 1 to 96 threads,
 * whose last warp may be a part. Against the same script followed here, step by step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/core_fixture.h"
#include "cpu/kernels/own.h"
#include "cuda/cpu/cpu.h"

enum { SCRIPTS = 2000, WARP = 32, MOST_GROUPS = 3 };

static bool is_alive(const struct group_script *script, int step, int thread, int threads)
{
    return thread < threads && step < script->ends[thread];
}

/* Lanes of the warp by group; lanes of group 0 may leave the step out. */
static void make_groups(unsigned groups[MOST_GROUPS], const struct group_script *script,
                        int step, int warp, int threads, struct rng *rng)
{
    const int count = random_int(rng, 1, MOST_GROUPS);
    memset(groups, 0, MOST_GROUPS * sizeof groups[0]);
    for (int lane = 0; lane < WARP; lane++)
        if (is_alive(script, step, warp * WARP + lane, threads))
            groups[random_int(rng, 0, count - 1)] |= 1u << lane;
}

static int random_lane(unsigned mask, struct rng *rng)
{
    int lane = random_int(rng, 0, WARP - 1);
    while (!(mask >> lane & 1))
        lane = (lane + 1) % WARP;
    return lane;
}

static void script_warp(struct group_script *script, int step, int warp, int threads,
                        struct rng *rng)
{
    unsigned groups[MOST_GROUPS];
    bool second[MOST_GROUPS];
    make_groups(groups, script, step, warp, threads, rng);
    const unsigned all = groups[0] | groups[1] | groups[2];
    const bool left_out = random_int(rng, 0, 2) == 0;
    for (int group = 0; group < MOST_GROUPS; group++)
        second[group] = random_int(rng, 0, 1);
    for (int lane = 0; lane < WARP; lane++) {
        const int thread = warp * WARP + lane;
        int group = 0;
        while (group < MOST_GROUPS && !(groups[group] >> lane & 1))
            group++;
        if (group == MOST_GROUPS)
            continue; /* has ended, or does not exist */
        unsigned mask = group == 0 && left_out ? 0 : groups[group];
        if (script->step[step] == GROUP_BLOCK_BARRIER)
            mask = all;
        if (script->step[step] == GROUP_SUM)
            mask = all == 0xffffffff ? all : 0;
        script->mask[step][thread] = mask;
        script->from[step][thread] = mask ? random_lane(mask, rng) : 0;
        script->second[step][thread] = second[group];
    }
}

static void make_script(struct group_script *script, int threads, struct rng *rng)
{
    int last_barrier = 0;
    memset(script, 0, sizeof *script);
    for (int step = 0; step < GROUP_STEPS; step++) {
        script->step[step] = (enum group_step)random_int(rng, GROUP_BLOCK_BARRIER, GROUP_SUM);
        if (script->step[step] == GROUP_BLOCK_BARRIER)
            last_barrier = step + 1;
    }
    for (int thread = 0; thread < threads; thread++)
        script->ends[thread] = random_int(rng, 0, 3) == 0
                                   ? random_int(rng, last_barrier, GROUP_STEPS)
                                   : GROUP_STEPS;
    for (int step = 0; step < GROUP_STEPS; step++)
        for (int warp = 0; warp * WARP < threads; warp++)
            script_warp(script, step, warp, threads, rng);
}

/* What the thread has after the step, of what all had before. */
static unsigned after_step(const struct group_script *script, int step, int thread,
                           const unsigned *before)
{
    const unsigned *warp = &before[thread / WARP * WARP];
    const unsigned v = before[thread], other = warp[script->from[step][thread]];
    unsigned votes = 0, sum = 0;
    for (int lane = 0; lane < WARP; lane++) {
        if (script->mask[step][thread] >> lane & 1 && warp[lane] & 1)
            votes |= 1u << lane;
        sum += warp[lane] % 1024;
    }
    if (script->mask[step][thread] == 0)
        return v;
    switch (script->step[step]) {
    case GROUP_SHUFFLE:
        return 3 * v + other;
    case GROUP_TWO_SHUFFLES:
        return (script->second[step][thread] ? 5 : 7) * v + other;
    case GROUP_BALLOT:
        return v ^ votes;
    case GROUP_SUM:
        return v + sum;
    default:
        return v;
    }
}

static void follow(unsigned v[GROUP_THREADS], const struct group_script *script, int threads)
{
    unsigned before[GROUP_THREADS] = {0};
    for (int thread = 0; thread < threads; thread++)
        v[thread] = (unsigned)thread + 1;
    for (int step = 0; step < GROUP_STEPS; step++) {
        memcpy(before, v, (size_t)threads * sizeof *v);
        for (int thread = 0; thread < threads; thread++)
            if (is_alive(script, step, thread, threads))
                v[thread] = after_step(script, step, thread, before);
    }
}

static void test_groups_exchange_what_they_must(void **state)
{
    static struct group_script script;
    static unsigned got[GROUP_BLOCKS][GROUP_THREADS], want[GROUP_THREADS];
    const struct cpu_options defaults = {.unobserved = false};
    struct rng rng = {1};
    (void)state;
    for (int n = 0; n < SCRIPTS; n++) {
        const int threads = random_int(&rng, 0, 2) ? random_int(&rng, 1, GROUP_THREADS)
                                                   : random_int(&rng, 1, 3) * WARP;
        make_script(&script, threads, &rng);
        follow(want, &script, threads);
        cpu_begin(&defaults);
        cpu_array("x", got, sizeof got, CPU_UNWRITTEN);
        launch_groups(&script, got[0], threads);
        cpu_end();
        for (int block = 0; block < GROUP_BLOCKS; block++)
            for (int thread = 0; thread < threads; thread++)
                if (got[block][thread] != want[thread])
                    fail_msg("script %d, block %d, thread %d of %d: %u, not %u", n, block,
                             thread, threads, got[block][thread], want[thread]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_exchange_what_they_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
