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

/* The fiber of the running warp's lane is about to run. */
static inline struct fiber *prepare(int lane)
{
    struct fiber *fiber = &threads->warp[lane];
    cpu_now.thread = fiber->index;
    cpu_now.lane = lane;
    cpu_now.number = threads->first + lane;
    threads->running = fiber;
    cpu_worker->run++;
    cpu_worker->run_accesses = 0;
    return fiber;
}

/* The next lane goes on at once: the scheduler comes in when all have run. */
static inline void wait_for(enum wait wait, unsigned mask,
                            const struct cpu_reduction *reduction, const char *file, int line)
{
    struct fiber *fiber = threads->running;
    const unsigned ready = threads->ready & (threads->ready - 1); /* without this lane */
    count_operations(fiber, cpu_worker->run_accesses + 1, file, line);
    fiber->wait = wait;
    fiber->mask = mask;
    fiber->reduction = reduction;
    fiber->file = file;
    fiber->line = line;
    threads->ready = ready;
    if (ready)
        stack_switch(&fiber->stack, &prepare(__builtin_ctz(ready))->stack);
    else
        stack_switch(&fiber->stack, &threads->scheduler);
}

void cpu_pause(const char *file, int line)
{
    wait_for(PAUSED, 0, NULL, file, line);
}

static void fiber_main(void)
{
    for (;;) {
        threads->running->operations = 0;
        threads->grid->thread(threads->grid->context);
        wait_for(DONE, 0, NULL, threads->grid->kernel, 0);
    }
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
    struct fiber *first = prepare(__builtin_ctz(threads->ready));
    cpu_worker->in_lane = true;
    stack_switch(&threads->scheduler, &first->stack);
    cpu_worker->in_lane = false;
    threads->running = NULL;
    if (threads->stop_file)
        cpu_fail(&cpu_now, threads->stop_file, threads->stop_line, threads->stop_text);
}

static void run_warp(int first, int lanes)
{
    threads->warp = &threads->fiber[first];
    threads->first = first;
    threads->lanes = lanes;
    threads->ready = lanes < CPU_WARP ? (1u << lanes) - 1 : 0xffffffff;
    cpu_shared_stretch(cpu_worker);
    do {
        run_lanes();
        cpu_requests_merge(cpu_worker);
    } while (cpu_release_warp(threads));
}

static void run_block(int count)
{
    do {
        for (int first = 0; first < count; first += CPU_WARP)
            run_warp(first, count - first < CPU_WARP ? count - first : CPU_WARP);
    } while (cpu_pass_barrier(threads->fiber, count));
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
    cpu_now.kernel = grid->kernel;
    cpu_now.file = grid->file;
    cpu_now.grid_dim = grid->grid;
    cpu_now.block_dim = grid->block;
    cpu_now.observed = !cpu_options.unobserved;
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

void cpu_exchange_reduced(const struct cpu_reduction *reduction, uint64_t bits,
                          const char *file, int line)
{
    threads->passing[cpu_now.lane] = bits;
    wait_for(AT_EXCHANGE, 0xffffffff, reduction, file, line);
}
