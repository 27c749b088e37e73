/* What the thread blocks of two production implementations of attention move, FlashAttention-2
 * and cuDNN, for the rows of lessons/recordings/h200_counters.csv: for the model of L2.
 *
 * Their moves are written down here, not simulated: both start at the last K/V tile and go
 * down, and FlashAttention-2 spills registers. Bytes read and written agree with the recorded
 * counters of the SMs' requests.
 */
#ifndef FLASHLAB_TESTS_PRODUCTION_H
#define FLASHLAB_TESTS_PRODUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/csv.h"
#include "core/moves.h"
#include "models/l2_traffic.h"

enum production_phase { PHASE_FORWARD, PHASE_DELTA, PHASE_MAIN, PHASE_CONVERT };

/* One kernel of either implementation. */
struct production {
    enum production_phase phase;
    bool cudnn, causal, writes_lse;
    int64_t planes, seqlen, row_bytes;
    int block_q, block_k;
    int64_t spilled_bytes; /* registers of one thread block, stored for every K/V tile */
    int64_t spilled_at_mask_bytes; /* others, stored where the mask acts */
};

struct production production_of(const struct csv *table, int row);

/* Replays the kernel on an H200 whose caches are cold, as Nsight Compute leaves them. sample:
 * of struct l2_options. */
struct l2_launch production_replay(const struct production *p, int sample);

#endif
