/* Element types: sizes, names, and conversion from and to float.
 *
 * Interface:
 *   HBM tensors hold encoded elements; tiles hold floats that are exactly representable in
 *   their dtype. dtype_encode() and dtype_decode() cross between the two, dtype_round() does
 *   both at once, which is what a cast to the dtype and back does on a GPU.
 *
 * All conversions round to nearest, ties to even, with subnormals. NaN stays NaN. Values beyond
 * the range become infinity in F16 and BF16 (IEEE 754) and the largest finite value in E4M3
 * and E5M2 (saturating mode of the OCP 8-bit Floating Point Specification 1.0, which maps
 * infinity to the largest finite value too).
 *
 *     const float x[3] = {0.1f, 1000.0f, -INFINITY};
 *     float y[3];
 *     dtype_round(y, DTYPE_E4M3, x, 3);      // y: 0.1015625, 448, -448
 *     uint8_t codes[3];
 *     dtype_encode(codes, DTYPE_E4M3, x, 3); // codes: 0x1D, 0x7E, 0xFE
 *
 * Encoded elements are stored as uint8_t, uint16_t or float in the host's byte order, so their
 * address must be a multiple of dtype_bytes(). A NaN keeps its sign; in the formats below 32
 * bits it becomes the quiet NaN with all other bits set, in F32 it keeps every bit.
 */
#ifndef FLASHLAB_CORE_DTYPE_H
#define FLASHLAB_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum dtype { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_E4M3, DTYPE_E5M2, DTYPE_COUNT };

/* Size of one element in bytes: 4, 2, 2, 1, 1. */
int dtype_bytes(enum dtype dtype);

/* "f32", "f16", "bf16", "e4m3", "e5m2". The string is static. */
const char *dtype_name(enum dtype dtype);

/* Finds the dtype of that name; false, with *dtype untouched, if there is none. */
bool dtype_parse(enum dtype *dtype, const char *name);

/* The distance between 1 and the next value: 2^-23, 2^-10, 2^-7, 2^-3, 2^-2. */
float dtype_epsilon(enum dtype dtype);

/* dst[count] encoded elements <- src[count] floats, rounded. They must not overlap. */
void dtype_encode(void *dst, enum dtype dtype, const float *src, size_t count);

/* dst[count] floats <- src[count] encoded elements; exact. They must not overlap. */
void dtype_decode(float *dst, enum dtype dtype, const void *src, size_t count);

/* dst[count] <- src[count] rounded to the dtype, equal in every bit to encoding and decoding
 * again. dst may be src. */
void dtype_round(float *dst, enum dtype dtype, const float *src, size_t count);

#ifdef __cplusplus
}
#endif

#endif
