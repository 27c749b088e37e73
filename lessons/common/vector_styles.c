#include "common/vector_styles.h"

#include <stdlib.h>

#include "common/random_inputs.h"
#include "kernels/basic_kernels.h"

typedef enum status add_function(struct gpu *gpu, struct hbm_tensor *c,
                                 const struct hbm_tensor *a, const struct hbm_tensor *b,
                                 struct error *error);

static const struct {
    const char *name;
    add_function *add;
} styles[VECTOR_STYLES] = {
    [STYLE_THREAD] = {"a thread's view", vector_add},
    [STYLE_BLOCK] = {"a block's view", vector_add_tiles},
};

const char *vector_style_name(enum vector_style style)
{
    return styles[style].name;
}

enum status vector_style_count(struct account *account, enum vector_style style, int count,
                               const struct machine *machine, struct error *error)
{
    static const char *const names[] = {"a", "b", "c"};
    struct gpu gpu;
    struct hbm_tensor t[3];
    gpu_init(&gpu, machine, GPU_COUNTS);
    for (int n = 0; n < 3; n++) /* without data: nothing to free */
        if (hbm_alloc(&t[n], &gpu, names[n], DTYPE_F32, 1, 1, count, error))
            return error->status;
    if (styles[style].add(&gpu, &t[2], &t[0], &t[1], error))
        return error->status;
    *account = gpu_account(&gpu);
    return STATUS_OK;
}

static enum status add(float *sum, enum vector_style style, const float *const x[2], int count,
                       const struct machine *machine, struct error *error)
{
    struct gpu gpu;
    struct hbm_tensor a = {0}, b = {0}, c = {0};
    gpu_init(&gpu, machine, GPU_DATA);
    const bool failed = hbm_alloc_input(&a, &gpu, "a", DTYPE_F32, 1, 1, count, x[0], error) ||
                        hbm_alloc_input(&b, &gpu, "b", DTYPE_F32, 1, 1, count, x[1], error) ||
                        hbm_alloc(&c, &gpu, "c", DTYPE_F32, 1, 1, count, error) ||
                        styles[style].add(&gpu, &c, &a, &b, error);
    if (!failed)
        hbm_download(sum, &c);
    hbm_free(&a);
    hbm_free(&b);
    hbm_free(&c);
    return failed ? error->status : STATUS_OK;
}

enum status vector_styles_same(int64_t *same, int count, const struct machine *machine,
                               struct error *error)
{
    const size_t size = (size_t)count;
    float *x = malloc(2 * size * sizeof *x), *sum = calloc(2 * size, sizeof *sum);
    bool failed = !x || !sum;
    *same = 0;
    if (failed)
        error_format(error, STATUS_OUT_OF_MEMORY, "no host memory for vectors");
    for (unsigned n = 0; n < 2 && !failed; n++)
        random_fill(x + n * size, size, 1, n + 1);
    for (int style = 0; style < VECTOR_STYLES && !failed; style++)
        failed = add(sum + (size_t)style * size, (enum vector_style)style,
                     (const float *const[2]){x, x + size}, count, machine, error);
    for (size_t i = 0; i < size && !failed; i++)
        *same += sum[i] == x[i] + x[size + i] && sum[size + i] == sum[i];
    free(x);
    free(sum);
    return failed ? error->status : STATUS_OK;
}
