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
    if (cpu_worker->in_lane)
        cpu_stack_switch(&cpu_now.running->stack, &threads->scheduler);
    cpu_fail(&cpu_now, file, line, threads->stop_text);
}

/* Do all lanes of the warp run, one after the other? */
static inline bool in_order(void)
{
    return cpu_now.end != threads->warp;
}

/* Not what the lanes before this one wait for: those are told, now that cpu_now.waiting no
 * longer says it. */
static void wait_alone(const struct cpu_waiting *waiting)
{
    for (int lane = cpu_now.alike; lane < cpu_now.lane; lane++)
        threads->warp[lane].waiting = cpu_now.waiting;
    cpu_now.waiting = *waiting;
    cpu_now.alike = cpu_now.lane;
}

/* NULL: all have run. */
static struct cpu_fiber *next_lane(struct cpu_fiber *fiber)
{
    if (in_order())
        return fiber + 1 < cpu_now.end ? fiber + 1 : NULL;
    threads->ready &= threads->ready - 1;
    return threads->ready ? &threads->warp[__builtin_ctz(threads->ready)] : NULL;
}

struct cpu_stack *cpu_wait_slowly(enum cpu_wait wait, unsigned mask,
                                  const struct cpu_butterfly *butterfly, const char *file,
                                  int line)
{
    const struct cpu_waiting waiting = {wait, line, file, butterfly, mask};
    struct cpu_fiber *fiber = cpu_now.running, *next = next_lane(fiber);
    if (!in_order())
        fiber->waiting = waiting;
    else if (!cpu_waits_alike(wait, mask, butterfly, file, line))
        wait_alone(&waiting);
    if (!next)
        return &threads->scheduler;
    cpu_now.lane = (int)(next - threads->warp);
    cpu_now.running = next;
    return &next->stack;
}

void cpu_pause(const char *file, int line)
{
    cpu_wait_for(CPU_PAUSED, 0, NULL, file, line);
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
    const bool some = threads->ready != all;
    cpu_now.end = threads->warp + (some ? 0 : threads->lanes);
    cpu_now.alike = some ? threads->lanes : 0;
    cpu_now.lane = __builtin_ctz(threads->ready);
    cpu_now.running = &threads->warp[cpu_now.lane];
    cpu_worker->rounds++;
    cpu_worker->in_lane = true;
    cpu_stack_switch(&threads->scheduler, &cpu_now.running->stack);
    cpu_worker->in_lane = false;
    threads->ready = 0;
    if (threads->stop_file)
        cpu_fail(&cpu_now, threads->stop_file, threads->stop_line, threads->stop_text);
}

/* Of the first lane that does not end and has made too many. */
static void check_limit(const int64_t operations[CPU_WARP])
{
    for (int lane = 0; lane < threads->lanes; lane++) {
        const struct cpu_waiting *waiting = cpu_waiting_of(threads, lane);
        cpu_now.running = &threads->warp[lane];
        if (waiting->wait != CPU_DONE && operations[lane] > cpu_options.step_limit)
            cpu_stop(waiting->file, waiting->line,
                     "has made %lld accesses and waits and goes on: does the kernel end? (step "
                     "limit)",
                     (long long)operations[lane]);
    }
}

/* What the lanes that ran have done: some accesses, and one wait each. */
static void add_operations(uint32_t ran)
{
    int64_t *sum = &threads->operations[cpu_now.warp * CPU_WARP], left = 0;
    const int64_t limit = cpu_options.step_limit;
    uint32_t operations[CPU_WARP];
    for (uint32_t lane = 0; lane < CPU_WARP; lane++)
        operations[lane] = ran >> lane & 1;
    cpu_requests_merge(operations, cpu_worker);
    for (int lane = 0; lane < CPU_WARP; lane++) {
        sum[lane] += operations[lane];
        left |= limit - sum[lane];
    }
    if (left < 0) /* for one of them */
        check_limit(sum);
}

static void run_warp(int warp, int lanes)
{
    threads->warp = &threads->fiber[warp * CPU_WARP];
    threads->lanes = lanes;
    threads->ready = 0xffffffff >> (CPU_WARP - lanes);
    cpu_now.warp = warp;
    cpu_shared_stretch();
    do {
        const uint32_t ran = threads->ready;
        run_lanes();
        add_operations(ran);
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

static void number_threads(struct cpu_fiber *fiber, struct cpu_index block)
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
    const int count = (int)(grid->block.x * grid->block.y * grid->block.z);
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
    cpu_now.running = threads->fiber;
    number_threads(threads->fiber, grid->block);
    cpu_access_begin(worker);
    cpu_watch_worker(worker, &cpu_now);
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < blocks; n++) {
        cpu_now.block.x = (unsigned)(n % grid->grid.x);
        cpu_now.block.y = (unsigned)(n / grid->grid.x % grid->grid.y);
        cpu_now.block.z = (unsigned)(n / grid->grid.x / grid->grid.y);
        cpu_shared_block(worker, grid->shared_bytes);
        cpu_steps_block(worker);
        memset(threads->operations, 0, (size_t)count * sizeof threads->operations[0]);
        run_block(count);
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
