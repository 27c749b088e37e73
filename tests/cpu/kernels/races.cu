/* A block of 64 threads that does what it is told with words of shared memory. */
#include "cuda/memory.h"
#include "tests/cpu/kernels/own.h"

static __global__ void follow(const struct script *script, Global<float> x)
{
    __shared__ float s[SCRIPT_WORDS];
    const int thread = (int)threadIdx.x;
    float sum = 0.0f;
    if (thread < SCRIPT_WORDS)
        s[thread] = 0.0f;
    __syncthreads();
    for (int step = 0; step < SCRIPT_STEPS; step++) {
        const struct script_access access = script->access[step][thread];
        switch (script->step[step]) {
        case STEP_BLOCK_BARRIER:
            __syncthreads();
            break;
        case STEP_WARP_BARRIER:
            __syncwarp();
            break;
        case STEP_ACCESSES:
            if (access.way == SCRIPT_LOAD)
                sum += s[access.word];
            if (access.way == SCRIPT_LOAD4) {
                float four[4];
                load4(four, &s[access.word / 4 * 4]);
                sum += four[0];
            }
            if (access.way == SCRIPT_STORE)
                s[access.word] = sum;
            if (access.way == SCRIPT_ATOMIC)
                atomicAdd(&s[access.word], 1.0f);
        }
    }
    x[thread] = sum;
}

void launch_script(const struct script *script, float *x)
{
    follow<<<1, 64>>>(script, x);
}
