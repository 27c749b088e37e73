/* One run of any CUDA kernel, beside its simulated twin: for tests and benchmarks.
 *
 * Interface:
 *   struct run run = {.kernel = KERNEL_FLASH2, .a = {...}};
 *   run_open(&run, seed, &error);       random inputs, guarded device memory
 *   run_launch(&run, &error);           a device_work: may be timed and measured
 *   run_download(&run, &error);         outputs to run.array[].host
 *   run_damage(&run, text, &error)      true if a sentinel or an input has changed
 *   run_simulate(&gpu, &run, &error);   the twin's launches, counts only
 *   run_predict(&run);                  the closed form
 *   run_close(&run);
 *
 * Every array lies between sentinels on the device. Outputs start as NaN of one bit pattern.
 */
#ifndef FLASHLAB_CUDA_TESTS_RUN_H
#define FLASHLAB_CUDA_TESTS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/launch.h"
#include "cuda/attention.h"

enum kernel {
    KERNEL_VECTOR_ADD,
    KERNEL_MATMUL_NAIVE,
    KERNEL_MATMUL_SHARED,
    KERNEL_MATMUL_TILED,
    KERNEL_SOFTMAX_NAIVE,
    KERNEL_SOFTMAX_SAFE,
    KERNEL_SOFTMAX_ONLINE,
    KERNEL_NAIVE,
    KERNEL_STANDARD,
    KERNEL_FLASH1,
    KERNEL_FLASH2,
    KERNEL_COUNT,
};

/* "vector_add" ... "flash2_forward": the name of the file. */
const char *kernel_name(enum kernel kernel);
bool kernel_is_attention(enum kernel kernel);
bool kernel_is_matmul(enum kernel kernel);

/* The largest tile that the kernel is compiled for; 16 is the smallest. */
int kernel_most_tile(enum kernel kernel);

enum algorithm kernel_algorithm(enum kernel kernel);

/* Elements before and after each array: 256 bytes, so that arrays stay aligned as they are. */
enum { MAX_ARRAYS = 7, SENTINELS = 64 };

enum role { ROLE_INPUT, ROLE_OUTPUT };

struct array {
    const char *name;
    enum role role;
    size_t count;
    float *host;    /* [count], owned; NULL for arrays that no one looks at */
    float *guarded; /* device, [SENTINELS + count + SENTINELS], owned */
};

struct run {
    enum kernel kernel;
    struct attention a;    /* of attention kernels; dtype and tiled_gemm are set by run_open */
    int rows, cols, depth; /* of the others: C = rows x depth times depth x cols; X rows x cols;
                              vectors cols */
    int tile;              /* of matmul_shared and matmul_tiled */
    void *stream;
    int arrays;
    struct array array[MAX_ARRAYS];
};

/* "batch 1, heads 6/2, ...", or "37 x 63 x 20, tile 16", in a static buffer. */
const char *run_text(const struct run *run);

/* seed 0: inputs are uploaded from nothing but one random block, repeated: for large problems
 * whose results no one checks; no host arrays. */
enum status run_open(struct run *run, uint64_t seed, struct error *error);
void run_close(struct run *run);

/* The array of that name: a bug if there is none. */
struct array *run_array(struct run *run, const char *name);

enum status run_launch(void *run, struct error *error);

/* Outputs <- NaN. */
enum status run_poison(struct run *run, struct error *error);
enum status run_download(struct run *run, struct error *error);

/* Looks at sentinels and inputs. text (128 bytes) says what has changed. */
bool run_damage(const struct run *run, char *text, struct error *error);

enum status run_simulate(struct gpu *gpu, const struct run *run, struct error *error);
struct account run_predict(const struct run *run);

#endif
