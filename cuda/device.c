#include "cuda/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/error.h"
#include "cuda/refusals.h"

static enum status query_limits(struct device_info *info, struct error *error)
{
    const struct {
        int *value;
        enum cudaDeviceAttr attribute;
    } ints[] = {{&info->sms, cudaDevAttrMultiProcessorCount},
                {&info->compute_major, cudaDevAttrComputeCapabilityMajor},
                {&info->compute_minor, cudaDevAttrComputeCapabilityMinor}};
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++)
        CUDA_TRY(cudaDeviceGetAttribute(ints[i].value, ints[i].attribute, 0), error);
    int l2 = 0, shared = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0), error);
    CUDA_TRY(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
             error);
    info->l2_bytes = l2;
    info->shared_bytes_per_block = shared;
    return STATUS_OK;
}

/* "580.159.04" from the driver's own file; "unknown" where there is none. */
static void find_driver(char text[32])
{
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256] = "", *rest = NULL;
    strcpy(text, "unknown");
    if (!file)
        return;
    if (fgets(line, sizeof line, file)) {
        for (char *word = strtok_r(line, " \t\n", &rest); word;
             word = strtok_r(NULL, " \t\n", &rest)) {
            if (word[0] >= '1' && word[0] <= '9' && strchr(word, '.')) {
                snprintf(text, 32, "%.31s", word);
                break;
            }
        }
    }
    fclose(file);
}

enum status device_query(struct device_info *info, struct error *error)
{
    *info = (struct device_info){0};
    int count = 0;
    CUDA_TRY(cudaGetDeviceCount(&count), error);
    if (query_limits(info, error))
        return error->status;
    struct cudaDeviceProp properties;
    CUDA_TRY(cudaGetDeviceProperties(&properties, 0), error);
    memcpy(info->name, properties.name, sizeof info->name - 1);
    find_driver(info->driver);
    CUDA_TRY(cudaDriverGetVersion(&info->driver_version), error);
    CUDA_TRY(cudaRuntimeGetVersion(&info->runtime_version), error);
    if (refuse_old_gpu(info->name, info->compute_major, info->compute_minor, error))
        return error->status;
    size_t available = 0, total = 0;
    CUDA_TRY(cudaMemGetInfo(&available, &total), error);
    info->free_bytes = (int64_t)available;
    info->memory_bytes = (int64_t)total;
    return STATUS_OK;
}

enum status device_alloc(void **memory, const char *name, size_t bytes, struct error *error)
{
    *memory = NULL;
    const cudaError_t code = cudaMalloc(memory, bytes);
    if (code == cudaErrorMemoryAllocation) {
        size_t available = 0, total = 0;
        cudaGetLastError(); /* later calls must not see it again */
        CUDA_TRY(cudaMemGetInfo(&available, &total), error);
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "%s needs %zu bytes of device memory, %zu of %zu are free", name,
                         bytes, available, total);
    }
    CUDA_TRY(code, error);
    CUDA_TRY(cudaMemset(*memory, 0xff, bytes), error);
    return STATUS_OK;
}

void device_free(void *memory)
{
    cudaFree(memory);
}

enum status device_upload(void *device, const void *host, size_t bytes, struct error *error)
{
    CUDA_TRY(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), error);
    return STATUS_OK;
}

enum status device_download(void *host, const void *device, size_t bytes, struct error *error)
{
    CUDA_TRY(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), error);
    return STATUS_OK;
}

enum status device_copy(void *dst, const void *src, size_t bytes, void *stream,
                        struct error *error)
{
    CUDA_TRY(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)stream),
             error);
    return STATUS_OK;
}

enum status stream_create(void **stream, struct error *error)
{
    CUDA_TRY(cudaStreamCreate((cudaStream_t *)stream), error);
    return STATUS_OK;
}

void stream_destroy(void *stream)
{
    if (stream)
        cudaStreamDestroy((cudaStream_t)stream);
}

enum status stream_wait(void *stream, struct error *error)
{
    CUDA_TRY(cudaStreamSynchronize((cudaStream_t)stream), error);
    return STATUS_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One repetition between two events. */
static enum status time_once(double *us, device_work *work, void *context,
                             const cudaEvent_t event[2], cudaStream_t stream,
                             struct error *error)
{
    CUDA_TRY(cudaEventRecord(event[0], stream), error);
    if (work(context, error))
        return error->status;
    CUDA_TRY(cudaEventRecord(event[1], stream), error);
    CUDA_TRY(cudaEventSynchronize(event[1]), error);
    float ms = 0;
    CUDA_TRY(cudaEventElapsedTime(&ms, event[0], event[1]), error);
    *us = (double)ms * 1000;
    return STATUS_OK;
}

static enum status time_all(double *us, device_work *work, void *context,
                            const struct timing_plan *plan, struct error *error)
{
    cudaEvent_t event[2];
    CUDA_TRY(cudaEventCreate(&event[0]), error);
    CUDA_TRY(cudaEventCreate(&event[1]), error);
    enum status status = STATUS_OK;
    for (int i = 0; i < plan->warmup + plan->repeats && status == STATUS_OK; i++)
        status = time_once(&us[i < plan->warmup ? 0 : i - plan->warmup], work, context, event,
                           (cudaStream_t)plan->stream, error);
    cudaEventDestroy(event[0]);
    cudaEventDestroy(event[1]);
    return status;
}

enum status device_time(struct timing *timing, device_work *work, void *context,
                        const struct timing_plan *plan, struct error *error)
{
    CHECK(plan->repeats > 0 && plan->warmup >= 0, "%d repetitions after %d", plan->repeats,
          plan->warmup);
    const size_t count = (size_t)plan->repeats;
    double *us = malloc(count * sizeof *us);
    if (!us)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %zu times", count);
    const enum status status = time_all(us, work, context, plan, error);
    if (status == STATUS_OK) {
        qsort(us, count, sizeof *us, ascending);
        *timing =
            (struct timing){(us[(count - 1) / 2] + us[count / 2]) / 2, us[0], us[count - 1]};
    }
    free(us);
    return status;
}
