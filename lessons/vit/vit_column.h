/* The third column of lesson 04: our CUDA kernels on its shape, 12 heads of 196 x 64, which is
 * no multiple of a tile. On this machine's GPU with --gpu; on its CPU, executed and observed,
 * with
 * --cpu; else as lessons/recordings/vit_*.json say of a GPU, and beside them one head on the
 * CPU. Q, K and V are random, of a seed: counts do not depend on them.
 *
 * Interface:
 *   struct vit_column c;
 *   vit_column_open(&c, options, &error)      before the lesson prints anything
 *   vit_column_claim(&lesson, &c)
 *   vit_column_close(&c);
 */
#ifndef FLASHLAB_LESSONS_VIT_VIT_COLUMN_H
#define FLASHLAB_LESSONS_VIT_VIT_COLUMN_H

#include "common/comparison.h"
#include "common/kernel_run.h"
#include "common/lesson.h"

struct vit_column {
    bool live;     /* --gpu or --cpu: nothing is recorded */
    char date[16]; /* of the recordings */
    struct comparison all_heads[ALGORITHM_COUNT];
    struct comparison one_head[ALGORITHM_COUNT]; /* on the CPU, beside recordings */
    struct kernel_sectors projection; /* of the corner of it that a CPU can wait for */
    struct kernel_result product;
};

enum status vit_column_open(struct vit_column *c, const struct options *o, struct error *error);

void vit_column_claim(struct lesson *l, const struct vit_column *c);

void vit_column_close(struct vit_column *c);

#endif
