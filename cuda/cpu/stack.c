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

static void prepare(struct stack *stack, char *bottom, size_t bytes, void (*begin)(void))
{
    getcontext(&stack->context);
    stack->context.uc_stack.ss_sp = bottom;
    stack->context.uc_stack.ss_size = bytes;
    makecontext(&stack->context, begin, 0);
}

static void go_on(struct stack *from, struct stack *to)
{
    swapcontext(&from->context, &to->context);
}

#else

/* swapcontext() asks the kernel for the signal mask each time, twenty times the cost of this:
 * what a function must preserve goes to the old stack, and comes from the new one. A jump in
 * the place of a return, which the processor would expect to lead back to the old one. top is
 * the first member. */
#ifdef WITH_ASAN
#define SWITCH "go_on"
void go_on(struct stack *from, struct stack *to);
#else
#define SWITCH "stack_switch"
#endif
__asm__(".text\n"
        ".globl " SWITCH "\n"
        ".type " SWITCH ", @function\n" SWITCH ":\n"
        "    push %rbp\n    push %rbx\n    push %r12\n"
        "    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov (%rsi), %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n"
        "    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    pop %rcx\n    jmp *%rcx\n"
        ".size " SWITCH ", .-" SWITCH "\n");

static void prepare(struct stack *stack, char *bottom, size_t bytes, void (*begin)(void))
{
    /* six registers, where to go, and where that would return to: nowhere */
    void **top = (void **)(bottom + bytes) - 8;
    memset(top, 0, 8 * sizeof *top);
    memcpy(&top[6], &begin, sizeof begin);
    stack->top = top;
}

#endif

#ifdef WITH_ASAN

/* Whom the running stack was switched from: its place is known when the switch has happened. */
static __thread struct stack *left;

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

void stack_switch(struct stack *from, struct stack *to)
{
    left = from;
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->bytes);
    go_on(from, to);
    arrived(from->fake);
}

#elif defined FLASHLAB_SWAPCONTEXT

void stack_switch(struct stack *from, struct stack *to)
{
    go_on(from, to);
}

#endif

void stack_make(struct stack *stack, char *stacks, int n, void (*begin)(void))
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
