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
#include "cuda/cpu/stack.h"
#include "cuda/cpu/worker.h"

/* PAUSED: the lane lets the others come up with it. */
enum state { READY, PAUSED, AT_BARRIER, AT_WARP_BARRIER, AT_EXCHANGE, DONE };

struct fiber {
    struct stack stack;
    enum state state;
    struct cpu_index index;
    int64_t operations; /* accesses and waits so far */
    /* What it waits for, and where. */
    unsigned mask;
    const char *file;
    int line;
    uint64_t bits;        /* passed in the exchange */
    unsigned passed_mask; /* lanes whose bits it may see */
};

struct threads {
    struct fiber fiber[CPU_MAX_THREADS];
    struct stack scheduler;
    struct fiber *running; /* NULL: the scheduler */
    struct fiber *warp;    /* that runs, and its lanes */
    int lanes;
    const struct cpu_grid *grid;
    uint64_t passed[CPU_WARP]; /* of the running warp's last exchange, by lane */
    /* Why the running fiber stops the program; file NULL: it does not. */
    const char *stop_file;
    int stop_line;
    char stop_text[512];
};

__thread struct cpu_now cpu_now;
__thread struct worker *cpu_worker;

/* A fiber leaves that to the scheduler: AddressSanitizer wants abort() on a stack it knows. */
void cpu_stop(const char *file, int line, const char *format, ...)
{
    struct threads *threads = cpu_worker->threads;
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

/* The next lane of the running warp that can run, from the given one on; NULL: none. */
static struct fiber *next_ready(const struct threads *threads, int lane)
{
    for (; lane < threads->lanes; lane++)
        if (threads->warp[lane].state == READY)
            return &threads->warp[lane];
    return NULL;
}

/* The fiber is about to run. */
static void prepare(struct threads *threads, struct fiber *fiber)
{
    cpu_now.thread = fiber->index;
    cpu_now.lane = (int)(fiber - threads->warp);
    cpu_now.number = (int)(fiber - threads->fiber);
    threads->running = fiber;
    cpu_worker->run++;
    cpu_worker->run_accesses = 0;
}

/* The next lane goes on at once: the scheduler comes in when all have run. */
static void wait_in(enum state state, const char *file, int line)
{
    struct threads *threads = cpu_worker->threads;
    struct fiber *fiber = threads->running, *next = next_ready(threads, cpu_now.lane + 1);
    count_operations(fiber, cpu_worker->run_accesses + 1, file, line);
    fiber->state = state;
    fiber->file = file;
    fiber->line = line;
    if (next)
        prepare(threads, next);
    stack_switch(&fiber->stack, next ? &next->stack : &threads->scheduler);
}

void cpu_pause(const char *file, int line)
{
    wait_in(PAUSED, file, line);
}

static void fiber_main(void)
{
    struct threads *threads = cpu_worker->threads;
    for (;;) {
        threads->grid->thread(threads->grid->context);
        wait_in(DONE, threads->grid->kernel, 0);
    }
}

static void worker_make(void)
{
    /* Not of stack_map(): LeakSanitizer would not see what it owns. */
    struct worker *worker = calloc(1, sizeof *worker);
    CHECK(worker, "no host memory for an OpenMP thread's counts");
    worker->threads = stack_map(sizeof *worker->threads);
    cpu_worker = worker;
    char *stacks = stack_map((size_t)CPU_MAX_THREADS * STACK_BYTES);
    for (int n = 0; n < CPU_MAX_THREADS; n++)
        stack_make(&worker->threads->fiber[n].stack, stacks, n, fiber_main);
    cpu_shared_make(worker);
}

/* All lanes that can, until each waits. */
static void run_lanes(struct threads *threads)
{
    struct fiber *first = next_ready(threads, 0);
    if (!first)
        return;
    prepare(threads, first);
    cpu_worker->in_lane = true;
    stack_switch(&threads->scheduler, &first->stack);
    cpu_worker->in_lane = false;
    threads->running = NULL;
    if (threads->stop_file)
        cpu_fail(&cpu_now, threads->stop_file, threads->stop_line, threads->stop_text);
}

static const char *text_of(const struct fiber *fiber)
{
    static __thread char text[256];
    if (fiber->state == DONE)
        return "has ended";
    snprintf(text, sizeof text, "waits at %s at %s:%d",
             fiber->state == AT_BARRIER        ? "__syncthreads()"
             : fiber->state == AT_WARP_BARRIER ? "__syncwarp()"
                                               : "a shuffle or vote",
             cpu_path(fiber->file), fiber->line);
    return text;
}

/* Nobody of the warp can go on: one lane waits for another that does something else. */
static void stop_stuck(struct fiber *warp, int lanes, int lane)
{
    const struct fiber *fiber = &warp[lane];
    cpu_now.thread = fiber->index;
    if (!(fiber->mask >> lane & 1))
        cpu_stop(fiber->file, fiber->line,
                 "waits for the lanes 0x%x of its warp, itself not one", fiber->mask);
    for (int other = 0; other < CPU_WARP; other++) {
        if (!(fiber->mask >> other & 1))
            continue;
        if (other >= lanes)
            cpu_stop(fiber->file, fiber->line,
                     "waits for lane %d of its warp, which does not exist", other);
        if (warp[other].state != fiber->state || warp[other].mask != fiber->mask)
            cpu_stop(fiber->file, fiber->line,
                     "waits for the lanes 0x%x of its warp, but lane %d %s", fiber->mask, other,
                     text_of(&warp[other]));
    }
    cpu_stop(fiber->file, fiber->line, "waits for the lanes 0x%x of its warp", fiber->mask);
}

/* All lanes that the fiber waits for wait for the same lanes, in the same way. */
static bool group_complete(const struct fiber *warp, int lanes, const struct fiber *fiber)
{
    for (int other = 0; other < CPU_WARP; other++)
        if (fiber->mask >> other & 1 && (other >= lanes || warp[other].state != fiber->state ||
                                         warp[other].mask != fiber->mask))
            return false;
    return fiber->mask >> (fiber - warp) & 1;
}

/* The lanes of a complete group go on. */
static void release_group(struct fiber *warp, unsigned mask, enum state state)
{
    struct worker *worker = cpu_worker;
    for (int lane = 0; lane < CPU_WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        worker->threads->passed[lane] = warp[lane].bits;
        warp[lane].passed_mask = mask;
        warp[lane].state = READY;
    }
    if (state == AT_EXCHANGE) { /* which orders no accesses to memory */
        worker->counts.exchanges++;
    } else {
        worker->counts.warp_barriers++;
        cpu_shared_stretch(worker);
    }
}

/* What most warps do: all lanes wait for all lanes. */
static bool all_together(const struct fiber *warp, int lanes)
{
    const enum state state = warp[0].state;
    if (warp[0].mask != 0xffffffff || lanes < CPU_WARP ||
        (state != AT_WARP_BARRIER && state != AT_EXCHANGE))
        return false;
    bool alike = true;
    for (int lane = 1; lane < CPU_WARP; lane++)
        alike &= warp[lane].state == state && warp[lane].mask == 0xffffffff;
    return alike;
}

/* True if some lanes go on; false if all have reached the block's barrier or their end. */
static bool release_warp(struct fiber *warp, int lanes)
{
    bool released = false;
    int stuck = -1;
    if (all_together(warp, lanes)) {
        release_group(warp, 0xffffffff, warp[0].state);
        return true;
    }
    for (int lane = 0; lane < lanes; lane++) {
        if (warp[lane].state == PAUSED) {
            warp[lane].state = READY;
            released = true;
        }
    }
    for (int lane = 0; lane < lanes; lane++) {
        const enum state state = warp[lane].state;
        if (state != AT_WARP_BARRIER && state != AT_EXCHANGE)
            continue;
        if (group_complete(warp, lanes, &warp[lane])) {
            release_group(warp, warp[lane].mask, state);
            released = true;
        } else {
            stuck = lane;
        }
    }
    if (!released && stuck >= 0)
        stop_stuck(warp, lanes, stuck);
    return released;
}

static void run_warp(struct fiber *warp, int lanes)
{
    struct threads *threads = cpu_worker->threads;
    threads->warp = warp;
    threads->lanes = lanes;
    cpu_shared_stretch(cpu_worker);
    do {
        run_lanes(threads);
        cpu_requests_merge(cpu_worker);
    } while (release_warp(warp, lanes));
}

/* True if the block goes on: all of its threads have reached the same barrier. */
static bool pass_barrier(struct fiber *fibers, int threads)
{
    const struct fiber *first = NULL, *ended = NULL;
    for (int n = 0; n < threads; n++) {
        struct fiber *fiber = &fibers[n];
        if (fiber->state == DONE)
            ended = fiber;
        else if (!first)
            first = fiber;
    }
    if (!first)
        return false;
    cpu_now.thread = first->index;
    for (int n = 0; n < threads; n++) {
        struct fiber *fiber = &fibers[n];
        if (ended || fiber->line != first->line || fiber->file != first->file) {
            const struct fiber *other = ended ? ended : fiber;
            cpu_stop(first->file, first->line,
                     "waits at __syncthreads() for all threads of the block, but thread (%u, "
                     "%u, %u) %s",
                     other->index.x, other->index.y, other->index.z, text_of(other));
        }
        fiber->state = READY;
    }
    cpu_worker->counts.barriers += (threads + CPU_WARP - 1) / CPU_WARP;
    cpu_shared_barrier(cpu_worker);
    return true;
}

static void run_block(int threads)
{
    struct fiber *fibers = cpu_worker->threads->fiber;
    for (int n = 0; n < threads; n++) {
        fibers[n].state = READY;
        fibers[n].operations = 0;
    }
    do {
        for (int first = 0; first < threads; first += CPU_WARP)
            run_warp(&fibers[first], threads - first < CPU_WARP ? threads - first : CPU_WARP);
    } while (pass_barrier(fibers, threads));
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
    worker->threads->grid = grid;
    cpu_now.kernel = grid->kernel;
    cpu_now.file = grid->file;
    cpu_now.grid_dim = grid->grid;
    cpu_now.block_dim = grid->block;
    cpu_now.observed = !cpu_options.unobserved;
    number_threads(worker->threads->fiber, grid->block);
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
    wait_in(AT_BARRIER, file, line);
}

void cpu_sync_warp(unsigned mask, const char *file, int line)
{
    cpu_worker->threads->running->mask = mask;
    wait_in(AT_WARP_BARRIER, file, line);
}

void cpu_exchange(unsigned mask, uint64_t bits, const char *file, int line)
{
    struct fiber *fiber = cpu_worker->threads->running;
    fiber->mask = mask;
    fiber->bits = bits;
    wait_in(AT_EXCHANGE, file, line);
}

uint64_t cpu_passed(int lane, const char *file, int line)
{
    struct threads *threads = cpu_worker->threads;
    if (!(threads->running->passed_mask >> lane & 1))
        cpu_stop(file, line, "takes a value from lane %d of its warp, which passes none", lane);
    return threads->passed[lane];
}
