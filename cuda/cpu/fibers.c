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

static struct cpu_fiber *scheduler(void)
{
    return threads->warp + threads->lanes;
}

/* Do all lanes of the warp run, one after the other? Else some are left out. */
static inline bool in_order(void)
{
    return threads->ready == 0xffffffff >> (CPU_WARP - threads->lanes);
}

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
        cpu_stack_switch(&cpu_now.running->stack, &scheduler()->stack);
    cpu_fail(&cpu_now, file, line, threads->stop_text);
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

static struct cpu_fiber *next_ready(void)
{
    threads->ready &= threads->ready - 1;
    return threads->ready ? &threads->warp[__builtin_ctz(threads->ready)] : scheduler();
}

struct cpu_fiber *cpu_wait_slowly(uint32_t what, unsigned mask,
                                  const struct cpu_butterfly *butterfly, const char *file)
{
    const struct cpu_waiting waiting = {what, mask, file, butterfly};
    struct cpu_fiber *fiber = cpu_now.running, *next = fiber + 1;
    if (in_order()) {
        wait_alone(&waiting);
    } else {
        fiber->waiting = waiting;
        next = next_ready();
    }
    cpu_now.lane = (int)(next - threads->warp);
    cpu_now.running = next;
    return fiber;
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
        stack_make(&threads->fibers[n / CPU_WARP].lane[n % CPU_WARP].stack, stacks, n,
                   fiber_main);
    cpu_shared_make(worker);
}

/* All lanes that can, until each waits. */
static void run_lanes(void)
{
    if (!in_order())
        cpu_now.waiting = (struct cpu_waiting){.what = CPU_PAUSED};
    cpu_now.alike = in_order() ? 0 : threads->lanes;
    cpu_now.lane = __builtin_ctz(threads->ready);
    cpu_now.running = &threads->warp[cpu_now.lane];
    cpu_worker->rounds++;
    cpu_worker->in_lane = true;
    cpu_stack_switch(&scheduler()->stack, &cpu_now.running->stack);
    cpu_worker->in_lane = false;
    threads->ready = 0;
    if (threads->stop_file)
        cpu_fail(&cpu_now, threads->stop_file, threads->stop_line, threads->stop_text);
}

/* Of the first lane that ran and does not end. */
static void stop_endless(uint32_t ran, int64_t operations)
{
    for (int lane = 0; lane < threads->lanes; lane++) {
        const struct cpu_waiting *waiting = cpu_waiting_of(threads, lane);
        cpu_now.running = &threads->warp[lane];
        if (ran >> lane & 1 && cpu_wait_of(waiting) != CPU_DONE)
            cpu_stop(waiting->file, cpu_line_of(waiting),
                     "has made up to %lld accesses and waits and goes on: does the kernel end? "
                     "(step limit)",
                     (long long)operations);
    }
}

/* What the lanes that ran have done: some accesses, and one wait each. */
static void add_operations(uint32_t ran)
{
    int64_t *sum = &threads->operations[cpu_now.warp];
    *sum += 1 + cpu_requests_merge(cpu_worker);
    if (*sum > cpu_options.step_limit)
        stop_endless(ran, *sum);
}

static void run_warp(int warp)
{
    threads->warp = cpu_first_lane(threads, warp);
    threads->lanes = cpu_lanes_of(threads, warp);
    threads->ready = 0xffffffff >> (CPU_WARP - threads->lanes);
    cpu_now.warp = warp;
    cpu_shared_stretch();
    do {
        const uint32_t ran = threads->ready;
        run_lanes();
        add_operations(ran);
    } while (cpu_release_warp(threads));
}

static void run_block(void)
{
    do {
        for (int warp = 0; warp * CPU_WARP < threads->count; warp++)
            run_warp(warp);
    } while (cpu_pass_barrier(threads));
}

static void number_threads(struct cpu_index block)
{
    for (int n = 0; n < threads->count; n++) {
        const unsigned number = (unsigned)n;
        cpu_fiber_of(threads, n)->index = (struct cpu_index){
            number % block.x, number / block.x % block.y, number / block.x / block.y};
    }
}

/* Of one OpenMP thread: its share of the blocks. */
static void run_blocks(const struct cpu_grid *grid)
{
    const int64_t blocks = (int64_t)grid->grid.x * grid->grid.y * grid->grid.z;
    if (!cpu_worker)
        worker_make();
    struct worker *worker = cpu_worker;
    threads->grid = grid;
    threads->count = (int)(grid->block.x * grid->block.y * grid->block.z);
    cpu_now.launch++;
    cpu_now.kernel = grid->kernel;
    cpu_now.file = grid->file;
    cpu_now.grid_dim = grid->grid;
    cpu_now.block_dim = grid->block;
    cpu_now.observed = !cpu_options.unobserved;
    cpu_now.traced = cpu_options.step_log;
    cpu_now.running = cpu_first_lane(threads, 0);
    number_threads(grid->block);
    cpu_access_begin(worker);
    cpu_watch_worker(worker, &cpu_now);
#pragma omp for schedule(dynamic)
    for (int64_t n = 0; n < blocks; n++) {
        cpu_now.block.x = (unsigned)(n % grid->grid.x);
        cpu_now.block.y = (unsigned)(n / grid->grid.x % grid->grid.y);
        cpu_now.block.z = (unsigned)(n / grid->grid.x / grid->grid.y);
        cpu_shared_block(worker, grid->shared_bytes);
        cpu_steps_block(worker);
        memset(threads->operations, 0, sizeof threads->operations);
        run_block();
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
