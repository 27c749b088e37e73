#include "common/softmax_rows.h"

#include <math.h>
#include <stdlib.h>

#include "common/online_softmax.h"
#include "common/random_inputs.h"
#include "kernels/basic_kernels.h"
#include "models/io_basic.h"

typedef enum status softmax_kernel(struct gpu *gpu, struct hbm_tensor *Y,
                                   const struct hbm_tensor *X, struct error *error);

static const struct {
    const char *name;
    int loads;
    softmax_kernel *kernel;
    struct account (*predict)(int rows, int cols);
} ways[SOFTMAX_WAYS] = {
    [SOFTMAX_NAIVE] = {"naive", 2, softmax_naive, io_softmax_naive},
    [SOFTMAX_SAFE] = {"safe", 3, softmax_safe, io_softmax_safe},
    [SOFTMAX_ONLINE] = {"online", 2, softmax_online, io_softmax_online},
};

const char *softmax_way_name(enum softmax_way way)
{
    return ways[way].name;
}

int softmax_loads(enum softmax_way way)
{
    return ways[way].loads;
}

enum status softmax_count(struct account *predicted, struct account *simulated,
                          enum softmax_way way, int rows, int cols,
                          const struct machine *machine, struct error *error)
{
    struct gpu gpu;
    struct hbm_tensor X, Y; /* without data: nothing to free */
    gpu_init(&gpu, machine, GPU_COUNTS);
    if (hbm_alloc(&X, &gpu, "X", DTYPE_F32, 1, rows, cols, error) ||
        hbm_alloc(&Y, &gpu, "Y", DTYPE_F32, 1, rows, cols, error) ||
        ways[way].kernel(&gpu, &Y, &X, error))
        return error->status;
    *predicted = ways[way].predict(rows, cols);
    *simulated = gpu_account(&gpu);
    return STATUS_OK;
}

enum status softmax_rows(float *y, const float *x, enum softmax_way way, int rows, int cols,
                         const struct machine *machine, struct error *error)
{
    struct gpu gpu;
    struct hbm_tensor X = {0}, Y = {0};
    gpu_init(&gpu, machine, GPU_DATA);
    const bool failed = hbm_alloc_input(&X, &gpu, "X", DTYPE_F32, 1, rows, cols, x, error) ||
                        hbm_alloc(&Y, &gpu, "Y", DTYPE_F32, 1, rows, cols, error) ||
                        ways[way].kernel(&gpu, &Y, &X, error);
    if (!failed)
        hbm_download(y, &Y);
    hbm_free(&X);
    hbm_free(&Y);
    return failed ? error->status : STATUS_OK;
}

static double row_error(const float *y, const float *x, int cols)
{
    double worst = 0, max = -INFINITY, sum = 0;
    for (int k = 0; k < cols; k++)
        max = fmax(max, (double)x[k]);
    for (int k = 0; k < cols; k++)
        sum += max == -INFINITY ? 0.0 : exp((double)x[k] - max);
    for (int k = 0; k < cols; k++) {
        const double want = sum > 0 ? exp((double)x[k] - max) / sum : 0.0;
        const double error = fabs((double)y[k] - want) / fmax(want, 0x1p-100);
        worst = error <= worst ? worst : isnan(error) ? INFINITY : error;
    }
    return worst;
}

double softmax_error(const float *y, const float *x, int rows, int cols)
{
    double worst = 0;
    for (int row = 0; row < rows; row++)
        worst = fmax(worst, row_error(y + (size_t)row * (size_t)cols,
                                      x + (size_t)row * (size_t)cols, cols));
    return worst;
}

enum status softmax_random_error(double *worst, int64_t *nan, enum softmax_way way, int rows,
                                 int cols, float scale, const struct machine *machine,
                                 struct error *error)
{
    const size_t count = (size_t)rows * (size_t)cols;
    float *x = malloc(count * sizeof *x), *y = calloc(count, sizeof *y);
    bool failed = !x || !y;
    *nan = 0;
    if (failed) {
        error_format(error, STATUS_OUT_OF_MEMORY, "no host memory for %d rows of %d", rows,
                     cols);
    } else {
        random_fill(x, count, 1, 1);
        for (size_t n = 0; n < count; n++)
            x[n] *= scale;
        failed = softmax_rows(y, x, way, rows, cols, machine, error);
    }
    if (!failed) {
        *worst = softmax_error(y, x, rows, cols);
        for (size_t n = 0; n < count; n++)
            *nan += isnan(y[n]) != 0;
    }
    free(x);
    free(y);
    return failed ? error->status : STATUS_OK;
}

static double state_error(struct softmax_state got, struct softmax_state want)
{
    const double error = fabs((double)got.l - (double)want.l) / (double)want.l;
    return got.m == want.m && !isnan(error) ? error : INFINITY;
}

/* part[] is used up by the tree. */
static void merge_all(double worst[MERGE_ORDERS], struct softmax_state *part, int parts,
                      struct softmax_state want)
{
    struct softmax_state forward = softmax_state_empty(), backward = forward;
    for (int n = 0; n < parts; n++) {
        forward = softmax_state_merge(forward, part[n]);
        backward = softmax_state_merge(backward, part[parts - 1 - n]);
    }
    for (int width = 1; width < parts; width *= 2)
        for (int n = 0; n + width < parts; n += 2 * width)
            part[n] = softmax_state_merge(part[n], part[n + width]);
    worst[0] = state_error(forward, want);
    worst[1] = state_error(backward, want);
    worst[2] = state_error(part[0], want);
}

enum status softmax_merge_errors(double worst[MERGE_ORDERS], int count, int parts,
                                 struct error *error)
{
    CHECK(parts >= 1 && parts <= count, "%d parts of %d", parts, count);
    float *x = malloc((size_t)count * sizeof *x);
    struct softmax_state *part = malloc((size_t)parts * sizeof *part);
    if (!x || !part) {
        free(x);
        free(part);
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for a row of %d", count);
    }
    random_fill(x, (size_t)count, 1, 1);
    for (int k = 0; k < count; k++)
        x[k] *= 10.0f; /* so that the parts' maxima differ much */
    for (int n = 0; n < parts; n++) {
        const int64_t first = (int64_t)n * count / parts,
                      end = (int64_t)(n + 1) * count / parts;
        part[n] = softmax_state_empty();
        for (int64_t k = first; k < end; k++)
            softmax_state_add(&part[n], x[k]);
    }
    merge_all(worst, part, parts, softmax_state_defined(x, count));
    free(x);
    free(part);
    return STATUS_OK;
}
