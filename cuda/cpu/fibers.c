/* Threads of a block as fibers of one OpenMP thread: each has a stack, and runs until it waits
 * for others or ends. Between two points where a warp converges its lanes run one after the
 * other; a warp runs until it waits for the block; then comes the next. Fibers and stacks are
 * made once and serve every block. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/status.h"
#include "cuda/cpu/fibers.h"

__thread struct cpu_now cpu_now;
__thread struct worker *cpu_worker;
static __thread struct threads *threads; /* the worker's */

/* A fiber leaves that to the scheduler: AddressSanitizer wants abort() on a stack it knows. */
void cpu_stop(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(threads->stop_text, sizeof threads->stop_text, format, arguments);
    va_end(arguments);
    threads->stop_file = file;
    threads->stop_line = line;
    if (threads->running)
        stack_switch(&threads->running->stack, &threads->scheduler);
    cpu_fail(&cpu_now, file, line, threads->stop_text);
}

static void count_operations(struct fiber *fiber, int64_t more, const char *file, int line)
{
    fiber->operations += more;
    if (fiber->operations > cpu_options.step_limit)
        cpu_stop(file, line,
                 "has made %lld accesses and waits and goes on: does the kernel end? (step "
                 "limit)",
                 (long long)fiber->operations);
}

static inline void prepare(struct fiber *fiber)
{
    cpu_now.thread = fiber->index;
    threads->running = fiber;
    cpu_worker->run_accesses = 0;
}

/* Do all lanes of the warp run, one after the other? */
static inline bool in_order(void)
{
    return threads->end != threads->warp;
}

/* Not what the lanes before this one wait for: those are told, now that threads->waiting no
 * longer says it. */
static void wait_alone(struct fiber *fiber, const struct waiting *waiting)
{
    for (int before = 1; before <= threads->alike; before++)
        fiber[-before].waiting = threads->waiting;
    threads->waiting = *waiting;
    threads->alike = 1;
}

/* NULL: all have run. */
static struct fiber *next_lane(struct fiber *fiber)
{
    if (in_order())
        return fiber + 1 < threads->end ? fiber + 1 : NULL;
    threads->ready &= threads->ready - 1;
    return threads->ready ? &threads->warp[__builtin_ctz(threads->ready)] : NULL;
}

/* The first lane to wait for this, the last one to wait, or one of few that run. */
static __attribute__((noinline)) void wait_slowly(enum wait wait, unsigned mask,
                                                  const struct cpu_butterfly *butterfly,
                                                  const char *file, int line)
{
    const struct waiting waiting = {wait, line, file, butterfly, mask};
    const struct waiting *before = &threads->waiting;
    struct fiber *fiber = threads->running, *next = next_lane(fiber);
    if (!in_order())
        fiber->waiting = waiting;
    else if (line == before->line && wait == before->wait && file == before->file &&
             butterfly == before->butterfly && mask == before->mask)
        threads->alike++;
    else
        wait_alone(fiber, &waiting);
    if (!next)
        return stack_switch(&fiber->stack, &threads->scheduler);
    cpu_now.lane = (int)(next - threads->warp);
    prepare(next);
    stack_switch(&fiber->stack, &next->stack);
}

/* The next lane goes on at once: the scheduler comes in when all have run. Inline, so that only
 * what a kind of wait has is compared. */
static inline __attribute__((always_inline)) void
wait_for(enum wait wait, unsigned mask, const struct cpu_butterfly *butterfly, const char *file,
         int line)
{
    const struct waiting *before = &threads->waiting;
    struct fiber *fiber = threads->running, *next = fiber + 1;
    if (wait == DONE)
        fiber->operations = 0; /* the next thread's */
    else
        count_operations(fiber, cpu_worker->run_accesses + 1, file, line);
    if (line != before->line || wait != before->wait || file != before->file ||
        (wait == AT_BUTTERFLY && butterfly != before->butterfly) ||
        ((wait == AT_EXCHANGE || wait == AT_WARP_BARRIER) && mask != before->mask) ||
        next >= threads->end)
        return wait_slowly(wait, mask, butterfly, file, line);
    threads->alike++;
    cpu_now.lane++;
    prepare(next);
    stack_switch(&fiber->stack, &next->stack);
}

void cpu_pause(const char *file, int line)
{
    wait_for(PAUSED, 0, NULL, file, line);
}

static void fiber_main(void)
{
    for (;;)
        threads->grid->threads(threads->grid->context);
}

static void worker_make(void)
{
    /* Not of stack_map(): LeakSanitizer would not see what it owns. */
    struct worker *worker = calloc(1, sizeof *worker);
    CHECK(worker, "no host memory for an OpenMP thread's counts");
    threads = stack_map(sizeof *threads);
    cpu_worker = worker;
    char *stacks = stack_map(CPU_MAX_THREADS * stack_pitch());
    for (int n = 0; n < CPU_MAX_THREADS; n++)
        stack_make(&threads->fiber[n].stack, stacks, n, fiber_main);
    cpu_shared_make(worker);
}

