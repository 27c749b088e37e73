/* Stacks that functions run on in turns: the machinery below fibers.c. */
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

enum { STACK_BYTES = 256 * 1024 };

/* A stack that does not run, and what it needs to go on; or the caller's own, before its first
 * switch: all zeros. */
struct stack {
#ifdef FLASHLAB_SWAPCONTEXT
    ucontext_t context;
#else
    void *top;
#endif
#ifdef WITH_ASAN
    const void *bottom;
    size_t bytes;
    void *fake;
#endif
};

/* Zeroed memory of its own pages; stops if there is none. */
void *stack_map(size_t bytes);

/* From one stack to the next of those that lie together: a multiple of a page. */
size_t stack_pitch(void);

/* Stack n of those that lie at stacks: the first switch to it calls begin(), which never
 * returns. It ends in pages that stop whoever overruns it. */
void stack_make(struct stack *stack, char *stacks, int n, void (*begin)(void));

/* What runs now will go on from *from; what *to was left with goes on. */
void stack_switch(struct stack *from, struct stack *to);

#endif
