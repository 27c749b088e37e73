/* Coalescing: what one request of a warp to global memory becomes.
 *
 * Interface:
 *   int64_t address[COALESCING_LANES];
 *   const struct coalesced c = coalesced_request(address, 0xffffffff, 4);
 *   c.sectors, c.lines, 100.0 * c.bytes / (c.sectors * SECTOR_BYTES)      efficiency in percent
 *
 * Memory is moved in sectors of 32 bytes; four aligned ones are a line of the L1 cache, with
 * one tag. Lanes that touch the same sector share it, in whatever order their addresses are.
 * Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory".
 */
#ifndef FLASHLAB_MODELS_COALESCING_H
#define FLASHLAB_MODELS_COALESCING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COALESCING_LANES = 32, LINE_BYTES = 128 };

struct coalesced {
    int sectors; /* distinct sectors of 32 bytes: what is moved */
    int lines;   /* distinct lines of 128 bytes: tags that are looked up */
    int bytes;   /* that the active lanes asked for, each for its own */
};

/* address: byte addresses of the lanes, multiples of bytes; bit k of active: lane k takes part,
 * other lanes' addresses are not read. bytes: 1, 2, 4, 8 or 16 a lane. */
struct coalesced coalesced_request(const int64_t address[COALESCING_LANES], uint32_t active,
                                   int bytes);

#ifdef __cplusplus
}
#endif

#endif
