#include "cuda/launch.h"

enum { FREE_SHARED_BYTES = 48 * 1024 }; /* what a launch gets without asking */

/* Most blocks along x, y and z: CUDA C++ Programming Guide, "Technical Specifications per
 * Compute Capability". */
static const int64_t most_blocks[3] = {2147483647, 65535, 65535};

enum status launch_prepare(const void *kernel, const struct launch_shape *shape,
                           struct error *error)
{
    for (int axis = 0; axis < 3; axis++)
        if (shape->grid[axis] < 1 || shape->grid[axis] > most_blocks[axis])
            return error_set(error, STATUS_BAD_ARGUMENT,
                             "%s: a grid of %lld x %lld x %lld thread blocks; along %c it may "
                             "have 1 to %lld",
                             shape->kernel, (long long)shape->grid[0],
                             (long long)shape->grid[1], (long long)shape->grid[2], 'x' + axis,
                             (long long)most_blocks[axis]);
    cudaFuncAttributes attributes; /* fails if the binary has no code for this GPU */
    CUDA_TRY(cudaFuncGetAttributes(&attributes, kernel), error);
    const int64_t needed = (int64_t)attributes.sharedSizeBytes + shape->shared_bytes;
    int allowed = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&allowed, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
             error);
    if (needed > allowed)
        return error_set(error, STATUS_ON_CHIP_FULL,
                         "%s: the tiles of one thread block need %lld bytes of shared memory, "
                         "this GPU allows %d. Use smaller blocks or a smaller head dimension.",
                         shape->kernel, (long long)needed, allowed);
    if (needed > FREE_SHARED_BYTES)
        CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)shape->shared_bytes),
                 error);
    return STATUS_OK;
}

dim3 launch_grid(const struct launch_shape *shape)
{
    return dim3((unsigned)shape->grid[0], (unsigned)shape->grid[1], (unsigned)shape->grid[2]);
}

enum status launch_check(const struct launch_shape *shape, struct error *error)
{
    const cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess)
        return STATUS_OK;
    cuda_failed(error, code, shape->kernel, __FILE__, __LINE__);
    struct error launch = *error;
    return error_set(error, launch.status,
                     "%s\nlaunch of %s: grid %lld x %lld x %lld, %d threads, %lld bytes of "
                     "dynamic shared memory",
                     launch.text, shape->kernel, (long long)shape->grid[0],
                     (long long)shape->grid[1], (long long)shape->grid[2], shape->threads,
                     (long long)shape->shared_bytes);
}

enum status launch_check_dims(const char *kernel, const struct attention *a,
                              struct error *error)
{
    if (attention_check(a, error))
        return error->status;
    if (a->dtype != DTYPE_F32)
        return error_set(error, STATUS_BAD_ARGUMENT, "--dtype %s: %s computes in f32 only",
                         dtype_name(a->dtype), kernel);
    if (a->head_dim > MAX_HEAD_DIM || a->head_dim_v > MAX_HEAD_DIM)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--head-dim %d, --head-dim-v %d: %s can do 1 to %d", a->head_dim,
                         a->head_dim_v, kernel, MAX_HEAD_DIM);
    return STATUS_OK;
}

enum status launch_check_problem(const char *kernel, const struct attention *a,
                                 struct error *error)
{
    if (launch_check_dims(kernel, a, error))
        return error->status;
    if (a->block_q > MAX_BLOCK || a->block_k > MAX_BLOCK)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--block-q %d, --block-k %d: %s can do 1 to %d", a->block_q,
                         a->block_k, kernel, MAX_BLOCK);
    return STATUS_OK;
}

int launch_tile_size(const struct attention *a)
{
    const int block = a->block_q > a->block_k ? a->block_q : a->block_k;
    return block <= 16 ? 0 : block <= 32 ? 1 : 2;
}

int launch_dv_size(const struct attention *a)
{
    return a->head_dim_v <= 64 ? 0 : a->head_dim_v <= 128 ? 1 : 2;
}
