/* The simulated twin and the closed form of a run. */
#include "kernels/attention_forward.h"
#include "kernels/basic_kernels.h"
#include "models/io.h"
#include "models/io_basic.h"
#include "run.h"

/* A matrix in counts-only mode: no data, nothing to free. */
static struct hbm_tensor matrix(struct gpu *gpu, const char *name, int rows, int cols)
{
    struct hbm_tensor tensor;
    struct error error;
    CHECK(hbm_alloc(&tensor, gpu, name, DTYPE_F32, 1, rows, cols, &error) == STATUS_OK, "%s",
          error.text);
    return tensor;
}

static enum status simulate_matmul(struct gpu *gpu, const struct run *run, struct error *error)
{
    const struct hbm_tensor A = matrix(gpu, "A", run->rows, run->depth),
                            B = matrix(gpu, "B", run->depth, run->cols);
    struct hbm_tensor C = matrix(gpu, "C", run->rows, run->cols);
    if (run->kernel == KERNEL_MATMUL_NAIVE)
        return matmul_naive(gpu, &C, &A, &B, error);
    if (run->kernel == KERNEL_MATMUL_SHARED)
        return matmul_shared(gpu, &C, &A, &B, run->tile, error);
    return matmul_tiled(gpu, &C, &A, &B, run->tile, error);
}

static enum status simulate_softmax(struct gpu *gpu, const struct run *run, struct error *error)
{
    const struct hbm_tensor X = matrix(gpu, "X", run->rows, run->cols);
    struct hbm_tensor Y = matrix(gpu, "Y", run->rows, run->cols);
    if (run->kernel == KERNEL_SOFTMAX_NAIVE)
        return softmax_naive(gpu, &Y, &X, error);
    if (run->kernel == KERNEL_SOFTMAX_SAFE)
        return softmax_safe(gpu, &Y, &X, error);
    return softmax_online(gpu, &Y, &X, error);
}

enum status run_simulate(struct gpu *gpu, const struct run *run, struct error *error)
{
    if (kernel_is_attention(run->kernel)) {
        struct simulation s = {.algorithm = kernel_algorithm(run->kernel),
                               .attention = run->a,
                               .machine = machine_default()};
        const enum status status = attention_count(&s, error);
        *gpu = s.gpu;
        return status;
    }
    gpu_init(gpu, machine_default(), GPU_COUNTS);
    if (run->kernel == KERNEL_VECTOR_ADD) {
        const struct hbm_tensor a = matrix(gpu, "a", 1, run->cols),
                                b = matrix(gpu, "b", 1, run->cols);
        struct hbm_tensor c = matrix(gpu, "c", 1, run->cols);
        return vector_add(gpu, &c, &a, &b, error);
    }
    if (kernel_is_matmul(run->kernel))
        return simulate_matmul(gpu, run, error);
    return simulate_softmax(gpu, run, error);
}

struct account run_predict(const struct run *run)
{
    const struct io_matmul shape = {run->rows, run->cols, run->depth};
    switch (run->kernel) {
    case KERNEL_VECTOR_ADD:
        return io_vector_add(run->cols);
    case KERNEL_MATMUL_NAIVE:
        return io_matmul_naive(&shape);
    case KERNEL_MATMUL_SHARED:
        return io_matmul_shared(&shape, run->tile);
    case KERNEL_MATMUL_TILED:
        return io_matmul_tiled(&shape, run->tile);
    case KERNEL_SOFTMAX_NAIVE:
        return io_softmax_naive(run->rows, run->cols);
    case KERNEL_SOFTMAX_SAFE:
        return io_softmax_safe(run->rows, run->cols);
    case KERNEL_SOFTMAX_ONLINE:
        return io_softmax_online(run->rows, run->cols);
    default:
        return io_predict(kernel_algorithm(run->kernel), &run->a, false);
    }
}
