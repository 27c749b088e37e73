/* Hardware counters recorded on a GPU: the measured column where no GPU is at hand.
 *
 * lessons/recordings/h200_counters.csv: forward and backward passes of two production attention
 * implementations (PyTorch's FlashAttention-2 and cuDNN), fp16, counted by Nsight Compute on
 * one NVIDIA H200. lessons/recordings/README.md says how.
 */
#ifndef FLASHLAB_LESSONS_RECORDING_H
#define FLASHLAB_LESSONS_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

struct recorded_kernel {
    char implementation[64];
    char phase[32];
    int batch, heads, seqlen, head_dim;
    bool causal;
    int block_q; /* 0 where the implementation does not say */
    int64_t global_load_sectors, global_store_sectors, tma_load_bytes, tma_store_bytes;
    int64_t dram_bytes_read, dram_bytes_written;
    double duration_us;
};

/* Reads all rows into *kernels (owned by the caller, free()) and returns their number; -1 with
 * *error set if the file is missing or malformed. */
int recording_read(struct recorded_kernel **kernels, struct error *error);

#endif
