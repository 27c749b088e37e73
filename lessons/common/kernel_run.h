/* Any of our CUDA kernels executed on the CPU, or one that is not attention on the GPU, beside
 * its simulated twin and the closed form.
 *
 * Interface:
 *   struct kernel_run k;
 *   kernel_run_make(&k, CPU_FLASH2_FORWARD, &options, &error)      runs kernel and simulator
 *   k.counts->launch[0], k.sectors[], k.result[]                   what was seen
 *   kernel_run_free(&k);
 */
#ifndef FLASHLAB_LESSONS_KERNEL_RUN_H
#define FLASHLAB_LESSONS_KERNEL_RUN_H

#include "common/options.h"
#include "core/traffic.h"
#include "cuda/cpu/run.h"
#include "cuda/observation.h"

/* Sectors of all launches, by direction. */
struct kernel_sectors {
    int64_t predicted[DIRECTION_COUNT], simulated[DIRECTION_COUNT], measured[DIRECTION_COUNT];
};

/* An array that came out, against the simulator's. */
struct kernel_result {
    const char *array;
    double tolerance;  /* times (rms of the array + |x|): of each element x */
    double difference; /* the largest, as a share of that */
};

/* Tolerances are relative to what is usual in the array, so that small results are looked at
 * closely too. Elements that are sums of many terms round more often: their errors grow as the
 * square root. NaN differs from everything. */
double kernel_tolerance(int terms);
struct kernel_result kernel_result_compare(const char *array, const float *simulated,
                                           const float *measured, int64_t count, int terms);

struct kernel_run {
    struct cpu_run run;
    const struct machine *machine;
    uint64_t seed;
    const struct cpu_counts *counts; /* until kernel_run_free(); NULL on the GPU */
    struct observation seen;         /* the GPU, its counters and time; empty on the CPU */
    struct kernel_sectors sectors;
    int results;
    struct kernel_result result[2];
    bool equal; /* sectors are, and results within the tolerance */
};

/* N of attention, unless it is given: on a CPU each access of each thread takes some 20 ns. */
enum { KERNEL_RUN_SEQLEN = 256 };

/* The options that any kernel's shape may have. */
#define KERNEL_SHAPE_OPTIONS                                                                   \
    ((RUN_OPTIONS & ~OPTION_BIT(OPTION_ALGORITHM)) | OPTION_BIT(OPTION_ROWS) |                 \
     OPTION_BIT(OPTION_COLS) | OPTION_BIT(OPTION_DEPTH) | OPTION_BIT(OPTION_TILE))

/* Inputs are random, of the options' seed; limits are those of their machine. A shape option
 * that the kernel does not have is refused. */
enum status kernel_run_make(struct kernel_run *k, enum cpu_kernel kernel,
                            const struct options *o, struct error *error);

/* Runs the kernel at the shape (kernel, rows, cols, depth and tile of a run that is not open),
 * on the GPU with --gpu. Without results the twin only counts. Where the GPU's counters could
 * not be read seen.launches is 0, and nothing measured. */
enum status kernel_run_at(struct kernel_run *k, const struct cpu_run *shape, bool results,
                          const struct options *o, struct error *error);

/* The shape options that such a kernel has: a set of OPTION_BIT. */
uint64_t kernel_shape_options(enum cpu_kernel kernel);

/* "batch 1, heads 1/1, ..." or "rows 256, cols 1024": in a buffer that is returned. */
enum { KERNEL_SHAPE_LENGTH = 160 };
char *kernel_run_shape(char buffer[KERNEL_SHAPE_LENGTH], const struct cpu_run *run);

void kernel_run_free(struct kernel_run *k);

#endif
