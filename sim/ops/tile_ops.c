#include "ops/tile_ops.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "core/read_ahead.h"
#include "ops/exp.h"

#ifdef __clang__ /* it does not vectorise a maximum without -ffast-math, and says so */
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

/* OpenMP's own max may start at the lowest finite number, above a row of -inf. */
#pragma omp declare reduction(largest:float                                                    \
                              : omp_out = omp_in > omp_out ? omp_in : omp_out)                 \
    initializer(omp_priv = -INFINITY)

/* Every core runs a thread block of its own, so OpenBLAS must not start threads inside one. */
__attribute__((constructor)) static void one_blas_thread_per_call(void)
{
    openblas_set_num_threads(1);
}

/* Checks that rows x cols lies inside t and says whether there is data to work on. */
static bool has_data(const struct tile *t, int rows, int cols)
{
    CHECK(rows >= 0 && rows <= t->rows && cols >= 0 && cols <= t->cols,
          "%d x %d of tile %s of %d x %d", rows, cols, t->name, t->rows, t->cols);
    return t->data != NULL;
}

static void same_block(const struct tile *a, const struct tile *b)
{
    CHECK(a->block == b->block, "tiles %s and %s belong to different thread blocks", a->name,
          b->name);
}

/* Checks an operand that holds one number a row of t. */
static void check_column(const struct tile *column, const struct tile *t, int rows)
{
    same_block(column, t);
    CHECK(column->cols == 1 && rows <= column->rows, "tile %s of %d x %d beside %d rows of %s",
          column->name, column->rows, column->cols, rows, t->name);
}

static const float *row_of(const struct tile *t, int row)
{
    return t->data + (size_t)row * (size_t)t->cols;
}

static float *writable_row(struct tile *t, int row)
{
    return tile_writable(t) + (size_t)row * (size_t)t->cols;
}

void tile_fill(struct tile *t, float value)
{
    if (!t->data)
        return;
    float *data = tile_writable(t);
    const size_t count = (size_t)t->rows * (size_t)t->cols;
    for (size_t i = 0; i < count; i++)
        data[i] = value;
}

void tile_copy(struct tile *dst, const struct tile *src)
{
    same_block(dst, src);
    CHECK(dst->rows == src->rows && dst->cols == src->cols, "copy of tile %s of %d x %d to %s",
          src->name, src->rows, src->cols, dst->name);
    if (dst->data)
        memcpy(tile_writable(dst), src->data,
               (size_t)dst->rows * (size_t)dst->cols * sizeof *dst->data);
}

void tile_round(struct tile *t, enum dtype dtype, int rows, int cols)
{
    if (!has_data(t, rows, cols) || dtype == DTYPE_F32)
        return;
    for (int r = 0; r < rows; r++)
        dtype_round(writable_row(t, r), dtype, row_of(t, r), (size_t)cols);
}

void tile_scores(struct tile *S, const struct tile *Q, const struct tile *K, int rows, int cols,
                 float scale)
{
    const int d = Q->cols;
    same_block(S, Q);
    same_block(S, K);
    CHECK(K->cols == d && rows <= Q->rows && cols <= K->rows,
          "product of tiles %s of %d x %d and %s of %d x %d", Q->name, Q->rows, Q->cols,
          K->name, K->rows, K->cols);
    count_flops(S->block, (int64_t)2 * rows * cols * d, (int64_t)rows * cols, 0);
    if (!has_data(S, rows, cols))
        return;
    /* S is cleared here and added to, as that is faster than BLAS's own way to overwrite it. */
    for (int r = 0; r < rows; r++)
        memset(writable_row(S, r), 0, (size_t)cols * sizeof(float));
    /* BLAS does not look at the operands if the factor is 0, and would hide their NaNs. */
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, cols, d,
                scale == 0.0f ? 1.0f : scale, Q->data, d, K->data, d, 1.0f, tile_writable(S),
                S->cols);
    for (int r = 0; scale == 0.0f && r < rows; r++)
        for (int c = 0; c < cols; c++)
            writable_row(S, r)[c] *= scale;
}

/* How many of the keys col0 .. col0 + cols - 1 the query may see: the first so many. */
static int visible_of(const struct attention *a, int query, int col0, int cols)
{
    const int visible = attention_visible_keys(a, query) - col0;
    return visible < 0 ? 0 : visible < cols ? visible : cols;
}

