/* The CUDA kernels on the CPU, every access to HBM observed.
 *
 * Interface:
 *   cpu_begin();                                        forgets arrays and counts
 *   cpu_array("Q", q, bytes, CPU_FILLED); ...           all that a kernel may touch
 *   cpu_array("O", o, bytes, CPU_UNWRITTEN);
 *   launch_flash2_forward(&a, &tensors, &error);        cuda/attention.h, cuda/basic.h
 *   const struct cpu_counts *counts = cpu_counts();     one entry a launch
 *   cpu_end();                                          frees what the calls above took
 *
 * The launchers are those of the GPU, compiled from the same files, with host addresses for
 * device addresses; they return when the kernel is done. Blocks run on all OpenMP threads.
 * An access outside the arrays, a read of an element that nobody has written and threads of a
 * warp that wait for different things stop the program with the source line, kernel, block and
 * thread.
 *
 * Requests are counted as the hardware counts them: the n-th accesses that the lanes of a warp
 * make at one place since the warp last converged (a barrier or a shuffle) are one request. A
 * place is a source line, the array, and the line at which the pointer was moved there: what
 * sets two calls of tile_load() apart. Two accesses to one array on one line are one place.
 * Sectors are those of arrays that begin at a multiple of 256 bytes, wherever they lie here.
 */
#ifndef FLASHLAB_CUDA_CPU_H
#define FLASHLAB_CUDA_CPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CPU_MAX_LAUNCHES = 8, CPU_MAX_ARRAYS = 16 };
enum cpu_content { CPU_UNWRITTEN, CPU_FILLED };
enum cpu_way { CPU_LOAD, CPU_STORE, CPU_WAYS };

struct cpu_launch_counts {
    char kernel[48];
    int64_t accesses[CPU_WAYS]; /* of single threads */
    int64_t requests[CPU_WAYS], bytes[CPU_WAYS], sectors[CPU_WAYS];
};

struct cpu_counts {
    int launches;
    struct cpu_launch_counts launch[CPU_MAX_LAUNCHES];
};

void cpu_begin(void);
/* name is kept, not copied. */
void cpu_array(const char *name, const void *base, int64_t bytes, enum cpu_content content);
const struct cpu_counts *cpu_counts(void);
void cpu_end(void);

#ifdef __cplusplus
}
#endif

#endif
