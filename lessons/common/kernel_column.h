/* The third column of lessons: what our CUDA kernels did. On this machine's GPU with --gpu; on
 * its CPU, where their source is executed and observed, with --cpu; else as lessons/recordings
 * say of a GPU, and beside them a small problem on the CPU.
 *
 * Interface:
 *   struct kernel_column k;
 *   kernel_column_open(&k, options, algorithms, &error)   before the lesson prints anything
 *   kernel_column_claim_traffic(&lesson, &k, &error)      predicted, simulated, measured
 * sectors kernel_column_claim_steps(&lesson, &k)                m, l and O step by step, and
 * results kernel_column_close(&k);
 */
#ifndef FLASHLAB_LESSONS_KERNEL_COLUMN_H
#define FLASHLAB_LESSONS_KERNEL_COLUMN_H

#include "common/comparison.h"
#include "common/lesson.h"

struct kernel_column {
    bool live;                                   /* --gpu or --cpu: nothing is recorded */
    unsigned algorithms;                         /* a set of ALGORITHM_BIT */
    char date[16];                               /* of the recordings */
    struct observation traffic[ALGORITHM_COUNT]; /* at the lesson's shape; empty: not known */
    struct comparison steps[ALGORITHM_COUNT];    /* at a small shape, see the .c file */
    struct comparison on_cpu[ALGORITHM_COUNT];   /* at that shape, beside recordings */
};

#define ALGORITHM_BIT(algorithm) (1u << (algorithm))

/* Runs the algorithms' kernels, or reads their recordings. A recording of another shape than
 * the lesson's leaves traffic[] empty: the lesson then says so. */
enum status kernel_column_open(struct kernel_column *k, const struct options *o,
                               unsigned algorithms, struct error *error);

enum status kernel_column_claim_traffic(struct lesson *l, const struct kernel_column *k,
                                        struct error *error);

void kernel_column_claim_steps(struct lesson *l, const struct kernel_column *k);

void kernel_column_close(struct kernel_column *k);

#endif
