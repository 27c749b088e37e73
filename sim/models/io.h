/* Closed forms: what each attention algorithm moves and computes, derived from its loops on
 * paper, without running anything.
 *
 * Interface: io_predict() gives the same struct account that the simulator counts; the two must
 * be equal in every byte, sector and FLOP, tensor by tensor.
 *
 * In elements, for one head without a mask, N queries and keys, Tr = ceil(N / Br),
 * Tc = ceil(N / Bc):
 *
 *   naive                Q, K, V: N * N d each              O: N d
 *   standard             Q, K, V: N d                       O: N d    S, P: 2 N^2 each
 *   standard, tiled      Q: Tc N d   K, V: Tr N d           O: N d    S: 3 N^2   P: 2 N^2
 *   flash1               K, V: N d   Q: Tc N d              O: (2 Tc - 1) N d   l, m: (2 Tc -
 * 1) N flash2               Q: N d      K, V: Tr N d           O: N d
 *
 * and LSE: N for all but flash1 (whose l and m hold it). Sources: Dao et al. 2022, Algorithms 0
 * and 1 and Theorem 2; Dao 2023, Algorithm 1. Masks, ragged tiles, grouped heads, sectors and
 * boxes: see io.c.
 */
#ifndef FLASHLAB_MODELS_IO_H
#define FLASHLAB_MODELS_IO_H

#include <stdbool.h>

#include "core/attention.h"
#include "core/traffic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The account of one run of the algorithm. a has passed attention_check(). */
struct account io_predict(enum algorithm algorithm, const struct attention *a, bool tma);

/* The least any algorithm can move: Q, K and V read once, O written once, in bytes. */
int64_t io_compulsory_bytes(const struct attention *a);

#ifdef __cplusplus
}
#endif

#endif
