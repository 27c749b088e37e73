/* Prints, as CSV, how fast kernels are at every occupancy: a vector read with 1 to 8 loads in
 * flight a thread, chains of FMAs with 1 to 4 of them independent, and how long one load takes
 * that waits for the one before. For lesson 14.
 *
 * Extra dynamic shared memory lowers the blocks that an SM holds, no more of it than that
 * takes: what is left of it is L1 cache. The grid is what all SMs hold at once, and loops.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/error.h"
#include "occupancy_times_kernels.h"
#include "results.h"

#define VECTOR_FLOATS (INT64_C(1) << 30) /* 4 GiB: no part of it worth naming is in L2 */
#define FMAS_PER_SM (INT64_C(1) << 28)
enum {
    SHARED_UNIT = 128,
    SHARED_RESERVED = 1024,
    CHASE_LINES = 1 << 21, /* 256 MiB */
    CHASE_LOADS = 1 << 14, /* no launch comes back to a line of the one before */
    RESULTS = 1 << 20
};

static const struct timing_plan plan = {.warmup = 2, .repeats = 9};

struct bench {
    struct cudaDeviceProp gpu;
    float *vector, *chase, *term, *result; /* on the device */
};

/* Lines in an order that visits each once: i -> a i + c modulo a power of two has one cycle if
 * c is odd and a % 4 is 1 (Knuth, The Art of Computer Programming, volume 2, 3.2.1.2). */
static enum status fill_chase(struct bench *b, struct error *error)
{
    const size_t floats = (size_t)CHASE_LINES * LINE_FLOATS;
    float *lines = calloc(floats, sizeof *lines);
    if (!lines)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for the lines");
    for (uint32_t i = 0; i < CHASE_LINES; i++) {
        const uint32_t successor = (i * 1664525u + 1013904223u) % CHASE_LINES;
        memcpy(&lines[(size_t)i * LINE_FLOATS], &successor, sizeof successor);
    }
    device_upload(b->chase, lines, floats * sizeof *lines, error);
    free(lines);
    return error->status;
}

static enum status bench_open(struct bench *b, struct error *error)
{
    static const float term = 1.0f;
    const size_t chase_bytes = (size_t)CHASE_LINES * LINE_FLOATS * sizeof(float);
    *b = (struct bench){0};
    CUDA_TRY(cudaGetDeviceProperties(&b->gpu, 0), error);
    if (device_alloc((void **)&b->vector, "the vector", VECTOR_FLOATS * sizeof(float), error) ||
        device_alloc((void **)&b->chase, "the lines", chase_bytes, error) ||
        device_alloc((void **)&b->term, "the term", sizeof term, error) ||
        device_alloc((void **)&b->result, "the results", RESULTS * sizeof(float), error) ||
        device_upload(b->term, &term, sizeof term, error) || fill_chase(b, error))
        return error->status;
    return fill_vector(b->vector, VECTOR_FLOATS, error);
}

static void bench_close(struct bench *b)
{
    device_free(b->vector);
    device_free(b->chase);
    device_free(b->term);
    device_free(b->result);
}

/* Every element was read once: their sum is exact in double, and each thread's in float. Chains
 * x -> x / 2 + 1 end at 2. */
static enum status check_result(const struct timed_launch *launch, struct error *error)
{
    const struct timed_kernel *k = launch->kernel;
    const int threads = launch->grid * k->threads;
    const double wanted =
        k->work == TIMED_BYTES ? (double)VECTOR_FLOATS * 7.5 : 2.0 * k->independent * threads;
    static float results[RESULTS];
    double sum = 0;
    if (k->work == TIMED_LOADS)
        return STATUS_OK;
    if (device_download(results, launch->result, (size_t)threads * sizeof(float), error))
        return error->status;
    for (int i = 0; i < threads; i++)
        sum += results[i];
    if (sum != wanted)
        return error_set(error, STATUS_BAD_ARGUMENT, "%s: the results' sum is %g, not %g",
                         k->name, sum, wanted);
    return STATUS_OK;
}

