#include "common/kernel_twin.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/attention_forward.h"
#include "kernels/basic_kernels.h"
#include "models/io.h"
#include "models/io_basic.h"

static enum status simulate_attention(struct kernel_twin *twin, const struct cpu_run *run,
                                      const struct machine *machine, struct error *error)
{
    struct simulation s = {.algorithm = (enum algorithm)(run->kernel - CPU_NAIVE_ATTENTION),
                           .attention = run->a,
                           .machine = machine};
    if (attention_simulate(&s, cpu_run_data(run, "Q"), cpu_run_data(run, "K"),
                           cpu_run_data(run, "V"), twin->output, twin->lse, error))
        return error->status;
    twin->simulated = gpu_account(&s.gpu);
    twin->predicted = io_predict(s.algorithm, &s.attention, false);
    return STATUS_OK;
}

/* The other kernels' tensors, in the order of the run's arrays: the output is the last. */
struct tensors {
    int count;
    struct hbm_tensor tensor[3];
};

static const char *const names[CPU_NAIVE_ATTENTION][3] = {
    [CPU_VECTOR_ADD] = {"a", "b", "c"},    [CPU_MATMUL_NAIVE] = {"A", "B", "C"},
    [CPU_MATMUL_SHARED] = {"A", "B", "C"}, [CPU_MATMUL_TILED] = {"A", "B", "C"},
    [CPU_SOFTMAX_NAIVE] = {"X", "Y"},      [CPU_SOFTMAX_SAFE] = {"X", "Y"},
    [CPU_SOFTMAX_ONLINE] = {"X", "Y"},
};

static void shape_of(int *rows, int *cols, const struct cpu_run *run, const char *name)
{
    const bool is_A = *name == 'A', is_B = *name == 'B';
    *rows = run->kernel == CPU_VECTOR_ADD ? 1 : is_B ? run->depth : run->rows;
    *cols = is_A ? run->depth : run->cols;
}

static enum status alloc_tensors(struct tensors *t, struct gpu *gpu, const struct cpu_run *run,
                                 struct error *error)
{
    for (; t->count < 3 && names[run->kernel][t->count]; t->count++) {
        const char *name = names[run->kernel][t->count];
        const bool input = strchr("abABX", *name) != NULL;
        struct hbm_tensor *tensor = &t->tensor[t->count];
        int rows, cols;
        shape_of(&rows, &cols, run, name);
        if (input ? hbm_alloc_input(tensor, gpu, name, DTYPE_F32, 1, rows, cols,
                                    cpu_run_data(run, name), error)
                  : hbm_alloc(tensor, gpu, name, DTYPE_F32, 1, rows, cols, error))
            return error->status;
    }
    return STATUS_OK;
}

static enum status launch_basic(struct gpu *gpu, struct tensors *t, const struct cpu_run *run,
                                struct error *error)
{
    struct hbm_tensor *first = &t->tensor[0], *second = &t->tensor[1], *third = &t->tensor[2];
    switch (run->kernel) {
    case CPU_VECTOR_ADD:
        return vector_add(gpu, third, first, second, error);
    case CPU_MATMUL_NAIVE:
        return matmul_naive(gpu, third, first, second, error);
    case CPU_MATMUL_SHARED:
        return matmul_shared(gpu, third, first, second, run->tile, error);
    case CPU_MATMUL_TILED:
        return matmul_tiled(gpu, third, first, second, run->tile, error);
    case CPU_SOFTMAX_NAIVE:
        return softmax_naive(gpu, second, first, error);
    case CPU_SOFTMAX_SAFE:
        return softmax_safe(gpu, second, first, error);
    default:
        return softmax_online(gpu, second, first, error);
    }
}

static struct account predict_basic(const struct cpu_run *run)
{
    const struct io_matmul product = {run->rows, run->cols, run->depth};
    switch (run->kernel) {
    case CPU_VECTOR_ADD:
        return io_vector_add(run->cols);
    case CPU_MATMUL_NAIVE:
        return io_matmul_naive(&product);
    case CPU_MATMUL_SHARED:
        return io_matmul_shared(&product, run->tile);
    case CPU_MATMUL_TILED:
        return io_matmul_tiled(&product, run->tile);
    case CPU_SOFTMAX_NAIVE:
        return io_softmax_naive(run->rows, run->cols);
    case CPU_SOFTMAX_SAFE:
        return io_softmax_safe(run->rows, run->cols);
    default:
        return io_softmax_online(run->rows, run->cols);
    }
}

static enum status simulate_basic(struct kernel_twin *twin, const struct cpu_run *run,
                                  const struct machine *machine, struct error *error)
{
    struct gpu gpu;
    struct tensors t = {0};
    gpu_init(&gpu, machine, twin->output ? GPU_DATA : GPU_COUNTS);
    const bool failed =
        alloc_tensors(&t, &gpu, run, error) || launch_basic(&gpu, &t, run, error);
    if (!failed) {
        if (twin->output)
            hbm_download(twin->output, &t.tensor[t.count - 1]);
        twin->simulated = gpu_account(&gpu);
        twin->predicted = predict_basic(run);
    }
    for (int n = 0; n < t.count; n++)
        hbm_free(&t.tensor[n]);
    return failed ? error->status : STATUS_OK;
}

enum status kernel_twin_run(struct kernel_twin *twin, const struct cpu_run *run,
                            const struct machine *machine, struct error *error)
{
    const bool attention = cpu_kernel_is_attention(run->kernel);
    const int64_t outputs = run->array[attention ? 3 : run->arrays - 1].count;
    const int64_t rows = attention ? run->array[4].count : 1;
    *twin = (struct kernel_twin){.output = malloc((size_t)outputs * sizeof(float)),
                                 .lse = malloc((size_t)rows * sizeof(float))};
    enum status status;
    if (!twin->output || !twin->lse)
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the results");
    else
        status = (attention ? simulate_attention : simulate_basic)(twin, run, machine, error);
    if (status)
        kernel_twin_free(twin);
    return status;
}

enum status kernel_twin_count(struct kernel_twin *twin, const struct cpu_run *run,
                              const struct machine *machine, struct error *error)
{
    *twin = (struct kernel_twin){0};
    return simulate_basic(twin, run, machine, error);
}

void kernel_twin_free(struct kernel_twin *twin)
{
    free(twin->output);
    free(twin->lse);
    *twin = (struct kernel_twin){0};
}
