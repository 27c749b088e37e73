/* Q, K and V of a shape and a seed: the same on every machine. */
#ifndef FLASHLAB_LESSONS_RANDOM_INPUTS_H
#define FLASHLAB_LESSONS_RANDOM_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "core/attention.h"

struct random_inputs {
    float *q, *k, *v; /* as attention_simulate() takes them, owned */
};

/* Elements uniform over [-2, 2]: scores of standard deviation 4/3 at any head dimension. Seeds
 * below 2^46 give different inputs. */
enum status random_inputs_make(struct random_inputs *x, const struct attention *a,
                               uint64_t seed, struct error *error);

/* One tensor of that seed: 1, 2 and 3 are Q, K and V. */
void random_fill(float *values, size_t count, uint64_t seed, unsigned tensor);

void random_inputs_free(struct random_inputs *x);

#endif
