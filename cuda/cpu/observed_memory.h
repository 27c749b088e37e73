/* Global pointers of the build for the CPU: each access is observed before it happens. They are
 * used as plain pointers are, and remember the line on which they were last moved: it sets two
 * calls of a function that accesses them apart. */
#ifndef FLASHLAB_CUDA_CPU_OBSERVED_MEMORY_H
#define FLASHLAB_CUDA_CPU_OBSERVED_MEMORY_H

#include "cuda/cpu/engine.h"

/* The index of an access or a move. Default arguments of a conversion are evaluated where the
 * conversion stands: in the kernel. */
struct PlacedIndex {
    int64_t index;
    const char *file;
    int line;

    PlacedIndex(int64_t n, const char *in = __builtin_FILE(), int at = __builtin_LINE())
        : index(n), file(in), line(at)
    {
    }
};

/* What pointer[n] is. */
template <class T> struct ObservedElement {
    T *at;
    struct cpu_place place;

    ObservedElement(const ObservedElement &) = default;
    ObservedElement &operator=(const ObservedElement &) = delete;
    operator T() const
    {
        cpu_observe(at, (int)sizeof(T), CPU_LOAD, &place);
        return *at;
    }
    void operator=(T value)
    {
        cpu_observe(at, (int)sizeof(T), CPU_STORE, &place);
        *at = value;
    }
};

template <class T> struct Global {
    T *at;
    int origin;

    Global(T *pointer, int line = 0) : at(pointer), origin(line)
    {
    }
    /* to Global<const T> */
    template <class U> Global(Global<U> other) : at(other.at), origin(other.origin)
    {
    }
    Global operator+(PlacedIndex n) const
    {
        return Global(at + n.index, n.line);
    }
    void operator+=(PlacedIndex n)
    {
        at += n.index;
        origin = n.line;
    }
    ObservedElement<T> operator[](PlacedIndex n) const
    {
        return {at + n.index, {n.file, n.line, origin}};
    }
};

#endif
