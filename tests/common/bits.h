/* Whether two machines have computed the same bits, without sending all of them. */
#ifndef FLASHLAB_TESTS_BITS_H
#define FLASHLAB_TESTS_BITS_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of the floats' bits, one word after the other. */
uint64_t bits_hash(const float *x, size_t count);

/* The bits of a float, and back. */
uint32_t bits_of(float x);
float bits_to_float(uint32_t bits);

#endif
