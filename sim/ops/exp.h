/* exp in fp32 that a compiler can vectorise: software exp, as FlashAttention-4 computes a share
 * of its exponentials in software because the hardware's exp unit is scarce.
 *
 * For x <= 0, which is all that a softmax needs once the row maximum is subtracted. Method:
 * Cody-Waite range reduction x = n ln 2 + r with |r| <= ln 2 / 2, the minimax polynomial of
 * degree 6 for e^r (Remez, relative error 3.1e-9), and 2^n from its exponent bits. The result
 * is within 1.5 units in the last place of exp; results below the smallest normal number,
 * 2^-126, are 0. exp(0) = 1 and exp(-inf) = 0 exactly, exp(NaN) = NaN.
 */
#ifndef FLASHLAB_OPS_EXP_H
#define FLASHLAB_OPS_EXP_H

#include <stdint.h>
#include <string.h>

static inline float exp_f32(float x)
{
    /* Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum. */
    const float shift = 12582912.0f;
    const float shifted = x * 1.44269504f + shift;
    const float n = shifted - shift;
    /* ln 2 in two parts, the first short enough that n times it is exact. */
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    /* Pairs of terms side by side (Estrin): a shorter chain of dependent operations than
     * Horner, so that more elements are in flight. */
    const float r2 = r * r;
    const float terms23 = 0.166665201078f * r + 0.499999934125f;
    const float terms45 = 0.00836878041118f * r + 0.0416683942109f;
    const float p = (1.0f + r) + r2 * (terms23 + r2 * (terms45 + r2 * 0.00138144670593f));
    /* 2^n from its exponent bits. The bits of shift, all above its low 8, leave the word. */
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87.33654f ? 0.0f : p * power; /* ln 2^-126; NaN fails the comparison */
}

#endif
