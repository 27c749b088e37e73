/* The kernels of gpu_l2_curves.c: simple ways to go through memory. */
#ifndef FLASHLAB_CUDA_TESTS_L2_CURVE_KERNELS_H
#define FLASHLAB_CUDA_TESTS_L2_CURVE_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks divide the bytes among them: each has a stretch of its own, unless it says all, or in
 * order, where they take turns and go through memory together. */
enum l2_pattern {
    L2_READ_OWN,       /* each block reads its stretch, pass after pass */
    L2_READ_ALL,       /* each block reads all of it, pass after pass */
    L2_WRITE,          /* each block writes its stretch, pass after pass */
    L2_UPDATE,         /* each block reads and writes its stretch, pass after pass */
    L2_ACCUMULATE,     /* each block reads its stretch and adds it to one elsewhere */
    L2_WRITE_READ_OWN, /* writes bytes, then reads other_bytes elsewhere */
    L2_WRITE_READ_ALL, /* the same, but each block reads all of other_bytes */
    L2_COPY,           /* reads bytes elsewhere and writes as many */
    L2_COPY_IN_ORDER,
    L2_ADD, /* reads twice as many bytes elsewhere and writes their sums */
    L2_ADD_IN_ORDER,
    L2_WAIT, /* touches nothing for so many nanoseconds as bytes says */
};

struct l2_curve_point {
    enum l2_pattern pattern;
    int blocks, passes;
    int64_t bytes, other_bytes; /* multiples of 16 */
};

/* Puts the point on the default stream. memory: device, bytes; other: device, the larger of
 * twice the bytes and other_bytes. L2_WAIT needs neither. */
enum status launch_l2_curve_point(const struct l2_curve_point *point, void *memory, void *other,
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