static bool all_finite(const struct tile *t, int first_row, int end_row)
{
    bool finite = true;
    for (int r = first_row; r < end_row; r++)
        for (int c = 0; c < t->cols; c++)
            finite &= isfinite(row_of(t, r)[c]) != 0;
    return finite;
}

void tile_add_product(struct tile *O, const struct tile *P, const struct tile *V, int rows,
                      int cols)
{
    const int dv = O->cols;
    same_block(O, P);
    same_block(O, V);
    CHECK(V->cols == dv && rows <= P->rows && cols <= P->cols && cols <= V->rows,
          "product of tiles %s of %d x %d and %s of %d x %d", P->name, P->rows, P->cols,
          V->name, V->rows, V->cols);
    count_flops(O->block, (int64_t)2 * rows * cols * dv, 0, 0);
    if (has_data(O, rows, dv))
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, dv, cols, 1.0f, P->data,
                    P->cols, V->data, dv, 1.0f, tile_writable(O), dv);
}

void tile_add_masked_product(struct tile *O, const struct tile *P, const struct tile *V,
                             const struct attention *a, int row0, int col0, int rows, int cols)
{
    /* The first row sees the fewest keys. Where P = 0, finite rows of V add nothing. */
    if (!V->data || all_finite(V, visible_of(a, row0, col0, cols), cols)) {
        tile_add_product(O, P, V, rows, cols);
        return;
    }
    count_flops(O->block, (int64_t)2 * rows * cols * O->cols, 0, 0);
    for (int r = 0; r < rows; r++) {
        const int visible = visible_of(a, row0 + r, col0, cols);
        if (visible > 0)
            cblas_sgemv(CblasRowMajor, CblasTrans, visible, O->cols, 1.0f, V->data, V->cols,
                        row_of(P, r), 1, 1.0f, writable_row(O, r), 1);
    }
}

void tile_mask(struct tile *S, const struct attention *a, int row0, int col0, int rows,
               int cols)
{
    if (!has_data(S, rows, cols) || a->mask == MASK_NONE)
        return;
    for (int r = 0; r < rows; r++)
        for (int c = visible_of(a, row0 + r, col0, cols); c < cols; c++)
            writable_row(S, r)[c] = -INFINITY;
}

void tile_row_max(struct tile *m_new, const struct tile *m, const struct tile *S, int rows,
                  int cols)
{
    check_column(m_new, S, rows);
    check_column(m, S, rows);
    count_flops(S->block, 0, (int64_t)rows * cols, 0);
    if (!has_data(S, rows, cols))
        return;
    float *row_max = tile_writable(m_new);
    for (int r = 0; r < rows; r++) {
        const float *s = row_of(S, r);
        float max = m->data[r];
#pragma omp simd reduction(largest : max)
        for (int c = 0; c < cols; c++) /* NaN is passed over; exp brings it back */
            max = s[c] > max ? s[c] : max;
        row_max[r] = max;
    }
}

/* What is subtracted from scores relative to the row maximum m. Where m = -inf every score is
 * -inf, or NaN: subtracting 0 keeps both what they are. */
static float shift_of(float m)
{
    return m == -INFINITY ? 0.0f : m;
}

static void exp_row(float *s, int count, float shift)
{
#pragma omp simd
    for (int k = 0; k < count; k++)
        s[k] = exp_f32(s[k] - shift);
}

void tile_exp(struct tile *S, const struct tile *m, int rows, int cols)
{
    check_column(m, S, rows);
    count_flops(S->block, 0, (int64_t)rows * cols, (int64_t)rows * cols);
    if (!has_data(S, rows, cols))
        return;
    for (int r = 0; r < rows; r++)
        exp_row(writable_row(S, r), cols, shift_of(m->data[r]));
}

/* Rows r .. r + 3 of S <- exp(S - m), and their sums. Four at a time keep a core busier: the
 * operations of one exp depend on each other, those of four rows do not. */
static void exp_sum_four_rows(float sum[4], struct tile *S, const struct tile *m, int r,
                              int cols)
{
    float *s0 = writable_row(S, r), *s1 = writable_row(S, r + 1), *s2 = writable_row(S, r + 2),
          *s3 = writable_row(S, r + 3);
    const float m0 = shift_of(m->data[r]), m1 = shift_of(m->data[r + 1]),
                m2 = shift_of(m->data[r + 2]), m3 = shift_of(m->data[r + 3]);
    float sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
#pragma omp simd reduction(+ : sum0, sum1, sum2, sum3)
    for (int k = 0; k < cols; k++) {
        sum0 += s0[k] = exp_f32(s0[k] - m0);
        sum1 += s1[k] = exp_f32(s1[k] - m1);
        sum2 += s2[k] = exp_f32(s2[k] - m2);
        sum3 += s3[k] = exp_f32(s3[k] - m3);
    }
    sum[0] = sum0;
    sum[1] = sum1;
    sum[2] = sum2;
    sum[3] = sum3;
}

