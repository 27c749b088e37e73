/* How kernels are launched: shapes checked, shared memory raised, errors caught. For .cu files.
 *
 * Interface:
 *   const struct launch_shape shape = {"flash2_forward", {x, y, z}, THREADS, shared_bytes};
 *   if (launch_prepare((const void *)kernel, &shape, error)) return error->status;
 *   kernel<<<launch_grid(&shape), THREADS, shape.shared_bytes, stream>>>(...);
 *   return launch_check(&shape, error);
 */
#ifndef FLASHLAB_CUDA_LAUNCH_H
#define FLASHLAB_CUDA_LAUNCH_H

#include "cuda/attention.h"
#include "cuda/error.h"

/* A launch under way: int64_t, so that what CUDA cannot launch is refused, not cut off. */
struct launch_shape {
    const char *kernel;
    int64_t grid[3];
    int threads;
    int64_t shared_bytes; /* dynamic */
};

/* Checks the grid and the shared memory against the device, and raises the kernel's limit of
 * dynamic shared memory above 48 KB if it needs that. */
#ifdef __cplusplus
extern "C" /* a name that the linker can wrap: cuda/tests/gpu_occupancy.c */
#endif
    enum status
    launch_prepare(const void *kernel, const struct launch_shape *shape, struct error *error);

dim3 launch_grid(const struct launch_shape *shape);

/* After <<<>>>: the launch's own errors. Those of the kernel surface at the next wait. */
enum status launch_check(const struct launch_shape *shape, struct error *error);

static inline cudaStream_t launch_stream(const struct device_tensors *t)
{
    return (cudaStream_t)t->stream;
}

/* Blocks of size that cover extent. */
static inline int64_t launch_blocks(int64_t extent, int64_t size)
{
    return (extent + size - 1) / size;
}

/* What every attention kernel needs: attention_check(), fp32, head dimensions. */
enum status launch_check_dims(const char *kernel, const struct attention *a,
                              struct error *error);

/* And the tiled ones: blocks of up to MAX_BLOCK. */
enum status launch_check_problem(const char *kernel, const struct attention *a,
                                 struct error *error);

/* Which compiled tile size (0: 16, 1: 32, 2: 64) and O row length (0: 64, 1: 128, 2: 256) serve
 * the problem: the smallest that hold it. */
enum { TILE_SIZES = 3, DV_SIZES = 3 };
int launch_tile_size(const struct attention *a);
int launch_dv_size(const struct attention *a);

/* Defines launch_KERNEL(), which checks the problem and calls the launch<TILE, DV>() that
 * serves it: an attention_launcher and a template of the same file, which includes steps.h. */
#define TILED_LAUNCHER(kernel)                                                                 \
    enum status launch_##kernel(const struct attention *a, const struct device_tensors *t,     \
                                struct error *error)                                           \
    {                                                                                          \
        static attention_launcher *const launchers[TILE_SIZES][DV_SIZES] = {                   \
            {launch<16, 64>, launch<16, 128>, launch<16, 256>},                                \
            {launch<32, 64>, launch<32, 128>, launch<32, 256>},                                \
            {launch<64, 64>, launch<64, 128>, launch<64, 256>}};                               \
        if (launch_check_problem(#kernel, a, error) || steps_attach(t, error))                 \
            return error->status;                                                              \
        return launchers[launch_tile_size(a)][launch_dv_size(a)](a, t, error);                 \
    }

#endif
