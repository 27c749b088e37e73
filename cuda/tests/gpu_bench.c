/* Times of the CUDA kernels beside what the machine can do: copy bandwidth and cuBLAS.
 *
 * Usage: gpu_bench [FILE.csv]
 * Each line is the median of several runs after warm-up, timed by events. The large runs use
 * the shape of the project's speed targets: N 4096, d 64, 16 heads, batch 4, fp32.
 */
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/device.h"
#include "results.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const struct timing_plan plan = {.warmup = 2, .repeats = 9};

/* Vectors, matrices and rows; then attention of 4 x 16 heads. */
static const struct run basic_runs[] = {
    {.kernel = KERNEL_VECTOR_ADD, .cols = 1 << 29},
    {.kernel = KERNEL_SOFTMAX_SAFE, .rows = 65536, .cols = 4096},
    {.kernel = KERNEL_SOFTMAX_ONLINE, .rows = 65536, .cols = 4096},
    {.kernel = KERNEL_MATMUL_NAIVE, .rows = 4096, .cols = 4096, .depth = 4096},
    {.kernel = KERNEL_MATMUL_SHARED, .rows = 4096, .cols = 4096, .depth = 4096, .tile = 16},
    {.kernel = KERNEL_MATMUL_SHARED, .rows = 4096, .cols = 4096, .depth = 4096, .tile = 32},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 4096, .cols = 4096, .depth = 4096, .tile = 16},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 4096, .cols = 4096, .depth = 4096, .tile = 32},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 4096, .cols = 4096, .depth = 4096, .tile = 64},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 8192, .cols = 8192, .depth = 8192, .tile = 16},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 8192, .cols = 8192, .depth = 8192, .tile = 32},
    {.kernel = KERNEL_MATMUL_TILED, .rows = 8192, .cols = 8192, .depth = 8192, .tile = 64},
};
static const struct {
    enum kernel kernel;
    int seqlen, head_dim;
    enum mask mask;
    int block;
} attention_runs[] = {
    {KERNEL_NAIVE, 1024, 64, MASK_NONE, 64},    {KERNEL_STANDARD, 4096, 64, MASK_NONE, 64},
    {KERNEL_FLASH1, 4096, 64, MASK_NONE, 64},   {KERNEL_FLASH2, 4096, 64, MASK_NONE, 16},
    {KERNEL_FLASH2, 4096, 64, MASK_NONE, 32},   {KERNEL_FLASH2, 4096, 64, MASK_NONE, 64},
    {KERNEL_FLASH2, 4096, 64, MASK_CAUSAL, 64}, {KERNEL_FLASH2, 4096, 128, MASK_NONE, 64},
};

static struct run attention_run(size_t i)
{
    const int N = attention_runs[i].seqlen, d = attention_runs[i].head_dim;
    const int block = attention_runs[i].block;
    return (struct run){.kernel = attention_runs[i].kernel,
                        .a = {.batch = 4,
                              .heads_q = 16,
                              .heads_kv = 16,
                              .seqlen_q = N,
                              .seqlen_k = N,
                              .head_dim = d,
                              .head_dim_v = d,
                              .scale = 1.0f / sqrtf((float)d),
                              .mask = attention_runs[i].mask,
                              .block_q = block,
                              .block_k = block}};
}

static _Noreturn void stop(const char *what, const char *why)
{
    fprintf(stderr, "gpu_bench: %s: %s\n", what, why);
    exit(2);
}

/* FLOPs of the products as FlashAttention-2 counts them, and bytes that must move at least. */
static double flops_of(const struct run *run)
{
    const double elements = (double)run->rows * run->cols;
    if (!kernel_is_attention(run->kernel))
        return run->depth > 0 ? 2 * elements * run->depth : 0;
    const double pairs = (double)run->a.batch * run->a.heads_q * run->a.seqlen_q *
                         run->a.seqlen_k * (run->a.mask == MASK_NONE ? 1 : 0.5);
    return 2 * pairs * (run->a.head_dim + run->a.head_dim_v);
}

static double bytes_of(const struct run *run)
{
    double bytes = 0;
    for (int i = 0; i < run->arrays; i++)
        bytes += 4.0 * (double)run->array[i].count;
    return bytes;
}

