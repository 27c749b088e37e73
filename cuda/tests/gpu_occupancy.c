/* Prints what the driver says of occupancy on this GPU, as CSV: for tests/test_occupancy.c,
 * which predicts every row. First each launch of our own kernels, for all compiled sizes, then
 * kernels of many sizes, with block sizes and dynamic shared memory of all kinds.
 *
 * The launchers keep their kernels' addresses to themselves, but each shows them to
 * launch_prepare(). The linker puts __wrap_launch_prepare() in its place (--wrap in cuda.mk).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/device.h"
#include "cuda/launch.h"
#include "occupancy_kernels.h"
#include "results.h"

enum { SHARED_PER_SM = 228 * 1024, SHARED_STEP = 9001, RESERVED = 1024, SHARED_UNIT = 128 };

/* The run that launches; NULL: a kernel that has no run. launch_prepare() does not pass it. */
static const struct run *running;

/* Which compiled size of a kernel, by the columns of the tables of times. */
static void print_size(void)
{
    if (running && kernel_is_attention(running->kernel))
        printf("%d,%d,", running->a.head_dim, running->a.block_q);
    else if (running && (running->kernel == KERNEL_MATMUL_SHARED ||
                         running->kernel == KERNEL_MATMUL_TILED))
        printf(",,%d", running->tile);
    else
        printf(",,");
}

/* A row: the resources of a launch, and the blocks that an SM holds of it. */
static enum status print_row(const char *name, const void *kernel, int threads, int64_t dynamic,
                             struct error *error)
{
    struct cudaFuncAttributes attributes;
    int blocks = 0;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernel), error);
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads,
                                                           (size_t)dynamic),
             error);
    printf("%s,", name);
    print_size();
    printf(",%d,%d,%zu,%" PRId64 ",%d\n", threads, attributes.numRegs,
           attributes.sharedSizeBytes, dynamic, blocks);
    return STATUS_OK;
}

enum status __real_launch_prepare(const void *kernel, const struct launch_shape *shape,
                                  struct error *error);
enum status __wrap_launch_prepare(const void *kernel, const struct launch_shape *shape,
                                  struct error *error);
enum status __wrap_launch_prepare(const void *kernel, const struct launch_shape *shape,
                                  struct error *error)
{
    if (__real_launch_prepare(kernel, shape, error))
        return error->status;
    return print_row(shape->kernel, kernel, shape->threads, shape->shared_bytes, error);
}

/* Launches it: what does not fit on this GPU has no row. */
static enum status print_run(struct run *run, struct error *error)
{
    if (run_open(run, 0, error))
        return error->status;
    running = run;
    const bool failed = run_launch(run, error) || stream_wait(NULL, error);
    running = NULL;
    run_close(run);
    if (failed && error->status == STATUS_ON_CHIP_FULL)
        *error = (struct error){0};
    return error->status;
}

static enum status print_attention(enum kernel kernel, int head_dim, int block,
                                   struct error *error)
{
    struct run run = {.kernel = kernel};
    run.a = (struct attention){.batch = 1,
                               .heads_q = 1,
                               .heads_kv = 1,
                               .seqlen_q = 64,
                               .seqlen_k = 64,
                               .head_dim = head_dim,
                               .head_dim_v = head_dim,
                               .scale = 0.125f,
                               .block_q = block,
                               .block_k = block};
    return print_run(&run, error);
}

static enum status print_our_kernels(struct error *error)
{
    static const int head_dims[] = {8, 40, 64, 80, 128, 192, 256};
    for (int kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        for (int block = 16; block <= kernel_most_tile((enum kernel)kernel); block *= 2) {
            struct run run = {.kernel = (enum kernel)kernel,
                              .rows = block,
                              .cols = 100,
                              .depth = 40,
                              .tile = block};
            const int shapes = kernel_is_attention(run.kernel) ? 7 : 1;
            for (int i = 0; i < shapes; i++)
                if (kernel_is_attention(run.kernel)
                        ? print_attention(run.kernel, head_dims[i], block, error)
                        : print_run(&run, error))
                    return error->status;
        }
    }
    return STATUS_OK;
}

static enum status print_block_sizes(const struct occupancy_kernel *k, struct error *error)
{
    static const int threads[] = {32,  33,  64,  96,  128, 160, 224, 256,
                                  288, 384, 480, 512, 640, 768, 992, 1024};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        if (threads[i] <= k->most_threads &&
            print_row(k->name, k->kernel, threads[i], 0, error))
            return error->status;
    return STATUS_OK;
}

/* From 0 to all that a block may have, and on both sides of what n blocks can share. */
static enum status print_shared_sizes(const struct occupancy_kernel *k, int threads,
                                      struct error *error)
{
    struct cudaFuncAttributes attributes;
    int most = 0;
    CUDA_TRY(cudaFuncGetAttributes(&attributes, k->kernel), error);
    CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), error);
    most -= (int)attributes.sharedSizeBytes;
    CUDA_TRY(cudaFuncSetAttribute(k->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
             error);
    for (int bytes = 0; bytes <= most; bytes += SHARED_STEP)
        if (print_row(k->name, k->kernel, threads, bytes, error))
            return error->status;
    for (int n = 1; n <= 32; n++) {
        const int share = SHARED_PER_SM / n / SHARED_UNIT * SHARED_UNIT - RESERVED -
                          (int)attributes.sharedSizeBytes;
        for (int bytes = share; bytes <= share + 1; bytes++)
            if (bytes >= 0 && bytes <= most &&
                print_row(k->name, k->kernel, threads, bytes, error))
                return error->status;
    }
    return STATUS_OK;
}

static enum status print_sized_kernels(struct error *error)
{
    int count;
    const struct occupancy_kernel *kernels = occupancy_kernels(&count);
    for (int i = 0; i < count; i++)
        if (print_block_sizes(&kernels[i], error))
            return error->status;
    for (int i = 0; i < count; i += 4)
        if (print_shared_sizes(&kernels[i], i % 8 == 0 ? 32 : 128, error))
            return error->status;
    return STATUS_OK;
}

int main(void)
{
    struct error error = {0};
    if (!results_machine(stdout, "make gpu-occupancy", &error)) {
        printf("kernel,head_dim,block_q,tile,threads,registers,static_shared,dynamic_shared,"
               "blocks\n");
        if (!print_our_kernels(&error))
            print_sized_kernels(&error);
    }
    if (error.status)
        fprintf(stderr, "gpu_occupancy: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
