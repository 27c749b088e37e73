#include "l2_side_kernels.h"

#include "cuda/error.h"

enum { LINE_WORDS = 32, TRIES = 5, SEARCHERS = 1056, THREADS = 256 };

static __device__ int this_sm()
{
    int sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

static __global__ void where(int *sms)
{
    if (threadIdx.x == 0)
        sms[blockIdx.x] = this_sm();
}

/* The first try brings the address's translation. */
static __device__ int fastest(unsigned *word)
{
    int best = INT32_MAX;
    for (int n = 0; n < TRIES; n++) {
        const int start = clock();
        if (atomicAdd(word, 0) == 1) /* never; but the clock is read after the value has come */
            return 0;
        const int cycles = clock() - start;
        if (n > 0)
            best = min(best, cycles);
    }
    return best;
}

/* A thread of each block that comes to run on that SM measures; the fastest counts. */
static __global__ void distance(int *cycles, int sm, unsigned *memory, int lines)
{
    if (this_sm() != sm || threadIdx.x != 0)
        return;
    for (int line = 0; line < lines; line++)
        atomicMin(cycles + line, fastest(memory + (int64_t)line * LINE_WORDS));
}

enum status launch_where(int *sms, int blocks, struct error *error)
{
    where<<<blocks, THREADS>>>(sms);
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}

enum status launch_distance(int *cycles, int sm, void *memory, int lines, struct error *error)
{
    CUDA_TRY(cudaMemset(cycles, 0x7f, (size_t)lines * sizeof *cycles), error);
    distance<<<SEARCHERS, THREADS>>>(cycles, sm, (unsigned *)memory, lines);
    CUDA_TRY(cudaGetLastError(), error);
    return STATUS_OK;
}
