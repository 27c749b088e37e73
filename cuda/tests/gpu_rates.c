/* Prints how fast each unit of this GPU is when nothing else is asked of it, as CSV: beside the
 * figures of sim/core/machines.txt, and for the model of time (sim/models/time.h).
 *
 * Rates are a second, by events around the launch; latencies are clocks a load. What tensor
 * cores sustain is what cuBLAS gets out of them in large products, one after the other.
 */
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>

#include "rate_kernels.h"
#include "results.h"

static const struct {
    const char *name, *unit;
    enum rate rate;
    int64_t bytes; /* of memory that is read */
    int rounds;
} probes[] = {
    {"fp32", "multiply-adds", RATE_FP32, 0, 4000},
    {"exp2", "results", RATE_EXP2, 0, 1000},
    {"L2 8 MiB", "bytes", RATE_GLOBAL, INT64_C(8) << 20, 400},
    {"L2 16 MiB", "bytes", RATE_GLOBAL, INT64_C(16) << 20, 200},
    {"L2 24 MiB", "bytes", RATE_GLOBAL, INT64_C(24) << 20, 130},
    {"L2 40 MiB", "bytes", RATE_GLOBAL, INT64_C(40) << 20, 80},
    {"HBM 4 GiB", "bytes", RATE_GLOBAL, INT64_C(4) << 30, 2},
    {"L2 latency 2 MiB", "loads", RATE_GLOBAL_LATENCY, INT64_C(2) << 20, 30000},
    {"shared latency", "loads", RATE_SHARED_LATENCY, 0, 30000},
};
enum { PROBES = sizeof probes / sizeof probes[0] };

static enum status work(void *context, struct error *error)
{
    return launch_rate(context, error);
}

static enum status print_probe(int i, struct rate_launch *launch, struct error *error)
{
    const struct timing_plan plan = {.warmup = 2, .repeats = 5};
    struct timing time;
    int64_t clocks;
    launch->rate = probes[i].rate;
    launch->rounds = probes[i].rounds;
    launch->bytes = probes[i].bytes;
    if ((launch->rate == RATE_GLOBAL_LATENCY && rate_prepare(launch, error)) ||
        device_time(&time, work, launch, &plan, error) ||
        device_download(&clocks, launch->clocks, sizeof clocks, error))
        return error->status;
    const double amount = rate_amount(launch);
    printf("%s,%s,%.0f,%.2f,%.4g,", probes[i].name, probes[i].unit, amount, time.median_us,
           amount / time.median_us * 1e6);
    if (launch->rate >= RATE_GLOBAL_LATENCY)
        printf("%.4g", (double)clocks / amount);
    printf("\n");
    return STATUS_OK;
}

enum { PRODUCT = 8192 };

struct product {
    cublasHandle_t handle;
    char *memory; /* three matrices of fp16 */
};

static enum status product_work(void *context, struct error *error)
{
    const struct product *p = context;
    const size_t matrix = (size_t)PRODUCT * PRODUCT * 2;
    const float one = 1, zero = 0;
    const cublasStatus_t code = cublasGemmEx(
        p->handle, CUBLAS_OP_N, CUBLAS_OP_N, PRODUCT, PRODUCT, PRODUCT, &one, p->memory,
        CUDA_R_16F, PRODUCT, p->memory + matrix, CUDA_R_16F, PRODUCT, &zero,
        p->memory + 2 * matrix, CUDA_R_16F, PRODUCT, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (code != CUBLAS_STATUS_SUCCESS)
        return error_set(error, STATUS_BAD_ARGUMENT, "cublasGemmEx: %s",
                         cublasGetStatusString(code));
    return STATUS_OK;
}

/* Operands that are random bits, none of them NaN or infinite: zeros would take less power and
 * run faster. */
static enum status product_fill(char *memory, struct error *error)
{
    const size_t count = (size_t)PRODUCT * PRODUCT * 2;
    uint16_t *host = malloc(count * sizeof *host);
    uint64_t state = 1;
    if (!host)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for a product's operands");
    for (size_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint16_t bits = (uint16_t)(state >> 48);
        host[i] = (uint16_t)((bits & 0x83ff) | (14 << 10)); /* 0.5 to 1, either sign */
    }
    const enum status status = device_upload(memory, host, count * sizeof *host, error);
    free(host);
    return status;
}

static enum status print_product(void *memory, struct error *error)
{
    const struct timing_plan plan = {.warmup = 20, .repeats = 101};
    const double flops = 2.0 * PRODUCT * PRODUCT * PRODUCT;
    struct product product = {.memory = memory};
    struct timing time;
    if (product_fill(memory, error))
        return error->status;
    if (cublasCreate(&product.handle) != CUBLAS_STATUS_SUCCESS)
        return error_set(error, STATUS_BAD_ARGUMENT, "cublasCreate failed");
    const enum status status = device_time(&time, product_work, &product, &plan, error);
    cublasDestroy(product.handle);
    if (!status)
        printf("tensor fp16 cuBLAS %d^3,FLOPs,%.0f,%.2f,%.4g,\n", PRODUCT, flops,
               time.median_us, flops / time.median_us * 1e6);
    return status;
}

int main(void)
{
    struct error error = {0};
    struct device_info info;
    struct rate_launch launch = {0};
    void *clocks = NULL;
    if (!results_machine(stdout, "make gpu-rates", &error) && !device_query(&info, &error) &&
        !device_alloc(&launch.memory, "what is read", (size_t)4 << 30, &error) &&
        !device_alloc(&clocks, "clocks", sizeof(int64_t), &error)) {
        launch.sms = info.sms;
        launch.clocks = clocks;
        printf("probe,unit,amount,median_us,a_second,clocks\n");
        for (int i = 0; i < PROBES; i++)
            if (print_probe(i, &launch, &error))
                break;
        if (!error.status)
            print_product(launch.memory, &error);
    }
    device_free(clocks);
    device_free(launch.memory);
    if (error.status)
        fprintf(stderr, "gpu_rates: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
