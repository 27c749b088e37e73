#include "common/tolerance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

/* One rounding to nearest of a result x errs by at most relative * |x|, or by absolute where
 * the dtype's values are evenly spaced around zero. An implementation that stores its result in
 * the dtype cannot promise less, however it computes; and where the plain version's largest
 * error is zero by luck (one key, equal values), this is all there is.
 *
 * F32 has four roundings: there the arithmetic rounds as coarsely as the store, and the sum of
 * O, the sum l, 1/l and the product with it are rounded one after the other; likewise S, l,
 * log l and their sum for the LSE. In the other dtypes these are in fp32, far below the
 * store's. Of some 10,000 random problems the neediest took 3.7. */
static const struct {
    double roundings;
    double relative; /* half the distance from 1 to the next value */
    double absolute; /* half the smallest subnormal */
} floors[DTYPE_COUNT] = {
    [DTYPE_F32] = {4, 0x1p-24, 0x1p-150}, /* 23 bits of mantissa, 2^-149 */
    [DTYPE_F16] = {1, 0x1p-11, 0x1p-25},  /* 10 bits, 2^-24 */
    [DTYPE_BF16] = {1, 0x1p-8, 0x1p-134}, /* 7 bits, 2^-133 */
    [DTYPE_E4M3] = {1, 0x1p-4, 0x1p-10},  /* 3 bits, 2^-9 */
    [DTYPE_E5M2] = {1, 0x1p-3, 0x1p-17},  /* 2 bits, 2^-16 */
};

static double floor_of(enum dtype dtype, double magnitude)
{
    const double once = fmax(floors[dtype].relative * magnitude, floors[dtype].absolute);
    return floors[dtype].roundings * once;
}

/* NaN for NaN, an infinity for the same infinity, a finite number for a finite number. */
static bool same_kind(double got, double want)
{
    if (isnan(want))
        return isnan(got);
    if (isinf(want))
        return got == want;
    return isfinite(got);
}

/* Largest |x - want| where want is finite; infinite if x is not. */
static double largest_error(const float *x, const double *want, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(want[i]))
            continue;
        const double error = fabs((double)x[i] - want[i]);
        if (!(error <= largest))
            largest = isfinite(error) ? error : INFINITY;
    }
    return largest;
}

struct verdict judge(enum dtype dtype, const float *got, const float *plain, const double *want,
                     size_t count)
{
    struct verdict verdict = {.misplaced = -1};
    double magnitude = 0;
    for (size_t i = count; i-- > 0;) {
        if (!same_kind((double)got[i], want[i]))
            verdict.misplaced = (long)i;
        if (isfinite(want[i]) && fabs(want[i]) > magnitude)
            magnitude = fabs(want[i]);
    }
    verdict.error = largest_error(got, want, count);
    verdict.plain = largest_error(plain, want, count);
    verdict.floor = floor_of(dtype, magnitude);
    /* A plain version that overflowed is no yardstick: its infinite error would allow all. */
    verdict.right = count > 0 && verdict.misplaced < 0 && isfinite(verdict.plain) &&
                    verdict.error <= 2 * verdict.plain + verdict.floor;
    return verdict;
}

void yardsticks_make(struct yardsticks *yardsticks, const struct problem *p)
{
    struct problem f32 = *p;
    f32.a.dtype = DTYPE_F32;
    plain_attention(&yardsticks->whole, p, p->a.seqlen_k);
    plain_attention(&yardsticks->in_passes, p, p->a.block_k);
    plain_attention(&yardsticks->f32, &f32, p->a.seqlen_k);
}

void yardsticks_follow_blocks(struct yardsticks *yardsticks, const struct problem *p)
{
    answer_free(&yardsticks->in_passes);
    plain_attention(&yardsticks->in_passes, p, p->a.block_k);
}

void yardsticks_free(struct yardsticks *yardsticks)
{
    answer_free(&yardsticks->whole);
    answer_free(&yardsticks->in_passes);
    answer_free(&yardsticks->f32);
}

struct verdict judge_o(const struct attention *a, const struct variant *variant, const float *o,
                       const struct yardsticks *yardsticks, const struct truth *truth)
{
    const bool in_passes = variant->algorithm == ALGORITHM_FLASH1;
    const struct answer *plain = in_passes ? &yardsticks->in_passes : &yardsticks->whole;
    return judge(a->dtype, o, plain->o, truth->o, count_o(a));
}

struct verdict judge_lse(const struct attention *a, const struct variant *variant,
                         const float *lse, const struct yardsticks *yardsticks,
                         const struct truth *truth)
{
    const bool rounds_s = variant->algorithm == ALGORITHM_STANDARD;
    const struct answer *plain = rounds_s ? &yardsticks->whole : &yardsticks->f32;
    return judge(DTYPE_F32, lse, plain->lse, truth->lse, count_lse(a));
}

static void assert_verdict(const char *what, const char *output, const struct attention *a,
                           const struct verdict *verdict)
{
    if (verdict->misplaced >= 0)
        fail_msg("%s, %s: element %ld of %s is NaN or infinite where float64 is not, or not "
                 "where it is",
                 what, attention_text(a), verdict->misplaced, output);
    if (!verdict->right)
        fail_msg("%s, %s: %s is off by %g; the plain version by %g, rounding allows %g", what,
                 attention_text(a), output, verdict->error, verdict->plain, verdict->floor);
}

void assert_right(const struct attention *a, const struct variant *variant,
                  const struct answer *answer, const struct yardsticks *yardsticks,
                  const struct truth *truth)
{
    const struct verdict o = judge_o(a, variant, answer->o, yardsticks, truth);
    const struct verdict lse = judge_lse(a, variant, answer->lse, yardsticks, truth);
    assert_verdict(variant->name, "O", a, &o);
    assert_verdict(variant->name, "LSE", a, &lse);
}