/* The same for one row. */
static float exp_sum_row(struct tile *S, const struct tile *m, int r, int cols)
{
    float *s = writable_row(S, r);
    float sum = 0.0f;
    exp_row(s, cols, shift_of(m->data[r]));
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < cols; k++)
        sum += s[k];
    return sum;
}

void tile_exp_sum(struct tile *S, const struct tile *m, struct tile *l, const struct tile *c,
                  int rows, int cols)
{
    check_column(m, S, rows);
    check_column(l, S, rows);
    check_column(c, S, rows);
    count_flops(S->block, 0, 2 * (int64_t)rows * cols + rows, (int64_t)rows * cols);
    if (!has_data(S, rows, cols))
        return;
    float *sums = tile_writable(l);
    for (int r = 0; r < rows;) {
        float sum[4];
        if (r / 4 < READ_AHEAD_CALLS)
            read_ahead(S->block, r / 4);
        const int together = r + 4 <= rows ? 4 : 1;
        if (together == 4)
            exp_sum_four_rows(sum, S, m, r, cols);
        else
            sum[0] = exp_sum_row(S, m, r, cols);
        for (int k = 0; k < together; k++, r++)
            sums[r] = c->data[r] * sums[r] + sum[k];
    }
}

void tile_correction(struct tile *c, const struct tile *m, const struct tile *m_new, int rows)
{
    check_column(c, c, rows);
    check_column(m, c, rows);
    check_column(m_new, c, rows);
    count_flops(c->block, 0, rows, rows);
    if (!has_data(c, rows, 1))
        return;
    float *factor = tile_writable(c);
    for (int r = 0; r < rows; r++)
        factor[r] = exp_f32(m->data[r] - shift_of(m_new->data[r]));
}

void tile_scale_rows(struct tile *O, const struct tile *c, int rows, int cols)
{
    check_column(c, O, rows);
    count_flops(O->block, 0, (int64_t)rows * cols, 0);
    if (!has_data(O, rows, cols))
        return;
    for (int r = 0; r < rows; r++) {
        float *o = writable_row(O, r);
        const float factor = c->data[r];
        if (factor == 1.0f)
            continue; /* the maximum did not move: nothing changes */
#pragma omp simd
        for (int k = 0; k < cols; k++)
            o[k] *= factor;
    }
}

void tile_add(struct tile *O, const struct tile *X, int rows, int cols)
{
    same_block(O, X);
    CHECK(rows <= X->rows && cols <= X->cols, "tile %s of %d x %d added to %d x %d of %s",
          X->name, X->rows, X->cols, rows, cols, O->name);
    count_flops(O->block, 0, (int64_t)rows * cols, 0);
    if (!has_data(O, rows, cols))
        return;
    for (int r = 0; r < rows; r++) {
        float *o = writable_row(O, r);
        const float *x = row_of(X, r);
#pragma omp simd
        for (int k = 0; k < cols; k++)
            o[k] += x[k];
    }
}

void tile_divide_rows(struct tile *O, const struct tile *l, int rows, int cols)
{
    check_column(l, O, rows);
    count_flops(O->block, 0, (int64_t)rows * cols, 0);
    if (!has_data(O, rows, cols))
        return;
    for (int r = 0; r < rows; r++) {
        float *o = writable_row(O, r);
        const float sum = l->data[r];
        for (int k = 0; k < cols; k++)
            o[k] = sum == 0.0f ? 0.0f : o[k] / sum;
    }
}

void tile_log_sum_exp(struct tile *L, const struct tile *m, const struct tile *l, int rows)
{
    check_column(L, L, rows);
    check_column(m, L, rows);
    check_column(l, L, rows);
    count_flops(L->block, 0, 2 * (int64_t)rows, 0);
    if (!has_data(L, rows, 1))
        return;
    float *lse = tile_writable(L);
    for (int r = 0; r < rows; r++)
        lse[r] = l->data[r] == 0.0f ? -INFINITY : m->data[r] + logf(l->data[r]);
}
