/* Launches that a GPU would refuse. */
#include <cuda_runtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "cuda/cpu/worker.h"

enum {
    MAX_BLOCK_Z = 64,
    MAX_GRID_YZ = 65535,
    UNRAISED_SHARED = 48 * 1024, /* what a launch gets without asking */
    MAX_KERNELS = 64,
};

/* Kernels whose limit of dynamic shared memory was raised. */
static struct {
    int count;
    struct {
        const void *function;
        int64_t bytes;
    } kernel[MAX_KERNELS];
} raised;
static char refusal[256]; /* of the last launch; empty: none */
static bool unread;

void cpu_raise_shared(const void *function, int64_t bytes)
{
    int n = 0;
    while (n < raised.count && raised.kernel[n].function != function)
        n++;
    CHECK(n < MAX_KERNELS, "more than %d kernels", MAX_KERNELS);
    if (n == raised.count)
        raised.count++;
    raised.kernel[n].function = function;
    raised.kernel[n].bytes = bytes;
}

int64_t cpu_shared_limit(void)
{
    return cpu_options.shared_bytes;
}

static int64_t allowed_shared(const void *function)
{
    for (int n = 0; n < raised.count; n++)
        if (raised.kernel[n].function == function && raised.kernel[n].bytes > UNRAISED_SHARED)
            return raised.kernel[n].bytes < cpu_options.shared_bytes ? raised.kernel[n].bytes
                                                                     : cpu_options.shared_bytes;
    return UNRAISED_SHARED;
}

static bool refused(const struct cpu_grid *grid)
{
    const int64_t threads = (int64_t)grid->block.x * grid->block.y * grid->block.z;
    const int64_t shared = allowed_shared(grid->function);
    refusal[0] = '\0';
    if (threads < 1 || threads > CPU_MAX_THREADS || grid->block.z > MAX_BLOCK_Z)
        snprintf(refusal, sizeof refusal,
                 "%s: a block of %u x %u x %u threads; it may have 1 to %d, and %d along z",
                 grid->kernel, grid->block.x, grid->block.y, grid->block.z, CPU_MAX_THREADS,
                 MAX_BLOCK_Z);
    else if (grid->grid.x < 1 || grid->grid.x > INT32_MAX || grid->grid.y < 1 ||
             grid->grid.y > MAX_GRID_YZ || grid->grid.z < 1 || grid->grid.z > MAX_GRID_YZ)
        snprintf(
            refusal, sizeof refusal,
            "%s: a grid of %u x %u x %u blocks; it may have 1 to %d along x, %d along y and "
            "z",
            grid->kernel, grid->grid.x, grid->grid.y, grid->grid.z, INT32_MAX, MAX_GRID_YZ);
    else if ((int64_t)grid->shared_bytes > shared)
        snprintf(refusal, sizeof refusal,
                 "%s: %zu bytes of dynamic shared memory a block; it may have %" PRId64,
                 grid->kernel, grid->shared_bytes, shared);
    return unread = refusal[0] != '\0';
}

void cpu_run_grid(const struct cpu_grid *grid)
{
    CHECK(!cpu_worker || !cpu_worker->in_lane,
          "%s: a launch from inside a kernel does not run on the CPU", grid->kernel);
    if (!refused(grid))
        cpu_run_threads(grid);
}

bool cpu_launch_refused(void)
{
    const bool refused = unread;
    unread = false;
    return refused;
}

const char *cudaGetErrorName(cudaError_t code)
{
    return code == cudaSuccess ? "cudaSuccess" : "cudaErrorInvalidConfiguration";
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaSuccess ? "no error" : refusal;
}

const char *cpu_path(const char *file)
{
    return strncmp(file, "./", 2) == 0 ? file + 2 : file; /* found by -I. */
}

struct called_text cpu_called_at(const struct cpu_where *where)
{
    struct called_text called = {""};
    const int line = where->origin >> 16;
    if (line > 0 && strcmp(where->file, cpu_now.file) != 0)
        snprintf(called.text, sizeof called.text, " (called at %s:%d)", cpu_path(cpu_now.file),
                 line);
    return called;
}

void cpu_fail(const struct cpu_now *now, const char *file, int line, const char *text)
{
    const struct cpu_index thread = now->running->index;
    check_failed(cpu_path(file), line, "%s, block (%u, %u, %u), thread (%u, %u, %u): %s",
                 now->kernel, now->block.x, now->block.y, now->block.z, thread.x, thread.y,
                 thread.z, text);
}
