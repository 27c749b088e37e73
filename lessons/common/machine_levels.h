/* The levels of a machine's memory as a table: where they are, how large, how fast. */
#ifndef FLASHLAB_LESSONS_MACHINE_LEVELS_H
#define FLASHLAB_LESSONS_MACHINE_LEVELS_H

#include "core/machine.h"

/* Bytes a second of the shared memory of all SMs: 32 banks of 4 bytes a clock each. 0: the
 * clock is not known, or the machine has no warps, and its SRAM no such banks. */
double machine_sram_bytes_per_second(const struct machine *m);

/* Bytes a second between the registers and the fp32 units of all SMs at their peak: a fused
 * multiply-add, two FLOPs, reads three and writes one. */
double machine_register_bytes_per_second(const struct machine *m);

/* Registers, SRAM, L2 and HBM, a line each under a heading, at most 80 columns; what is not
 * known is "unknown". Returns buffer. */
enum { MACHINE_LEVELS_SIZE = 1024 };
char *machine_levels_format(char buffer[MACHINE_LEVELS_SIZE], const struct machine *m);

/* The machine of the table whose name the GPU's ends in ("NVIDIA H200"); NULL if there is none.
 */
const struct machine *machine_of_gpu(const char *gpu);

#endif