/* All lanes that can, until each waits. */
static void run_lanes(void)
{
    const unsigned all = 0xffffffff >> (CPU_WARP - threads->lanes);
    threads->end = threads->warp + (threads->ready == all ? threads->lanes : 0);
    threads->alike = 0;
    cpu_now.lane = __builtin_ctz(threads->ready);
    prepare(&threads->warp[cpu_now.lane]);
    cpu_worker->rounds++;
    cpu_worker->in_lane = true;
    stack_switch(&threads->scheduler, &threads->running->stack);
    cpu_worker->in_lane = false;
    threads->running = NULL;
    threads->ready = 0;
    if (threads->stop_file)
        cpu_fail(&cpu_now, threads->stop_file, threads->stop_line, threads->stop_text);
}

static void run_warp(int warp, int lanes)
{
    threads->warp = &threads->fiber[warp * CPU_WARP];
    threads->lanes = lanes;
    threads->ready = 0xffffffff >> (CPU_WARP - lanes);
    cpu_now.warp = warp;
    cpu_shared_stretch(cpu_worker);
    do {
        run_lanes();
        cpu_requests_merge(cpu_worker);
    } while (cpu_release_warp(threads));
}

static void run_block(int count)
{
    do {
        for (int warp = 0; warp * CPU_WARP < count; warp++) {
            const int left = count - warp * CPU_WARP;
            run_warp(warp, left < CPU_WARP ? left : CPU_WARP);
        }
    } while (cpu_pass_barrier(threads, count));
}

static int threads_of(const struct cpu_grid *grid)
{
    return (int)(grid->block.x * grid->block.y * grid->block.z);
}

static void number_threads(struct fiber *fiber, struct cpu_index block)
{
    struct cpu_index at;
    for (at.z = 0; at.z < block.z; at.z++)
        for (at.y = 0; at.y < block.y; at.y++)
            for (at.x = 0; at.x < block.x; at.x++)
                (fiber++)->index = at;
}

/* Of one OpenMP thread: its share of the blocks. */
static void run_blocks(const struct cpu_grid *grid)
{
    const int64_t blocks = (int64_t)grid->grid.x * grid->grid.y * grid->grid.z;
    if (!cpu_worker)
        worker_make();
    struct worker *worker = cpu_worker;
    threads->grid = grid;
    cpu_now.launch++;
    cpu_now.kernel = grid->kernel;
    cpu_now.file = grid->file;
    cpu_now.grid_dim = grid->grid;
    cpu_now.block_dim = grid->block;
    cpu_now.observed = !cpu_options.unobserved;
    cpu_now.traced = cpu_options.step_log;
    number_threads(threads->fiber, grid->block);
    cpu_requests_begin(worker);
    cpu_watch_worker(worker, &cpu_now);
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < blocks; n++) {
        cpu_now.block.x = (unsigned)(n % grid->grid.x);
        cpu_now.block.y = (unsigned)(n / grid->grid.x % grid->grid.y);
        cpu_now.block.z = (unsigned)(n / grid->grid.x / grid->grid.y);
        cpu_shared_block(worker, grid->shared_bytes);
        cpu_steps_block(worker);
        run_block(threads_of(grid));
    }
}

void cpu_run_threads(const struct cpu_grid *grid)
{
    struct cpu_launch_counts *counts = cpu_launch_begin(grid->kernel, grid->file);
    cpu_watch_begin();
#pragma omp parallel
    {
        run_blocks(grid);
#pragma omp critical(cpu_counts)
        {
            cpu_counts_join(counts, cpu_worker);
            cpu_steps_join(cpu_worker);
        }
    }
    cpu_watch_end();
    cpu_steps_end(grid->kernel);
}

void cpu_end_thread(void)
{
    wait_for(DONE, 0, NULL, NULL, 0);
}

void cpu_sync_block(const char *file, int line)
{
    wait_for(AT_BARRIER, 0, NULL, file, line);
}

void cpu_sync_warp(unsigned mask, const char *file, int line)
{
    wait_for(AT_WARP_BARRIER, mask, NULL, file, line);
}

void cpu_exchange(unsigned mask, uint64_t bits, const char *file, int line)
{
    threads->passing[cpu_now.lane] = bits;
    wait_for(AT_EXCHANGE, mask, NULL, file, line);
}

void cpu_meet(const struct cpu_butterfly *butterfly, const char *file, int line)
{
    wait_for(AT_BUTTERFLY, 0xffffffff, butterfly, file, line);
}
