/* Threads of a block as fibers of one OpenMP thread: each has a stack, and runs until it waits
 * for others or ends. Between two points where a warp converges its lanes run one after the
 * other. Fibers and stacks are made once and serve every block. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#define FLASHLAB_SWAPCONTEXT
#endif
#ifdef FLASHLAB_SWAPCONTEXT
#include <ucontext.h>
#endif

#include "core/status.h"
#include "cuda/cpu/engine.h"

enum {
    STACK_BYTES = 256 * 1024,
    PAGE_BYTES = 64 * 1024, /* of any machine */
    /* Stacks begin at different places of their pages, or all would share a few cache lines. */
    STAGGER = 13 * 64,
    STAGGERS = 64,
};

enum state { READY, AT_BARRIER, AT_WARP_SYNC, AT_SHUFFLE, DONE };

/* A stack that does not run: what it needs to go on. */
#ifdef FLASHLAB_SWAPCONTEXT
typedef ucontext_t parked;
#else
typedef void *parked;
#endif

struct fiber {
    parked parked;
    enum state state;
    struct cpu_index index;
    unsigned mask; /* of the warp call it waits in */
    int turn;      /* which of passed[] the next shuffle uses */
    uint64_t
        passed[2]; /* two: a lane may be at the next shuffle before another has read this */
};

struct worker {
    struct fiber fiber[CPU_MAX_THREADS];
    parked parked;         /* the scheduler */
    struct fiber *running; /* NULL: the scheduler */
    const struct cpu_grid *grid;
    void *shared;
    size_t shared_bytes;
    /* Why the running fiber stops the program. */
    const char *stop_file;
    int stop_line;
    char stop_text[512];
};

__thread struct cpu_now cpu_now;
static __thread struct worker *worker;

static void fiber_main(void);

/* switch_stack() parks what runs in *from and goes on with *to; park_new() makes *to one that
 * begins in fiber_main(). swapcontext() asks the kernel for the signal mask each time, twenty
 * times the cost of the switch. */
#ifdef FLASHLAB_SWAPCONTEXT
static void switch_stack(parked *from, parked *to)
{
    swapcontext(from, to);
}
static void park_new(parked *to, char *stack, size_t bytes)
{
    getcontext(to);
    to->uc_stack.ss_sp = stack;
    to->uc_stack.ss_size = bytes;
    makecontext(to, fiber_main, 0);
}
#else
void cpu_switch_stack(parked *from, const void *to);
/* What a function must preserve goes to the old stack, and comes from the new one. */
__asm__(".text\n"
        ".type cpu_switch_stack, @function\n"
        "cpu_switch_stack:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n"
        "    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n"
        "    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size cpu_switch_stack, .-cpu_switch_stack\n");
static void switch_stack(parked *from, parked *to)
{
    cpu_switch_stack(from, *to);
}
static void park_new(parked *to, char *stack, size_t bytes)
{
    /* six registers, where to go, and where that would return to: nowhere */
    void **top = (void **)(stack + bytes) - 8;
    memset(top, 0, 8 * sizeof *top);
    void (*const begin)(void) = fiber_main;
    memcpy(&top[6], &begin, sizeof begin);
    *to = top;
}
#endif

static void wait_in(enum state state)
{
    struct fiber *fiber = worker->running;
    fiber->state = state;
    switch_stack(&fiber->parked, &worker->parked);
}

static void fiber_main(void)
{
    for (;;) {
        worker->grid->thread(worker->grid->context);
        wait_in(DONE);
    }
}

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory for the stacks of a thread block");
    return memory;
}

/* Each stack ends in a page that stops whoever overruns it. */
static void worker_make(void)
{
    worker = map(sizeof *worker);
    char *stacks = map((size_t)CPU_MAX_THREADS * STACK_BYTES);
    for (int n = 0; n < CPU_MAX_THREADS; n++) {
        char *stack = stacks + (size_t)n * STACK_BYTES;
        mprotect(stack, PAGE_BYTES, PROT_NONE);
        park_new(&worker->fiber[n].parked, stack + PAGE_BYTES,
                 (size_t)(STACK_BYTES - PAGE_BYTES - n % STAGGERS * STAGGER));
    }
}

static void stop_now(void)
{
    const struct cpu_index block = cpu_now.block, thread = cpu_now.thread;
    const char *file = worker->stop_file;
    if (strncmp(file, "./", 2) == 0) /* found by -I. */
        file += 2;
    check_failed(file, worker->stop_line, "%s, block (%u, %u, %u), thread (%u, %u, %u): %s",
                 cpu_now.kernel, block.x, block.y, block.z, thread.x, thread.y, thread.z,
                 worker->stop_text);
}

/* A fiber leaves that to the scheduler: AddressSanitizer wants abort() on a stack it knows. */
void cpu_stop(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(worker->stop_text, sizeof worker->stop_text, format, arguments);
    va_end(arguments);
    worker->stop_file = file;
    worker->stop_line = line;
    if (worker->running)
        switch_stack(&worker->running->parked, &worker->parked);
    stop_now();
    abort();
}

