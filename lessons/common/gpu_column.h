/* The third column of lessons: what our CUDA kernels did on a GPU. Live with --gpu, else from
 * lessons/recordings.
 *
 * Interface:
 *   struct gpu_column g;
 *   gpu_column_open(&g, options, algorithms, &error)   before the lesson prints anything
 *   gpu_column_claim_traffic(&lesson, &g, &error)      predicted, simulated, measured sectors
 *   gpu_column_claim_steps(&lesson, &g)                m, l and O step by step, and the results
 *   gpu_column_close(&g);
 */
#ifndef FLASHLAB_LESSONS_GPU_COLUMN_H
#define FLASHLAB_LESSONS_GPU_COLUMN_H

#include "common/comparison.h"
#include "common/lesson.h"

struct gpu_column {
    bool live;
    unsigned algorithms;                         /* a set of ALGORITHM_BIT */
    char date[16];                               /* of the recordings */
    struct observation traffic[ALGORITHM_COUNT]; /* at the lesson's shape; empty: not known */
    struct comparison steps[ALGORITHM_COUNT];    /* at a small shape, see the .c file */
};

#define ALGORITHM_BIT(algorithm) (1u << (algorithm))

/* Runs the algorithms on the GPU, or reads their recordings. A recording of another shape than
 * the lesson's leaves traffic[] empty: the lesson then says so. */
enum status gpu_column_open(struct gpu_column *g, const struct options *o, unsigned algorithms,
                            struct error *error);

enum status gpu_column_claim_traffic(struct lesson *l, const struct gpu_column *g,
                                     struct error *error);

void gpu_column_claim_steps(struct lesson *l, const struct gpu_column *g);

void gpu_column_close(struct gpu_column *g);

#endif
