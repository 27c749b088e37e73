/* A run of any of our kernels on the CPU, with arrays on the host.
 *
 * Interface:
 *   struct cpu_run run = {.kernel = CPU_VECTOR_ADD, .cols = 100};
 *   cpu_run_open(&run, &error);                        the kernel's arrays, all NaN
 *   cpu_run_data(&run, "a")[0] = 1; ...                or run.array[] with .input set
 *   cpu_run_launch(&run, &(struct cpu_options){0}, &error);
 *   cpu_run_data(&run, "c"), cpu_counts()              what came out, what it moved
 *   cpu_run_close(&run);
 */
#ifndef FLASHLAB_CUDA_CPU_RUN_H
#define FLASHLAB_CUDA_CPU_RUN_H

#include "core/attention.h"
#include "cuda/cpu/cpu.h"

enum cpu_kernel {
    CPU_VECTOR_ADD,
    CPU_MATMUL_NAIVE,
    CPU_MATMUL_SHARED,
    CPU_MATMUL_TILED,
    CPU_SOFTMAX_NAIVE,
    CPU_SOFTMAX_SAFE,
    CPU_SOFTMAX_ONLINE,
    CPU_NAIVE_ATTENTION, /* from here on in the order of enum algorithm */
    CPU_STANDARD_ATTENTION,
    CPU_FLASH1_FORWARD,
    CPU_FLASH2_FORWARD,
    CPU_KERNELS,
};

/* "vector_add": also its source file, cuda/kernels/vector_add.cu. */
const char *cpu_kernel_name(enum cpu_kernel kernel);
bool cpu_kernel_parse(enum cpu_kernel *kernel, const char *name);

static inline bool cpu_kernel_is_attention(enum cpu_kernel kernel)
{
    return kernel >= CPU_NAIVE_ATTENTION;
}

struct cpu_run_array {
    const char *name; /* the kernel's argument */
    float *memory;    /* [pad + count], owned, nothing else near */
    int64_t count;
    bool input;
};

enum { CPU_RUN_ARRAYS = 8 };
struct cpu_run {
    enum cpu_kernel kernel;
    struct attention a; /* of attention kernels */
    int rows, cols;     /* of the result; a vector has cols elements */
    int depth, tile;    /* of matrix products */
    /* Mistakes to be noticed: arrays that begin so many elements after a multiple of 256 bytes;
     * one that is declared an element too short; an input that is declared unwritten. */
    int pad;
    const char *shortened, *unwritten;
    int arrays;
    struct cpu_run_array array[CPU_RUN_ARRAYS];
};

/* Allocates the arrays. Refuses what cpu_array() cannot take. */
enum status cpu_run_open(struct cpu_run *run, struct error *error);

/* Launches the kernel; what it did is cpu_counts() until the next launch or close. The message
 * of a refusal is that of the launcher. */
enum status cpu_run_launch(const struct cpu_run *run, const struct cpu_options *options,
                           struct error *error);

/* The first element of the array of that name; NULL if the kernel has none. */
float *cpu_run_data(const struct cpu_run *run, const char *name);

/* lse (batch, heads_q, seqlen_q) <- the log-sum-exp of an attention kernel: of
 * FlashAttention-1, which leaves l and m, m + log l. */
void cpu_run_lse(float *lse, const struct cpu_run *run);

/* Frees the arrays and the counts; also after a failure. */
void cpu_run_close(struct cpu_run *run);

#endif
