/* Element types: what their bits mean, and conversion from and to float.
 *
 * One table describes every format; the limits that the loops need are derived from it, and one
 * rounding rule serves them all. Three steps, each on the bits of one float:
 *
 *   round_bits    float -> the float nearest to it among the format's values
 *   pack_bits     such a float -> its code; exact
 *   unpack_bits   code -> float; exact
 *
 * encode is pack after round, decode is unpack, and dtype_round is round alone: pack and unpack
 * undo each other, so it equals decode(encode(x)) to the bit without going through the code.
 * There are selects but no branches, so that compilers vectorise the loops.
 *
 * F32 is copied, so that it keeps every bit, those of a NaN too. In the other formats a NaN
 * becomes the quiet NaN of its sign whose other bits are all ones, the one NaN that E4M3 has.
 *
 * Sources: IEEE 754-2019 (binary16, roundTiesToEven); OCP 8-bit Floating Point Specification
 * (OFP8) 1.0 (E4M3, E5M2, saturating conversion); bfloat16 is the upper half of binary32.
 * Rounding relies on the default floating-point environment: nearest even, and subnormals not
 * flushed.
 */
#include "core/dtype.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/status.h"

enum { FLOAT_MANTISSA_BITS = 23, FLOAT_BIAS = 127 };

#define SIGN_BIT 0x80000000u
#define INFINITY_BITS 0x7f800000u /* every float above it, without its sign, is a NaN */
#define QUIET_BIT 0x00400000u

struct format {
    const char *name;
    int bytes;
    int exponent_bits;
    int mantissa_bits;
    int bias;
    bool saturates; /* what overflows becomes max, not infinity */
    float max;      /* the largest finite value; the next code is infinity, in E4M3 NaN */
};

static const struct format formats[DTYPE_COUNT] = {
    [DTYPE_F32] = {"f32", 4, 8, 23, 127, false, 0x1.fffffep127f},
    [DTYPE_F16] = {"f16", 2, 5, 10, 15, false, 65504.0f},
    [DTYPE_BF16] = {"bf16", 2, 8, 7, 127, false, 0x1.fep127f},
    [DTYPE_E4M3] = {"e4m3", 1, 4, 3, 7, true, 448.0f},
    [DTYPE_E5M2] = {"e5m2", 1, 5, 2, 15, true, 57344.0f},
};

static const struct format *format_of(enum dtype dtype)
{
    CHECK((unsigned)dtype < DTYPE_COUNT, "dtype %d does not exist", (int)dtype);
    return &formats[dtype];
}

int dtype_bytes(enum dtype dtype)
{
    return format_of(dtype)->bytes;
}

const char *dtype_name(enum dtype dtype)
{
    return format_of(dtype)->name;
}

bool dtype_parse(enum dtype *dtype, const char *name)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

float dtype_epsilon(enum dtype dtype)
{
    return ldexpf(1.0f, -format_of(dtype)->mantissa_bits);
}

/* What the loops need of a format of 8 or 16 bits. Values are bits of a float without sign. */
struct limits {
    int shift;           /* mantissa bits that a float has and the format has not */
    uint32_t rebias;     /* difference of the biases, in place in a float */
    uint32_t magic;      /* the float whose last bit weighs the smallest subnormal */
    uint32_t min_normal; /* smallest value with an implicit leading 1 */
    uint32_t max;        /* largest finite value */
    uint32_t overflow;   /* what larger values become */
    uint32_t nan;        /* what NaN becomes */
    int sign_shift;      /* from a float's sign bit down to the code's */
    uint32_t code_mask;  /* a code without its sign */
    uint32_t first_normal_code, max_code;
};

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static struct limits limits_of(const struct format *f)
{
    const int shift = FLOAT_MANTISSA_BITS - f->mantissa_bits;
    const uint32_t rebias = (uint32_t)(FLOAT_BIAS - f->bias) << FLOAT_MANTISSA_BITS;
    /* The smallest subnormal is 2^(1 - bias - mantissa_bits); see round_bits. */
    const int magic_exponent = 1 - f->bias - f->mantissa_bits + FLOAT_MANTISSA_BITS;
    return (struct limits){
        .shift = shift,
        .rebias = rebias,
        .magic = (uint32_t)(magic_exponent + FLOAT_BIAS) << FLOAT_MANTISSA_BITS,
        .min_normal = rebias + (1u << FLOAT_MANTISSA_BITS),
        .max = bits_of(f->max),
        .overflow = f->saturates ? bits_of(f->max) : INFINITY_BITS,
        .nan = ~SIGN_BIT >> shift << shift,
        .sign_shift = 32 - 8 * f->bytes,
        .code_mask = (1u << (f->exponent_bits + f->mantissa_bits)) - 1,
        .first_normal_code = 1u << f->mantissa_bits,
        .max_code = (bits_of(f->max) - rebias) >> shift,
    };
}

