/* What is counted: bytes and 32-byte sectors per tensor and direction, and FLOPs by kind.
 *
 * Interface:
 *   The simulator fills a struct account while thread blocks run; sim/models predicts the same
 *   struct from closed forms. account_equal() compares the two to the byte.
 *
 * Traffic is what the SMs request, which is what the FlashAttention papers call HBM accesses.
 * Sectors are what the hardware counters
 * l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st,red}.sum count for those requests: a warp's
 * request of 32 lanes counts each distinct 32-byte sector that it touches once.
 */
#ifndef FLASHLAB_CORE_TRAFFIC_H
#define FLASHLAB_CORE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SECTOR_BYTES = 32, WARP_LANES = 32, MAX_TENSORS = 16 };

enum direction {
    DIRECTION_READ,   /* HBM -> on-chip */
    DIRECTION_WRITE,  /* on-chip -> HBM */
    DIRECTION_REDUCE, /* atomic adds into HBM */
    DIRECTION_COUNT,
};

/* The ways between global memory (GM) and the buffers of an Ascend AI core, and between those:
 * core/ai_core.h. */
enum path {
    PATH_GM_TO_L1,
    PATH_GM_TO_UB,
    PATH_L1_TO_L0A,
    PATH_L1_TO_L0B,
    PATH_L0C_TO_GM,
    PATH_UB_TO_GM,
    PATH_L0C_TO_UB, /* a 910B has neither this way ... */
    PATH_UB_TO_L1,  /* ... nor this */
    PATH_COUNT,
};

struct amount {
    int64_t bytes;
    int64_t sectors;
};

/* One tensor's traffic, indexed by enum direction. */
struct traffic {
    struct amount of[DIRECTION_COUNT];
};

/* Operations by the unit that does them. A multiply and an add of a matrix product are two
 * matrix FLOPs. "exp" counts evaluations; "other" the remaining adds, multiplies, maxima,
 * divisions and logarithms. */
struct flops {
    int64_t matrix;
    int64_t other;
    int64_t exp;
};

/* Traffic of every tensor, and FLOPs, of one launch or of several added up. */
struct account {
    int tensor_count;
    struct {
        const char *name; /* not owned */
        struct traffic traffic;
    } tensor[MAX_TENSORS];
    struct flops flops;
};

/* The account's entry for that name, which is added, empty, if there is none yet. */
struct traffic *account_tensor(struct account *account, const char *name);

/* sum += account, tensor by tensor (matched by name). */
void account_add(struct account *sum, const struct account *account);

/* All tensors' traffic added up. */
struct traffic account_total(const struct account *account);

/* True if both have the same tensors with the same traffic, and the same FLOPs. A tensor
 * without traffic equals a missing one. */
bool account_equal(const struct account *a, const struct account *b);

#ifdef __cplusplus
}
#endif

#endif
