/* The kernels of gpu_rates.c: each keeps one unit of the SMs busy and nothing else. */
#ifndef FLASHLAB_CUDA_TESTS_RATE_KERNELS_H
#define FLASHLAB_CUDA_TESTS_RATE_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rate {
    RATE_FP32,           /* fused multiply-adds, eight chains a thread */
    RATE_EXP2,           /* ex2.approx */
    RATE_GLOBAL,         /* loads past L1 of an array that all SMs read */
    RATE_GLOBAL_LATENCY, /* one thread, each load's address from the one before, past L1 */
    RATE_SHARED_LATENCY, /* the same in shared memory */
};

enum { RATE_THREADS = 1024, RATE_BLOCKS_PER_SM = 2, CHASE_STEP_BYTES = 256 };

/* One launch: blocks of RATE_THREADS, two an SM (latencies: one thread). */
struct rate_launch {
    enum rate rate;
    int sms;
    int rounds;      /* of what a thread does */
    void *memory;    /* device: bytes of it, for the global ones */
    int64_t bytes;   /* a multiple of 16 RATE_THREADS */
    int64_t *clocks; /* device: those of a chase of addresses */
};

/* Puts it on the default stream. Latencies expect memory as rate_prepare() leaves it. */
enum status launch_rate(const struct rate_launch *launch, struct error *error);

/* Fills memory with a ring of addresses CHASE_STEP_BYTES apart. */
enum status rate_prepare(const struct rate_launch *launch, struct error *error);

/* Operations of one launch: multiply-adds, results, bytes read, or dependent loads.
 */
double rate_amount(const struct rate_launch *launch);

#ifdef __cplusplus
}
#endif

#endif