/* Nearest value of the format, ties to even.
 *
 * Normal values: adding just under half of the last kept bit's weight, plus that bit, carries
 * into it exactly when nearest-even rounds up. A carry out of the mantissa raises the exponent.
 * Subnormal values: float addition to magic, whose last bit weighs the smallest subnormal, has
 * the hardware round at that bit; the subtraction is exact. */
static inline uint32_t round_bits(uint32_t bits, const struct limits *l)
{
    const uint32_t magnitude = bits & ~SIGN_BIT;
    const uint32_t half = (1u << l->shift) >> 1;
    const uint32_t odd = magnitude >> l->shift & 1;
    const uint32_t normal = (magnitude + half - 1 + odd) >> l->shift << l->shift;
    const float magic = float_of(l->magic);
    const uint32_t subnormal = bits_of((float_of(magnitude) + magic) - magic);

    uint32_t rounded = magnitude < l->min_normal ? subnormal : normal;
    rounded = rounded > l->max ? l->overflow : rounded;
    rounded = magnitude > INFINITY_BITS ? l->nan : rounded;
    return rounded | (bits & SIGN_BIT);
}

/* The code of a float that round_bits returned. The sum with magic holds a subnormal's code in
 * its last bits. Infinity and NaN keep the top of their bits: all ones in the exponent. */
static inline uint32_t pack_bits(uint32_t bits, const struct limits *l)
{
    const uint32_t magnitude = bits & ~SIGN_BIT;
    const uint32_t rebias = magnitude >= INFINITY_BITS ? 0 : l->rebias;
    const uint32_t normal = (magnitude - rebias) >> l->shift;
    const uint32_t subnormal = bits_of(float_of(magnitude) + float_of(l->magic));
    const uint32_t code = magnitude < l->min_normal ? subnormal : normal;
    return (code & l->code_mask) | (bits & SIGN_BIT) >> l->sign_shift;
}

/* The bits of the float that a code stands for. A NaN is made quiet; the code next to max need
 * not be: it is infinity, or the NaN of E4M3, which is quiet as it is. */
static inline uint32_t unpack_bits(uint32_t code, const struct limits *l)
{
    const uint32_t low = code & l->code_mask;
    const uint32_t special = low > l->max_code ? INFINITY_BITS : 0;
    const uint32_t quiet = low > l->max_code + 1 ? QUIET_BIT : 0;
    const uint32_t normal = ((low << l->shift) + l->rebias) | special | quiet;
    const uint32_t subnormal = bits_of(float_of(l->magic + low) - float_of(l->magic));
    const uint32_t magnitude = low < l->first_normal_code ? subnormal : normal;
    return magnitude | (code << l->sign_shift & SIGN_BIT);
}

static void encode_16(uint16_t *restrict dst, const struct limits l, const float *restrict src,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (uint16_t)pack_bits(round_bits(bits_of(src[i]), &l), &l);
}

static void encode_8(uint8_t *restrict dst, const struct limits l, const float *restrict src,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (uint8_t)pack_bits(round_bits(bits_of(src[i]), &l), &l);
}

static void decode_16(float *restrict dst, const struct limits l, const uint16_t *restrict src,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = float_of(unpack_bits(src[i], &l));
}

static void decode_8(float *restrict dst, const struct limits l, const uint8_t *restrict src,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = float_of(unpack_bits(src[i], &l));
}

/* Copies in pieces: for more than a few KB glibc's memcpy turns to string instructions, which
 * start slowly and cost a tile of 16 KB about a tenth of its time. */
static void copy_floats(void *dst, const void *src, size_t count)
{
    enum { PIECE = 2048 };
    const size_t bytes = count * sizeof(float);
    for (size_t at = 0; at < bytes; at += PIECE)
        memcpy((char *)dst + at, (const char *)src + at,
               bytes - at < PIECE ? bytes - at : PIECE);
}

void dtype_encode(void *dst, enum dtype dtype, const float *src, size_t count)
{
    const struct format *f = format_of(dtype);
    if (count == 0)
        return;
    if (dtype == DTYPE_F32)
        copy_floats(dst, src, count);
    else if (f->bytes == 2)
        encode_16(dst, limits_of(f), src, count);
    else
        encode_8(dst, limits_of(f), src, count);
}

void dtype_decode(float *dst, enum dtype dtype, const void *src, size_t count)
{
    const struct format *f = format_of(dtype);
    if (count == 0)
        return;
    if (dtype == DTYPE_F32)
        copy_floats(dst, src, count);
    else if (f->bytes == 2)
        decode_16(dst, limits_of(f), src, count);
    else
        decode_8(dst, limits_of(f), src, count);
}

void dtype_round(float *dst, enum dtype dtype, const float *src, size_t count)
{
    const struct format *f = format_of(dtype);
    /* Copy, then round in place: with one pointer in the loop it vectorises without a check for
     * overlap, which the usual call (dst == src) would fail. */
    if (dst != src && count > 0)
        memmove(dst, src, count * sizeof *dst);
    if (dtype == DTYPE_F32)
        return;
    const struct limits l = limits_of(f);
    for (size_t i = 0; i < count; i++)
        dst[i] = float_of(round_bits(bits_of(dst[i]), &l));
}
