/* Between the kernels, which see it as CUDA, and the threads and counters behind them. */
#ifndef FLASHLAB_CUDA_CPU_ENGINE_H
#define FLASHLAB_CUDA_CPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/cpu/cpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_WARP = 32, CPU_MAX_THREADS = 1024 };

struct cpu_index {
    unsigned x, y, z;
};

/* The thread that is running. One of each OpenMP thread. */
struct cpu_now {
    struct cpu_index thread, block, block_dim, grid_dim;
    const char *kernel;
    void *shared; /* the block's dynamic shared memory */
    int lane;
};
extern __thread struct cpu_now cpu_now;

struct cpu_grid {
    const char *kernel;
    struct cpu_index grid, block;
    size_t shared_bytes;
    void (*thread)(const void *context); /* one thread of the kernel, from begin to end */
    const void *context;
};

/* Runs all blocks. */
void cpu_run_grid(const struct cpu_grid *grid);

/* __syncthreads() and __syncwarp(). */
void cpu_sync_block(void);
void cpu_sync_warp(unsigned mask);
/* The bits that lane ^ other passes in the same call. */
uint64_t cpu_shuffle_xor(unsigned mask, uint64_t bits, int other);

/* Where a kernel accesses memory, and where it took the pointer there (0: an argument). */
struct cpu_place {
    const char *file;
    int line, origin;
};
/* Before each access to HBM. */
void cpu_observe(const void *at, int bytes, enum cpu_way way, const struct cpu_place *place);

/* For the scheduler, of the calling OpenMP thread: its counts begin; a lane begins to run; the
 * warp has converged, so that its pending accesses become requests; its counts join those of
 * the launch. */
void cpu_requests_begin(void);
void cpu_requests_lane(void);
void cpu_requests_merge(void);
void cpu_requests_join(struct cpu_launch_counts *launch);
/* The entry of a new launch. */
struct cpu_launch_counts *cpu_launch_begin(const char *kernel);

/* Stops the program, naming the running thread. */
void cpu_stop(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif
