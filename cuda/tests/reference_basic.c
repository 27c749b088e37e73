#include "reference_basic.h"

#include <math.h>
#include <stdlib.h>

#include "common/problem.h"

static void add(struct basic_reference *r, const struct run *run)
{
    const float *a = run->array[0].host, *b = run->array[1].host;
    for (size_t i = 0; i < run->array[2].count; i++) {
        r->truth[i] = (double)a[i] + (double)b[i];
        r->plain[i] = a[i] + b[i];
    }
}

static void multiply(struct basic_reference *r, const struct run *run)
{
    const float *A = run->array[0].host, *B = run->array[1].host;
    const size_t cols = (size_t)run->cols, depth = (size_t)run->depth;
    for (size_t i = 0; i < (size_t)run->rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            double truth = 0;
            float plain = 0;
            for (size_t k = 0; k < depth; k++) {
                truth += (double)A[i * depth + k] * (double)B[k * cols + j];
                plain += A[i * depth + k] * B[k * cols + j];
            }
            r->truth[i * cols + j] = truth;
            r->plain[i * cols + j] = plain;
        }
    }
}

static void softmax(struct basic_reference *r, const struct run *run)
{
    const size_t cols = (size_t)run->cols;
    for (size_t i = 0; i < (size_t)run->rows; i++) {
        const float *x = run->array[0].host + i * cols;
        double *truth = r->truth + i * cols, sum = 0;
        float *plain = r->plain + i * cols, max = -INFINITY, plain_sum = 0;
        for (size_t j = 0; j < cols; j++)
            max = fmaxf(max, x[j]);
        for (size_t j = 0; j < cols; j++) {
            sum += truth[j] = exp((double)x[j] - (double)max);
            plain_sum += plain[j] = expf(x[j] - max);
        }
        for (size_t j = 0; j < cols; j++) {
            truth[j] /= sum;
            plain[j] /= plain_sum;
        }
    }
}

void reference_basic(struct basic_reference *r, const struct run *run)
{
    const size_t count = run->array[run->arrays - 1].count;
    r->truth = allocate(count, sizeof *r->truth);
    r->plain = allocate(count, sizeof *r->plain);
    if (run->kernel == KERNEL_VECTOR_ADD)
        add(r, run);
    else if (kernel_is_matmul(run->kernel))
        multiply(r, run);
    else
        softmax(r, run);
}

void basic_reference_free(struct basic_reference *r)
{
    free(r->truth);
    free(r->plain);
    *r = (struct basic_reference){0};
}
