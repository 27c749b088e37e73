#include "common/vectors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/npy.h"

static enum mask mask_of(const char *name)
{
    static const char *const names[MASK_COUNT] = {
        [MASK_NONE] = "none",
        [MASK_CAUSAL] = "causal_bottom_right",
        [MASK_CAUSAL_TOP_LEFT] = "causal_top_left",
    };
    for (enum mask mask = MASK_NONE; mask < MASK_COUNT; mask++)
        if (strcmp(names[mask], name) == 0)
            return mask;
    fail_msg("%s: no mask of that name", name);
    return MASK_NONE;
}

static int small(const struct csv *manifest, int row, const char *column)
{
    const int64_t value = csv_int(manifest, row, column);
    assert_true(value >= 1 && value <= 1024);
    return (int)value;
}

static struct attention attention_of(const struct csv *manifest, int row)
{
    return (struct attention){
        .batch = small(manifest, row, "batch"),
        .heads_q = small(manifest, row, "heads_q"),
        .heads_kv = small(manifest, row, "heads_kv"),
        .seqlen_q = small(manifest, row, "seqlen_q"),
        .seqlen_k = small(manifest, row, "seqlen_k"),
        .head_dim = small(manifest, row, "head_dim"),
        .head_dim_v = small(manifest, row, "head_dim_v"),
        .scale = (float)csv_double(manifest, row, "scale"),
        .mask = mask_of(csv_text(manifest, row, "mask")),
        .dtype = DTYPE_F32,
        .block_q = 16,
        .block_k = 16,
    };
}

/* An array of the case, which must have that shape: (batch, heads, rows), and columns unless 0.
 * The caller frees it. */
static float *read_array(const char *name, const char *array, int batch, int heads, int rows,
                         int columns)
{
    const int64_t shape[] = {batch, heads, rows, columns};
    char path[512];
    snprintf(path, sizeof path, "%s/attention/%s/%s.npy", FLASHLAB_TEST_DATA, name, array);
    struct npy npy;
    struct error error;
    if (npy_read(&npy, path, &error))
        fail_msg("%s", error.text);
    assert_int_equal(npy.ndim, columns ? 4 : 3);
    for (int i = 0; i < npy.ndim; i++)
        if (npy.shape[i] != shape[i])
            fail_msg("%s: extent %d is %lld, the manifest says %lld", path, i,
                     (long long)npy.shape[i], (long long)shape[i]);
    return npy.data;
}

static double *widen(float *x, size_t count)
{
    double *wide = allocate(count, sizeof *wide);
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)x[i];
    free(x);
    return wide;
}

void stored_read(struct stored *stored, const struct csv *manifest, int row)
{
    const struct attention a = attention_of(manifest, row);
    const char *name = csv_text(manifest, row, "name");
    *stored = (struct stored){
        .name = name,
        .scale = csv_double(manifest, row, "scale"),
        .problem.a = a,
        .problem.q = read_array(name, "q", a.batch, a.heads_q, a.seqlen_q, a.head_dim),
        .problem.k = read_array(name, "k", a.batch, a.heads_kv, a.seqlen_k, a.head_dim),
        .problem.v = read_array(name, "v", a.batch, a.heads_kv, a.seqlen_k, a.head_dim_v),
    };
    float *o = read_array(name, "o", a.batch, a.heads_q, a.seqlen_q, a.head_dim_v);
    float *lse = read_array(name, "lse", a.batch, a.heads_q, a.seqlen_q, 0);
    stored->truth.o = widen(o, count_o(&a));
    stored->truth.lse = widen(lse, count_lse(&a));
}

void stored_free(struct stored *stored)
{
    problem_free(&stored->problem);
    truth_free(&stored->truth);
}

static float *copy_of(const float *x, size_t count)
{
    float *copy = allocate(count, sizeof *copy);
    memcpy(copy, x, count * sizeof *copy);
    return copy;
}

struct problem stored_problem(const struct stored *stored, enum dtype dtype, bool *exact)
{
    const struct problem *from = &stored->problem;
    struct problem p = {
        .a = from->a,
        .q = copy_of(from->q, count_q(&from->a)),
        .k = copy_of(from->k, count_k(&from->a)),
        .v = copy_of(from->v, count_v(&from->a)),
    };
    p.a.dtype = dtype;
    *exact = problem_round(&p);
    return p;
}
