/* Shared memory's banks: how often one request of a warp passes over them.
 *
 * 32 banks of 4 bytes; in one pass (wavefront) each bank gives or takes one word. Lanes that
 * want the same word share it. Requests of 8 and 16 bytes a lane are served by halves and
 * quarters of the warp, with one exception among loads, below. Checked against the counters of
 * an H200 for every kind of request: tests/test_banks.c.
 */
#ifndef FLASHLAB_MODELS_BANKS_H
#define FLASHLAB_MODELS_BANKS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BANK_LANES = 32, BANKS = 32, BANK_BYTES = 4 };

/* Passes that a request takes. offset: byte offsets of the lanes in shared memory, multiples of
 * bytes; active: bit k is set if lane k takes part, other lanes' offsets are not read. bytes:
 * 4, 8 or 16 a lane; 1 and 2 count as parts of their word. No lanes: 0. */
int bank_wavefronts(const uint32_t offset[BANK_LANES], uint32_t active, int bytes,
                    bool is_load);

/* Those that it would take if no two words shared a bank: conflicts are what is beyond. */
int bank_least_wavefronts(const uint32_t offset[BANK_LANES], uint32_t active, int bytes,
                          bool is_load);

/* Passes of one ldmatrix: matrices (1, 2 or 4) of 8 rows of 16 bytes, row r of matrix m at
 * offset[8 * m + r], multiples of 16. A matrix fills all banks once, so it takes one pass if no
 * two of its rows want different words of a bank; matrices are loaded one after the other. */
int bank_matrix_wavefronts(const uint32_t offset[BANK_LANES], int matrices);

#ifdef __cplusplus
}
#endif

#endif