/* A row of the table. */
static enum status print_row(struct timed_launch *launch, int blocks, struct error *error)
{
    const struct timed_kernel *k = launch->kernel;
    const int64_t loops =
        k->work == TIMED_BYTES ? launch->rounds : launch->rounds * launch->grid;
    struct cudaFuncAttributes attributes;
    struct timing time;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, k->kernel), error);
    if (device_time(&time, launch_timed, launch, &plan, error) || check_result(launch, error))
        return error->status;
    printf("%s,%d,%d,%d,%zu,%" PRId64 ",%d,%d,%" PRId64 ",%.2f,%.2f,%.2f\n", k->name,
           k->independent, k->threads, attributes.numRegs, attributes.sharedSizeBytes,
           launch->shared_bytes, blocks, launch->grid, loops * k->threads * k->round_work,
           time.median_us, time.fastest_us, time.slowest_us);
    return STATUS_OK;
}

/* The least dynamic shared memory with which no more than that many blocks fit on an SM. */
static int64_t shared_for(const struct bench *b, int blocks)
{
    const int64_t share =
        (int64_t)b->gpu.sharedMemPerMultiprocessor / (blocks + 1) / SHARED_UNIT * SHARED_UNIT;
    return share + SHARED_UNIT - SHARED_RESERVED;
}

static enum status blocks_of(int *blocks, const struct timed_kernel *k, int64_t shared_bytes,
                             struct error *error)
{
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, k->kernel, k->threads,
                                                           (size_t)shared_bytes),
             error);
    return STATUS_OK;
}

/* From the most blocks that an SM holds of it down to one. */
static enum status print_sweep(const struct bench *b, const struct timed_kernel *k,
                               struct error *error)
{
    int most;
    CUDA_TRY(cudaFuncSetAttribute(k->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)b->gpu.sharedMemPerBlockOptin),
             error);
    if (blocks_of(&most, k, 0, error))
        return error->status;
    for (int wanted = most; wanted >= 1; wanted--) {
        struct timed_launch launch = {.kernel = k, .result = b->result};
        int blocks;
        launch.shared_bytes = wanted == most ? 0 : shared_for(b, wanted);
        if (blocks_of(&blocks, k, launch.shared_bytes, error))
            return error->status;
        launch.grid = blocks * b->gpu.multiProcessorCount;
        launch.input = k->work == TIMED_BYTES ? b->vector : b->term;
        launch.rounds = k->work == TIMED_BYTES
                            ? VECTOR_FLOATS * 4 / (k->threads * k->round_work)
                            : FMAS_PER_SM / (blocks * k->threads * k->round_work);
        if (print_row(&launch, blocks, error))
            return error->status;
    }
    return STATUS_OK;
}

static enum status print_chase(const struct bench *b, const struct timed_kernel *k,
                               struct error *error)
{
    const uint32_t first = 0;
    struct timed_launch launch = {.kernel = k,
                                  .grid = 1,
                                  .rounds = CHASE_LOADS / k->round_work,
                                  .result = b->result,
                                  .input = b->chase};
    int blocks;
    if (device_upload(b->result, &first, sizeof first, error) ||
        blocks_of(&blocks, k, 0, error))
        return error->status;
    return print_row(&launch, blocks, error);
}

static enum status print_times(struct error *error)
{
    struct bench bench;
    int count;
    const struct timed_kernel *kernels = timed_kernels(&count);
    bench_open(&bench, error);
    for (int i = 0; i < count && !error->status; i++)
        if (kernels[i].work == TIMED_LOADS)
            print_chase(&bench, &kernels[i], error);
        else
            print_sweep(&bench, &kernels[i], error);
    bench_close(&bench);
    return error->status;
}

int main(void)
{
    struct error error = {0};
    if (!results_machine(stdout, "make gpu-occupancy-times", &error)) {
        printf("kernel,independent,threads,registers,static_shared,dynamic_shared,blocks,grid,"
               "work,median_us,fastest_us,slowest_us\n");
        print_times(&error);
    }
    if (error.status)
        fprintf(stderr, "gpu_occupancy_times: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
