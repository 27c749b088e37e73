#include "common/inputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* The extents of one tensor, leading axes filled with 1. */
struct extents {
    int64_t batch, heads, seqlen, head_dim;
};

static enum status extents_of(struct extents *e, const char *option, const char *path,
                              const struct npy *array, struct error *error)
{
    int64_t axis[4] = {1, 1, 1, 1};
    if (array->ndim < 2 || array->ndim > 4)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--%s %s: has %d axes; (batch, heads, seqlen, head_dim) or fewer "
                         "leading axes, at least 2, are allowed",
                         option, path, array->ndim);
    for (int i = 0; i < array->ndim; i++) {
        const int64_t extent = array->shape[i];
        if (extent < 1 || extent > ATTENTION_MOST)
            return error_set(error, STATUS_BAD_ARGUMENT,
                             "--%s %s: axis %d has extent %" PRId64
                             "; from 1 to 1073741824 is allowed",
                             option, path, i, extent);
        axis[4 - array->ndim + i] = extent;
    }
    *e = (struct extents){axis[0], axis[1], axis[2], axis[3]};
    return STATUS_OK;
}

static enum status must_match(const char *what, const char *one, int64_t one_value,
                              const char *other, int64_t other_value, struct error *error)
{
    if (one_value == other_value)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "--%s: %s is %" PRId64 ", but %" PRId64 " in --%s; they must be equal",
                     one, what, one_value, other_value, other);
}

static enum status set_shapes(struct inputs *in, struct options *o, struct error *error)
{
    struct attention *a = &o->simulation.attention;
    struct extents q, k, v;
    if (extents_of(&q, "q", o->q, &in->q, error) || extents_of(&k, "k", o->k, &in->k, error) ||
        extents_of(&v, "v", o->v, &in->v, error) ||
        must_match("the number of axes", "k", in->k.ndim, "q", in->q.ndim, error) ||
        must_match("the number of axes", "v", in->v.ndim, "q", in->q.ndim, error) ||
        must_match("batch", "k", k.batch, "q", q.batch, error) ||
        must_match("batch", "v", v.batch, "q", q.batch, error) ||
        must_match("heads", "v", v.heads, "k", k.heads, error) ||
        must_match("seqlen", "v", v.seqlen, "k", k.seqlen, error) ||
        must_match("head_dim", "k", k.head_dim, "q", q.head_dim, error))
        return error->status;
    if (q.heads % k.heads != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--q: heads is %" PRId64 "; it must be a multiple of the %" PRId64
                         " heads in --k",
                         q.heads, k.heads);
    a->batch = (int)q.batch;
    a->heads_q = (int)q.heads;
    a->heads_kv = (int)k.heads;
    a->seqlen_q = (int)q.seqlen;
    a->seqlen_k = (int)k.seqlen;
    a->head_dim = (int)q.head_dim;
    a->head_dim_v = (int)v.head_dim;
    if (!(o->given & OPTION_BIT(OPTION_SCALE)))
        a->scale = 1.0f / sqrtf((float)q.head_dim);
    return STATUS_OK;
}

/* Reads one of the three; a message begins with its option. */
static enum status read_one(struct npy *array, const char *option, const char *path,
                            struct error *error)
{
    const enum status status = npy_read(array, path, error);
    if (status)
        error_prefix(error, option);
    return status;
}

enum status inputs_read(struct inputs *in, struct options *o, struct error *error)
{
    *in = (struct inputs){0};
    if (read_one(&in->q, "--q ", o->q, error) || read_one(&in->k, "--k ", o->k, error) ||
        read_one(&in->v, "--v ", o->v, error) || set_shapes(in, o, error)) {
        inputs_free(in);
        return error->status;
    }
    return STATUS_OK;
}

void inputs_free(struct inputs *in)
{
    npy_free(&in->q);
    npy_free(&in->k);
    npy_free(&in->v);
}
