/* The kernels of gpu_occupancy_times.c: what an SM reaches with few or many warps, each with
 * few or many independent instructions in flight. */
#ifndef FLASHLAB_CUDA_TESTS_OCCUPANCY_TIMES_KERNELS_H
#define FLASHLAB_CUDA_TESTS_OCCUPANCY_TIMES_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* sum_vector     work: bytes. A block reads chunks of threads * independent * 16 bytes, each
 *                thread its independent loads of 16 bytes before it adds up what they bring;
 *                result[i]: the sum of thread i. input: the vector
 * fma_chains     work: FMAs. Each thread has independent sums x = x / 2 + input[0] of which
 *                each step needs the one before; result[i]: what they add up to
 * pointer_chase  work: loads. One thread, each load needs the one before. input: line i of
 *                LINE_FLOATS floats begins with the number of its successor; result[0]: the
 *                first line, after it the last one, both as an unsigned's bits */
enum timed_work { TIMED_BYTES, TIMED_FMAS, TIMED_LOADS };

enum { LINE_FLOATS = 32 };

struct timed_kernel {
    const char *name;
    enum timed_work work;
    int independent;
    int threads;        /* of a block */
    int64_t round_work; /* of a thread, in one round of its loop */
    const void *kernel;
};

const struct timed_kernel *timed_kernels(int *count);

/* One launch. */
struct timed_launch {
    const struct timed_kernel *kernel;
    int grid;
    int64_t shared_bytes; /* dynamic: takes room, is not used */
    int64_t rounds;       /* of sum_vector: all blocks' together; else of each thread */
    float *result;
    const float *input;
};

/* Puts it on the default stream. context: a struct timed_launch. */
enum status launch_timed(void *context, struct error *error);

/* x[i] <- i % 16. count: a multiple of 4. */
enum status fill_vector(float *x, int64_t count, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
