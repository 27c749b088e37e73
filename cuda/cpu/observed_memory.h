/* Pointers of the build for the CPU: each access is observed before it happens. They are used
 * as plain pointers are, and remember the line of the kernel's file on which they were last
 * moved or handed to a function: it sets two calls of a function apart, and says what a line
 * costs. */
#ifndef FLASHLAB_CUDA_CPU_OBSERVED_MEMORY_H
#define FLASHLAB_CUDA_CPU_OBSERVED_MEMORY_H

#include "cuda/cpu/access.h"

/* Default arguments are evaluated where the call stands, or the conversion that makes one. */
#define CPU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* Kernels stand in .cu files, the functions that they call in headers. */
static inline constexpr bool cpu_in_kernel(const char *file)
{
    return __builtin_strlen(file) > 3 && file[__builtin_strlen(file) - 1] == 'u';
}
/* Of a pointer that came from before, on that line: see struct cpu_where. */
static inline constexpr int cpu_origin(int before, const char *file, int line)
{
    return cpu_in_kernel(file) ? line << 16 : (before & ~0xffff) | (line & 0xffff);
}

/* The index of an access or a move. */
struct PlacedIndex {
    int64_t index;
    const char *file;
    int line;

    PlacedIndex(int64_t n, CPU_HERE) : index(n), file(file), line(line)
    {
    }
};

CPU_INLINE void cpu_observe(const void *at, int bytes, enum cpu_way way, const char *file,
                            int line, int origin, bool shared)
{
    const struct cpu_kind kind = {way, shared, bytes};
    const uint64_t site = cpu_site(way, shared, bytes, line, origin);
    if (!CPU_LIKELY(cpu_now.observed))
        return;
    if (!cpu_may_be_quick(kind) || !CPU_LIKELY(cpu_access_quickly(at, kind, site, file)))
        cpu_access(at, site, file);
}

template <class T, bool SHARED> struct ObservedPointer;

/* What pointer[n] is. */
template <class T, bool SHARED> struct ObservedElement {
    T *at;
    const char *file;
    int line, origin;

    ObservedElement(T *element, const char *file, int line, int origin)
        : at(element), file(file), line(line), origin(origin)
    {
    }
    ObservedElement(const ObservedElement &) = default;
    CPU_PART operator T() const
    {
        cpu_observe(at, (int)sizeof(T), CPU_LOAD, file, line, origin, SHARED);
        return *at;
    }
    CPU_PART void operator=(T value) const
    {
        cpu_observe(at, (int)sizeof(T), CPU_STORE, file, line, origin, SHARED);
        *at = value;
    }
    CPU_PART void operator=(const ObservedElement &other) const
    {
        *this = (T)other;
    }
    CPU_PART void operator+=(T value) const
    {
        *this = (T) * this + value;
    }
    CPU_PART void operator-=(T value) const
    {
        *this = (T) * this - value;
    }
    CPU_PART void operator*=(T value) const
    {
        *this = (T) * this * value;
    }
    ObservedPointer<T, SHARED> operator&() const
    {
        return ObservedPointer<T, SHARED>(at, origin, file, line);
    }
};

template <class T, bool SHARED> struct ObservedPointer {
    T *at;
    int origin;

    ObservedPointer() = default;
    ObservedPointer(T *pointer, CPU_HERE) : at(pointer), origin(cpu_origin(0, file, line))
    {
    }
    ObservedPointer(T *pointer, int before, const char *file, int line)
        : at(pointer), origin(cpu_origin(before, file, line))
    {
    }
    ObservedPointer(const ObservedPointer &other, CPU_HERE)
        : at(other.at), origin(cpu_origin(other.origin, file, line))
    {
    }
    /* to a pointer to const */
    template <class U>
    ObservedPointer(const ObservedPointer<U, SHARED> &other, CPU_HERE)
        : at(other.at), origin(cpu_origin(other.origin, file, line))
    {
    }
    ObservedPointer &operator=(const ObservedPointer &) = default;
    ObservedPointer operator+(PlacedIndex n) const
    {
        return ObservedPointer(at + n.index, origin, n.file, n.line);
    }
    ObservedPointer operator-(PlacedIndex n) const
    {
        return ObservedPointer(at - n.index, origin, n.file, n.line);
    }
    void operator+=(PlacedIndex n)
    {
        *this = *this + n;
    }
    ObservedElement<T, SHARED> operator[](PlacedIndex n) const
    {
        return ObservedElement<T, SHARED>(at + n.index, n.file, n.line, origin);
    }
};

template <class T> using Global = ObservedPointer<T, false>;
template <class T> using Shared = ObservedPointer<T, true>;

/* A static array in shared memory with two indices: translate.sed puts it in the place of
 * __shared__ T name[rows][cols]. */
template <class T> struct SharedRows {
    Shared<T> first;
    int cols;

    Shared<T> operator[](PlacedIndex row) const
    {
        return Shared<T>(first.at + row.index * cols, first.origin, row.file, row.line);
    }
};
template <class T>
static inline Shared<T> cpu_shared_array(const char *name, int64_t n, CPU_HERE)
{
    const auto &known = cpu_now.statics[line % CPU_STATICS];
    void *const array =
        known.key == line ? known.base : cpu_shared_static(name, n * (int64_t)sizeof(T), line);
    return Shared<T>((T *)array, 0, file, line);
}
template <class T>
static inline SharedRows<T> cpu_shared_rows(const char *name, int rows, int cols, CPU_HERE)
{
    return {cpu_shared_array<T>(name, (int64_t)rows * cols, file, line), cols};
}

/* value <- four floats in one access of 16 bytes. */
static inline void load4(float (&value)[4], Shared<const float> from, CPU_HERE)
{
    cpu_observe(from.at, 16, CPU_LOAD, file, line, from.origin, true);
    for (int n = 0; n < 4; n++)
        value[n] = from.at[n];
}

/* What T is as a value: functions may be given pointer[n] too. */
template <class T> struct ValueOf {
    using type = T;
};
template <class T, bool SHARED> struct ValueOf<ObservedElement<T, SHARED>> {
    using type = T;
};
template <class T, bool SHARED> struct ValueOf<ObservedElement<const T, SHARED>> {
    using type = T;
};
template <class T> using cpu_value = typename ValueOf<T>::type;

/* Threads of other blocks may do the same to HBM. */
template <class T, bool SHARED>
static inline T atomicAdd(ObservedPointer<T, SHARED> to, cpu_value<T> value, CPU_HERE)
{
    T before, after;
    cpu_observe(to.at, (int)sizeof(T), CPU_REDUCE, file, line, to.origin, SHARED);
    __atomic_load(to.at, &before, __ATOMIC_RELAXED);
    do
        after = before + value;
    while (!__atomic_compare_exchange(to.at, &before, &after, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
    return before;
}

#endif
