/* exp in fp32 that a compiler can vectorise: software exp, as FlashAttention-4 computes a share
 * of its exponentials in software because the hardware's exp unit is scarce.
 *
 * Method: Cody-Waite range reduction x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial for
 * e^r, and 2^n put together from exponent bits. The polynomial 1 + r + r^2 q(r), q of degree 4,
 * is the minimax one (Remez, relative error 3.1e-9); with fp32 rounding the result is within
 * 2 units in the last place of exp over the whole range, subnormal results included.
 * exp(-inf) = 0 exactly, exp(NaN) = NaN, overflow gives inf.
 */
#ifndef FLASHLAB_OPS_EXP_H
#define FLASHLAB_OPS_EXP_H

#include <stdint.h>
#include <string.h>

/* 2^n for -126 <= n <= 127, from its bits. */
static inline float exp_power_of_two(int32_t n)
{
    const uint32_t bits = (uint32_t)(n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline float exp_f32(float x)
{
    /* Beyond these exp is 0 or inf in fp32. NaN fails both comparisons and passes through. */
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    /* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. */
    const float shift = 12582912.0f;
    const float shifted = x * 1.44269504f + shift;
    const float n = shifted - shift;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    const int32_t exponent = bits - 0x4b400000;
    /* ln 2 in two parts, the first short enough that n times it is exact. */
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float q = 0.00138144670593f;
    q = q * r + 0.00836878041118f;
    q = q * r + 0.0416683942109f;
    q = q * r + 0.166665201078f;
    q = q * r + 0.499999934125f;
    const float p = 1.0f + (r + r * r * q);
    /* Two factors, so that subnormal results and 2^128 need no special case. */
    const int32_t half = exponent >> 1;
    return p * exp_power_of_two(half) * exp_power_of_two(exponent - half);
}

#endif
