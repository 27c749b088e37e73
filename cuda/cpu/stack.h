/* Stacks that functions run on in turns: the machinery below fibers.c and wait.h. */
#ifndef FLASHLAB_CUDA_CPU_STACK_H
#define FLASHLAB_CUDA_CPU_STACK_H

#include <stddef.h>

#ifndef __x86_64__
#define FLASHLAB_SWAPCONTEXT
#endif
#ifdef FLASHLAB_SWAPCONTEXT
#include <ucontext.h>
#endif
#if defined __SANITIZE_ADDRESS__
#define WITH_ASAN
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#endif

/* A stack that does not run, and what it needs to go on; or the caller's own, before its first
 * switch: all zeros. */
struct cpu_stack {
#ifdef FLASHLAB_SWAPCONTEXT
    ucontext_t context;
#else
    void *top, *instruction, *frame; /* rsp, rip, rbp */
#endif
#ifdef WITH_ASAN
    const void *bottom;
    size_t bytes;
    void *fake;
#endif
};

#ifdef __cplusplus
extern "C" {
#endif

/* Zeroed memory of its own pages; stops if there is none. */
void *stack_map(size_t bytes);

/* From one stack to the next of those that lie together: a multiple of a page. */
size_t stack_pitch(void);

/* Stack n of those that lie at stacks: the first switch to it calls begin(), which never
 * returns. It ends in pages that stop whoever overruns it. */
void stack_make(struct cpu_stack *stack, char *stacks, int n, void (*begin)(void));

/* What runs now will go on from *from; what *to was left with goes on. */
#if defined WITH_ASAN || defined FLASHLAB_SWAPCONTEXT
void cpu_stack_switch(struct cpu_stack *from, struct cpu_stack *to);
#else
#define cpu_stack_switch cpu_stack_jump
#endif

/* What a switch to it will read first. */
static inline const void *cpu_stack_top(const struct cpu_stack *stack)
{
#ifdef FLASHLAB_SWAPCONTEXT
    return &stack->context;
#else
    return stack->top;
#endif
}

#ifndef FLASHLAB_SWAPCONTEXT

#ifdef __AVX512F__
#define CPU_STACK_MORE_REGISTERS                                                               \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",         \
        "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", \
        "k5", "k6", "k7"
#else
#define CPU_STACK_MORE_REGISTERS
#endif

/* swapcontext() asks the kernel for the signal mask each time, twenty times the cost of this.
 * Inline, so that what is not needed afterwards is not kept, and what is keeps the compiler's
 * place; the processor foresees where each jump leads, for most wait after the same wait. */
static inline __attribute__((always_inline)) void cpu_stack_jump(struct cpu_stack *from,
                                                                 struct cpu_stack *to)
{
    __asm__ volatile("lea 1f(%%rip), %%rax\n\t"
                     "mov %%rax, %c[instruction](%0)\n\t"
                     "mov %%rbp, %c[frame](%0)\n\t"
                     "mov %%rsp, %c[top](%0)\n\t"
                     "mov %c[top](%1), %%rsp\n\t"
                     "mov %c[frame](%1), %%rbp\n\t"
                     "jmp *%c[instruction](%1)\n"
                     "1:"
                     : "+D"(from), "+S"(to)
                     : [top] "i"(offsetof(struct cpu_stack, top)),
                       [frame] "i"(offsetof(struct cpu_stack, frame)),
                       [instruction] "i"(offsetof(struct cpu_stack, instruction))
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13",
                       "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15", "cc", "memory" CPU_STACK_MORE_REGISTERS);
}

#endif

#ifdef __cplusplus
}
#endif

#endif