static void run_lane(struct fiber *fiber, int lane)
{
    cpu_now.thread = fiber->index;
    cpu_now.lane = lane;
    worker->running = fiber;
    cpu_requests_lane();
    switch_stack(&worker->parked, &fiber->parked);
    worker->running = NULL;
    if (worker->stop_file)
        stop_now();
}

/* All lanes of a warp wait or are done: true if they wait for each other, and may go on. */
static bool warp_converged(struct fiber *warp, int lanes)
{
    enum state state = DONE;
    unsigned done = 0, awaited = 0;
    for (int lane = 0; lane < lanes; lane++) {
        const struct fiber *fiber = &warp[lane];
        if (fiber->state == DONE) {
            done |= 1u << lane;
            continue;
        }
        cpu_now.thread = fiber->index; /* whom a message names */
        if (state != DONE && state != fiber->state)
            cpu_stop(__FILE__, __LINE__, "lanes of one warp wait for different things");
        state = fiber->state;
        awaited |= fiber->mask;
    }
    if (state != AT_WARP_SYNC && state != AT_SHUFFLE)
        return false;
    if (awaited & done)
        cpu_stop(__FILE__, __LINE__, "waits for lanes 0x%x, which have ended", awaited & done);
    return true;
}

/* Until every lane waits for the block, or is done. */
static void run_warp(struct fiber *warp, int lanes)
{
    bool again = true;
    while (again) {
        for (int lane = 0; lane < lanes; lane++)
            if (warp[lane].state == READY)
                run_lane(&warp[lane], lane);
        cpu_requests_merge();
        again = warp_converged(warp, lanes);
        for (int lane = 0; lane < lanes && again; lane++)
            if (warp[lane].state != DONE)
                warp[lane].state = READY;
    }
}

static void run_block(int threads)
{
    const struct cpu_index dim = cpu_now.block_dim;
    for (unsigned n = 0; n < (unsigned)threads; n++) {
        struct fiber *fiber = &worker->fiber[n];
        fiber->state = READY;
        fiber->index = (struct cpu_index){n % dim.x, n / dim.x % dim.y, n / dim.x / dim.y};
    }
    int waiting;
    do {
        for (int first = 0; first < threads; first += CPU_WARP)
            run_warp(&worker->fiber[first],
                     threads - first < CPU_WARP ? threads - first : CPU_WARP);
        waiting = 0;
        for (int n = 0; n < threads; n++) {
            if (worker->fiber[n].state == AT_BARRIER) {
                worker->fiber[n].state = READY;
                waiting++;
            }
        }
    } while (waiting > 0);
}

/* What a block finds in dynamic shared memory is NaN. */
static void shared_renew(size_t bytes)
{
    if (bytes > worker->shared_bytes) {
        free(worker->shared);
        worker->shared_bytes = (bytes + 255) / 256 * 256;
        worker->shared = aligned_alloc(256, worker->shared_bytes);
        CHECK(worker->shared, "no host memory for %zu bytes of shared memory", bytes);
    }
    if (bytes > 0)
        memset(worker->shared, 0xff, bytes);
    cpu_now.shared = worker->shared;
}

void cpu_run_grid(const struct cpu_grid *grid)
{
    const int64_t blocks = (int64_t)grid->grid.x * grid->grid.y * grid->grid.z;
    const int64_t threads = (int64_t)grid->block.x * grid->block.y * grid->block.z;
    CHECK(threads >= 1 && threads <= CPU_MAX_THREADS, "%s: %lld threads a block", grid->kernel,
          (long long)threads);
    struct cpu_launch_counts *counts = cpu_launch_begin(grid->kernel);
#pragma omp parallel
    {
        if (!worker)
            worker_make();
        worker->grid = grid;
        cpu_now.kernel = grid->kernel;
        cpu_now.grid_dim = grid->grid;
        cpu_now.block_dim = grid->block;
        cpu_requests_begin();
#pragma omp for schedule(dynamic)
        for (int64_t n = 0; n < blocks; n++) {
            const int64_t x = grid->grid.x, y = grid->grid.y;
            cpu_now.block = (struct cpu_index){(unsigned)(n % x), (unsigned)(n / x % y),
                                               (unsigned)(n / x / y)};
            shared_renew(grid->shared_bytes);
            run_block((int)threads);
        }
#pragma omp critical
        cpu_requests_join(counts);
    }
}

void cpu_sync_block(void)
{
    wait_in(AT_BARRIER);
}

void cpu_sync_warp(unsigned mask)
{
    worker->running->mask = mask;
    wait_in(AT_WARP_SYNC);
}

uint64_t cpu_shuffle_xor(unsigned mask, uint64_t bits, int other)
{
    struct fiber *fiber = worker->running;
    const int lane = cpu_now.lane, turn = fiber->turn;
    fiber->passed[turn] = bits;
    fiber->turn = 1 - turn;
    fiber->mask = mask;
    wait_in(AT_SHUFFLE);
    const struct fiber *source = fiber - lane + (lane ^ other);
    return source->passed[turn];
}
