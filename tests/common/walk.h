/* Bytes that the attention algorithms move, added up by walking their loops as the papers print
 * them: nothing is computed, and nothing is taken from sim/kernels or sim/models.
 */
#ifndef FLASHLAB_TESTS_WALK_H
#define FLASHLAB_TESTS_WALK_H

#include <stdbool.h>

#include "core/attention.h"
#include "core/traffic.h"

/* Bytes of every tensor and direction, all batches and heads. Sectors and FLOPs stay 0. */
struct account walk_bytes(enum algorithm algorithm, const struct attention *a, bool tma);

#endif
