/* Prints what the CUDA Toolkit's occupancy calculator says of random blocks on each compute
 * capability, as CSV: for tests/test_occupancy.c, which predicts every number. Needs no GPU.
 * What an SM has is the model's: the calculator knows only the rules. */
#include <cuda.h>
#include <cuda_occupancy.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/problem.h"
#include "models/occupancy.h"

enum { BLOCKS_EACH = 48, FREE_SHARED_BYTES = 48 * 1024 };

static cudaOccDeviceProp properties_of(const struct sm_limits *sm)
{
    return (cudaOccDeviceProp){.computeMajor = sm->major,
                               .computeMinor = sm->minor,
                               .maxThreadsPerBlock = MOST_THREADS_PER_BLOCK,
                               .maxThreadsPerMultiprocessor = sm->threads,
                               .regsPerBlock = sm->registers,
                               .regsPerMultiprocessor = sm->registers,
                               .warpSize = 32,
                               .sharedMemPerBlock = FREE_SHARED_BYTES,
                               .sharedMemPerMultiprocessor = (size_t)sm->shared_bytes,
                               .numSms = 1,
                               .sharedMemPerBlockOptin = (size_t)sm->shared_per_block,
                               .reservedSharedMemPerBlock = (size_t)sm->shared_reserved};
}

/* Half of the blocks are small, so that each limit is met. */
static struct block_needs random_block(const struct sm_limits *sm, int n, uint64_t *seed)
{
    const int less = n % 2 ? 1 : 16;
    return (struct block_needs){
        .threads = random_between(seed, 1, MOST_THREADS_PER_BLOCK / (n % 3 ? 4 : 1)),
        .registers = random_between(seed, 1, MOST_REGISTERS_PER_THREAD / (n % 5 ? 2 : 1)),
        .shared_bytes = random_between(seed, 1, (int)sm->shared_per_block / less)};
}

static int print_block(const struct sm_limits *sm, const struct block_needs *needs)
{
    const cudaOccDeviceProp properties = properties_of(sm);
    const cudaOccDeviceState state = {.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED};
    const cudaOccFuncAttributes attributes = {.maxThreadsPerBlock = MOST_THREADS_PER_BLOCK,
                                              .numRegs = needs->registers,
                                              .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
                                              .maxDynamicSharedSizeBytes =
                                                  (size_t)sm->shared_per_block,
                                              .numBlockBarriers = 1};
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                                needs->threads, (size_t)needs->shared_bytes))
        return EXIT_FAILURE;
    printf("%d,%d,%d,%d,%" PRId64 ",%d,%d,%d,%d\n", sm->major, sm->minor, needs->threads,
           needs->registers, needs->shared_bytes, result.activeBlocksPerMultiprocessor,
           result.blockLimitWarps, result.blockLimitRegs, result.blockLimitSharedMem);
    return EXIT_SUCCESS;
}

int main(void)
{
    static const int capabilities[][2] = {{7, 0}, {7, 5}, {8, 0},  {8, 6},
                                          {8, 9}, {9, 0}, {10, 0}, {12, 0}};
    uint64_t seed = 1;
    printf("# cuda_occupancy.h of CUDA %d.%d, random blocks: build/cuda/gpu_calculator\n",
           CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    printf("major,minor,threads,registers,shared,blocks,by_warps,by_registers,by_shared\n");
    for (int i = 0; i < 8; i++) {
        const struct sm_limits *sm = sm_limits_find(capabilities[i][0], capabilities[i][1]);
        for (int n = 0; n < BLOCKS_EACH; n++) {
            const struct block_needs needs = random_block(sm, n, &seed);
            if (print_block(sm, &needs))
                return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
