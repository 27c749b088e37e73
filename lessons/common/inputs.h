/* Q, K and V from .npy files: read, checked against each other, turned into a problem.
 *
 * Interface:
 *   struct inputs in;
 *   inputs_read(&in, &options, &error)  reads o->q, o->k, o->v and sets the shapes of
 *                                       o->simulation.attention from them
 *   inputs_free(&in)
 */
#ifndef FLASHLAB_LESSONS_INPUTS_H
#define FLASHLAB_LESSONS_INPUTS_H

#include "common/options.h"
#include "core/npy.h"

struct inputs {
    struct npy q, k, v; /* owned */
};

/* Axes are (batch, heads, seqlen, head_dim), or fewer leading ones, the same number in all
 * three. On failure nothing is left to free. */
enum status inputs_read(struct inputs *in, struct options *o, struct error *error);

void inputs_free(struct inputs *in);

#endif
