/* The two sweeps behind the figures: traffic against N, and against the block size.
 *
 * sweeps_write() makes one CSV with a column "sweep" ("seqlen" or "block"), which plots/
 * traffic_vs_seqlen.gp and plots/traffic_vs_block.gp read. Bytes are those of Q, K, V, O, S and
 * P (see counting.h), counted by the simulator.
 */
#ifndef FLASHLAB_LESSONS_SWEEPS_H
#define FLASHLAB_LESSONS_SWEEPS_H

#include <stdio.h>

#include "common/options.h"

/* FlashAttention, Figure 2 (middle): forward, batch 64, heads 16, N 1024, d 64, fp16 on an A100
 * with 40 GB; HBM traffic in GB (1e9 bytes) by Bc, as printed in arXiv 2205.14135. */
struct figure2_point {
    int block_k;
    const char *printed; /* GB */
};
enum { FIGURE2_POINTS = 4 };
extern const struct figure2_point figure2_points[FIGURE2_POINTS];

/* The simulation of one of its points. */
struct simulation sweeps_figure2(int block_k);

/* A figure_data function: both sweeps, the first around the lesson's problem. */
enum status sweeps_write(FILE *csv, const struct options *o, struct error *error);

#endif
