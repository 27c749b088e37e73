#include "cuda/ladder/step.h"
#include "cuda/launch.h"

static const struct step *const steps[LADDER_STEPS] = {
    &step_mma,        &step_ldmatrix, &step_cp_async, &step_registers, &step_two_tiles,
    &step_tma,        &step_wgmma,    &step_producer, &step_ping_pong, &step_overlap,
    &step_persistent, &step_exp2,     &step_rescale,  &step_queries};

static const struct kernel *kernel_of(enum ladder_step step, enum dtype dtype, int head_dim)
{
    const int size = head_dim <= 64 ? 0 : head_dim <= 128 ? 1 : 2;
    return &steps[step]->kernels[dtype == DTYPE_F16 ? 0 : 1][size];
}

void ladder_tile(int *block_q, int *block_k, enum ladder_step step, int head_dim)
{
    const struct kernel *kernel = kernel_of(step, DTYPE_BF16, head_dim);
    *block_q = kernel->block_q;
    *block_k = kernel->block_k;
}

/* Longest first: as many planes at once as keep their K and V in half of L2, as the order of
 * their blocks is free then. Without a causal mask all blocks are as long, and one plane at a
 * time is best for L2. */
static enum status planes_together(int *planes, const struct step *step,
                                   const struct attention *a, struct error *error)
{
    int l2_bytes = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), error);
    const int64_t plane_bytes = (int64_t)4 * a->seqlen_k * a->head_dim;
    const int64_t sharing = a->heads_q / a->heads_kv; /* planes with the same K and V */
    const int64_t fit = l2_bytes / 2 / plane_bytes * sharing;
    const int64_t all = (int64_t)a->batch * a->heads_q;
    const bool many = step->traits & LONGEST_FIRST && a->mask == MASK_CAUSAL && fit > 1;
    *planes = (int)(!many ? 1 : fit < all ? fit : all);
    return STATUS_OK;
}

/* No more blocks than SMs. */
static enum status one_block_an_sm(struct launch_shape *shape, struct error *error)
{
    int sms = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0), error);
    const int64_t blocks = shape->grid[0] * shape->grid[1] * shape->grid[2];
    shape->grid[0] = blocks < sms ? blocks : sms;
    shape->grid[1] = shape->grid[2] = 1;
    return STATUS_OK;
}

enum status ladder_launch(enum ladder_step step, const struct attention *a,
                          const struct ladder_tensors *t, struct error *error)
{
    int major = 0, minor = 0;
    if (ladder_check(step, a, t, error))
        return error->status;
    CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), error);
    CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), error);
    if (ladder_check_gpu(step, "this GPU", major, minor, error))
        return error->status;

    const struct kernel *kernel = kernel_of(step, a->dtype, a->head_dim);
    struct tma_work tma;
    struct work *work = &tma.work; /* the address is that of either argument */
    *work = {*a, *t, 1};
    work->a.block_q = kernel->block_q;
    work->a.block_k = kernel->block_k;
    if (planes_together(&work->planes_together, steps[step], a, error) ||
        (steps[step]->traits & COPY_ENGINE && tensor_maps(&tma, error)))
        return error->status;
    struct launch_shape shape = {
        steps[step]->name,
        {work->planes_together, launch_blocks(a->seqlen_q, kernel->block_q),
         launch_blocks((int64_t)a->batch * a->heads_q, work->planes_together)},
        kernel->threads,
        kernel->shared_bytes};
    if (steps[step]->traits & PERSISTENT && one_block_an_sm(&shape, error))
        return error->status;
    if (launch_prepare(kernel->function, &shape, error))
        return error->status;
    void *arguments[] = {&tma};
    CUDA_TRY(cudaLaunchKernel(kernel->function, launch_grid(&shape), dim3(kernel->threads),
                              arguments, (size_t)kernel->shared_bytes, (cudaStream_t)t->stream),
             error);
    return STATUS_OK;
}
