#define _GNU_SOURCE
#include "cuda/cpu/stack.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/status.h"

#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    STACK_BYTES = 256 * 1024,
    GUARD_PAGES = 17,
    /* Stacks begin at different places of their pages, or all would share a few cache lines. */
    STAGGER = 13 * 64,
    STAGGERS = 64,
};

/* An odd number of pages apart: if it were a power of two, the pages in use of all stacks would
 * share a few entries of the TLB, and a switch among 256 would take twice as long. */
size_t stack_pitch(void)
{
    return STACK_BYTES + GUARD_PAGES * (size_t)sysconf(_SC_PAGESIZE);
}

void *stack_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory for the stacks of a thread block");
    return memory;
}

#ifdef FLASHLAB_SWAPCONTEXT

static void prepare(struct cpu_stack *stack, char *bottom, size_t bytes, void (*begin)(void))
{
    getcontext(&stack->context);
    stack->context.uc_stack.ss_sp = bottom;
    stack->context.uc_stack.ss_size = bytes;
    makecontext(&stack->context, begin, 0);
}

static void cpu_stack_jump(struct cpu_stack *from, struct cpu_stack *to)
{
    swapcontext(&from->context, &to->context);
}

#else

static void prepare(struct cpu_stack *stack, char *bottom, size_t bytes, void (*begin)(void))
{
    /* as if called from nowhere */
    void **top = (void **)(bottom + bytes) - 1;
    *top = NULL;
    stack->top = top;
    memcpy(&stack->instruction, &begin, sizeof begin);
}

#endif

#ifdef WITH_ASAN

/* Whom the running stack was switched from: its place is known when the switch has happened. */
static __thread struct cpu_stack *left;

static void arrived(void *fake)
{
    const void *bottom = NULL;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake, &bottom, &bytes);
    if (left && !left->bottom) {
        left->bottom = bottom;
        left->bytes = bytes;
    }
}

static __thread void (*first_call)(void);

static void begin_on_stack(void)
{
    arrived(NULL);
    first_call();
}

void cpu_stack_switch(struct cpu_stack *from, struct cpu_stack *to)
{
    left = from;
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->bytes);
    cpu_stack_jump(from, to);
    arrived(from->fake);
}

#elif defined FLASHLAB_SWAPCONTEXT

void cpu_stack_switch(struct cpu_stack *from, struct cpu_stack *to)
{
    cpu_stack_jump(from, to);
}

#endif

void stack_make(struct cpu_stack *stack, char *stacks, int n, void (*begin)(void))
{
    char *guard = stacks + (size_t)n * stack_pitch();
    char *bottom = guard + stack_pitch() - STACK_BYTES;
    const size_t bytes = (size_t)(STACK_BYTES - n % STAGGERS * STAGGER);
    mprotect(guard, (size_t)(bottom - guard), PROT_NONE);
#ifdef WITH_ASAN
    stack->bottom = bottom;
    stack->bytes = bytes;
    first_call = begin; /* one function for all stacks of an OpenMP thread */
    begin = begin_on_stack;
#endif
    prepare(stack, bottom, bytes, begin);
}