/* One line of the table and of the file; shape may be NULL. */
static void print_row(FILE *csv, const char *name, const struct run *shape,
                      const struct timing *time, double flops, double bytes)
{
    const double tflops = flops / time->median_us / 1e6, tbytes = bytes / time->median_us / 1e6;
    char text[64] = "";
    if (shape && kernel_is_attention(shape->kernel))
        snprintf(text, sizeof text, "N %d d %d %s %dx%d", shape->a.seqlen_q, shape->a.head_dim,
                 mask_name(shape->a.mask), shape->a.block_q, shape->a.block_k);
    else if (shape && kernel_is_matmul(shape->kernel) && shape->tile > 0)
        snprintf(text, sizeof text, "%d^3 tile %d", shape->rows, shape->tile);
    else if (shape)
        snprintf(text, sizeof text, "%d x %d", shape->rows > 0 ? shape->rows : 1, shape->cols);
    printf("%-20s %-26s %11.1f %9.2f %9.3f\n", name, text, time->median_us, tflops, tbytes);
    if (!csv)
        return;
    if (shape)
        results_shape(csv, shape);
    else
        fprintf(csv, "%s,,,,,,,,,,,,,,", name);
    fprintf(csv, ",%.2f,%.2f,%.2f,%.3f,%.4f\n", time->median_us, time->fastest_us,
            time->slowest_us, tflops, tbytes);
}

struct copy {
    void *dst, *src;
    size_t bytes;
};

static enum status copy_work(void *context, struct error *error)
{
    const struct copy *copy = context;
    return device_copy(copy->dst, copy->src, copy->bytes, NULL, error);
}

static void bench_copy(FILE *csv)
{
    struct copy copy = {.bytes = (size_t)4 << 30};
    struct error error;
    struct timing time;
    if (device_alloc(&copy.src, "source", copy.bytes, &error) ||
        device_alloc(&copy.dst, "destination", copy.bytes, &error) ||
        device_time(&time, copy_work, &copy, &plan, &error))
        stop("copy", error.text);
    print_row(csv, "copy", NULL, &time, 0, 2.0 * (double)copy.bytes);
    device_free(copy.src);
    device_free(copy.dst);
}

struct product {
    cublasHandle_t handle;
    int n;
    float *A, *B, *C;
};

static enum status product_work(void *context, struct error *error)
{
    const struct product *p = context;
    const float one = 1, zero = 0;
    const cublasStatus_t code =
        cublasSgemm(p->handle, CUBLAS_OP_N, CUBLAS_OP_N, p->n, p->n, p->n, &one, p->A, p->n,
                    p->B, p->n, &zero, p->C, p->n);
    if (code != CUBLAS_STATUS_SUCCESS)
        return error_set(error, STATUS_BAD_ARGUMENT, "cublasSgemm: %s",
                         cublasGetStatusString(code));
    return STATUS_OK;
}

/* On the inputs of a matmul run, so that the numbers are the same. */
static void bench_cublas(FILE *csv)
{
    struct run run = {.kernel = KERNEL_MATMUL_TILED, .rows = 8192, .cols = 8192, .depth = 8192};
    struct product product = {.n = 8192};
    struct error error;
    struct timing time;
    if (run_open(&run, 0, &error))
        stop("cuBLAS", error.text);
    product.A = run_array(&run, "A")->guarded + SENTINELS;
    product.B = run_array(&run, "B")->guarded + SENTINELS;
    product.C = run_array(&run, "C")->guarded + SENTINELS;
    if (cublasCreate(&product.handle) != CUBLAS_STATUS_SUCCESS)
        stop("cuBLAS", "cublasCreate failed");
    if (device_time(&time, product_work, &product, &plan, &error))
        stop("cuBLAS", error.text);
    print_row(csv, "cublas_sgemm 8192^3", NULL, &time, flops_of(&run), bytes_of(&run));
    cublasDestroy(product.handle);
    run_close(&run);
}

static void bench_run(FILE *csv, struct run run)
{
    struct error error;
    struct timing time;
    if (run_open(&run, 0, &error) || device_time(&time, run_launch, &run, &plan, &error))
        stop(run_text(&run), error.text);
    print_row(csv, kernel_name(run.kernel), &run, &time, flops_of(&run), bytes_of(&run));
    run_close(&run);
}

int main(int argc, char **argv)
{
    struct error error;
    FILE *csv = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (argc > 1 && !csv)
        stop(argv[1], "cannot be written");
    if (results_machine(csv, "make gpu-bench BENCH_CSV=FILE", &error) ||
        results_machine(stdout, "median of 9 runs", &error))
        stop("no usable GPU", error.text);
    if (csv) {
        results_shape_columns(csv);
        fprintf(csv, ",median_us,fastest_us,slowest_us,tflops,least_tbytes_per_second\n");
    }
    printf("%-47s %11s %9s %9s\n", "", "us", "TFLOP/s", "TB/s");
    bench_copy(csv);
    bench_cublas(csv);
    for (size_t i = 0; i < LENGTH(basic_runs); i++)
        bench_run(csv, basic_runs[i]);
    for (size_t i = 0; i < LENGTH(attention_runs); i++)
        bench_run(csv, attention_run(i));
    return csv && fclose(csv) != 0 ? 1 : 0;
}
