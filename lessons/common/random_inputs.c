#include "common/random_inputs.h"

#include <stdlib.h>

/* erand48 is specified to the bit by POSIX. Each seed and tensor has a stream of its own. */
void random_fill(float *values, size_t count, uint64_t seed, unsigned tensor)
{
    const uint64_t start = 4 * seed + tensor;
    unsigned short state[3] = {(unsigned short)start, (unsigned short)(start >> 16),
                               (unsigned short)(start >> 32)};
    for (int i = 0; i < 16; i++) /* neighbouring seeds part */
        erand48(state);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(4.0 * erand48(state) - 2.0);
}

/* NULL: no memory. */
static float *random_tensor(uint64_t seed, unsigned tensor, size_t count)
{
    float *values = malloc(count * sizeof *values);
    if (values)
        random_fill(values, count, seed, tensor);
    return values;
}

enum status random_inputs_make(struct random_inputs *x, const struct attention *a,
                               uint64_t seed, struct error *error)
{
    const size_t q = (size_t)attention_planes_q(a) * (size_t)a->seqlen_q;
    const size_t kv = (size_t)attention_planes_kv(a) * (size_t)a->seqlen_k;
    *x = (struct random_inputs){random_tensor(seed, 1, q * (size_t)a->head_dim),
                                random_tensor(seed, 2, kv * (size_t)a->head_dim),
                                random_tensor(seed, 3, kv * (size_t)a->head_dim_v)};
    if (x->q && x->k && x->v)
        return STATUS_OK;
    random_inputs_free(x);
    return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for Q, K and V");
}

void random_inputs_free(struct random_inputs *x)
{
    free(x->q);
    free(x->k);
    free(x->v);
    *x = (struct random_inputs){0};
}
