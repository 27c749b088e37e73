/* Global pointers of the tracing build: each thread counts the bytes of its accesses. They are
 * used as plain pointers are. There are no atomics through them: no kernel reduces into HBM. */
#ifndef FLASHLAB_CUDA_COUNTED_MEMORY_H
#define FLASHLAB_CUDA_COUNTED_MEMORY_H

#include <stdint.h>

enum { TRACED_THREADS = 128, WARP_THREADS = 32 }; /* every traced kernel's block has 128 */

/* Below 4 GB each: a traced problem is small. */
struct thread_bytes {
    unsigned read, written;
};

/* By threadIdx.x. In shared memory: a traced kernel needs 1 KB more of it. */
__device__ inline struct thread_bytes *block_bytes()
{
    __shared__ struct thread_bytes bytes[TRACED_THREADS];
    return bytes;
}

/* What pointer[n] is: reading and assigning it count. */
template <class T> struct CountedElement {
    T *at;

    __device__ explicit CountedElement(T *element) : at(element)
    {
    }
    CountedElement &operator=(const CountedElement &) = delete;
    __device__ operator T() const
    {
        block_bytes()[threadIdx.x].read += (unsigned)sizeof(T);
        return *at;
    }
    __device__ void operator=(T value)
    {
        block_bytes()[threadIdx.x].written += (unsigned)sizeof(T);
        *at = value;
    }
};

template <class T> struct Global {
    T *at;

    __host__ __device__ Global(T *pointer) : at(pointer)
    {
    }
    /* to Global<const T> */
    template <class U> __host__ __device__ Global(Global<U> other) : at(other.at)
    {
    }
    __device__ Global operator+(int64_t elements) const
    {
        return at + elements;
    }
    __device__ CountedElement<T> operator[](int64_t element) const
    {
        return CountedElement<T>(at + element);
    }
};

#endif
