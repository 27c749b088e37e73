/* Step 12: one exponential in 16 by multiply-adds.
 *
 * Idea: FlashAttention-4's. ex2 runs at 16 a clock an SM: for d = 64 that takes as long as
 * the products, for d = 128 half as long. A polynomial on the pipes of the multiply-adds
 * (exp2_software() in exp2.h) relieves it of a share.
 *
 * Predicted: 1.02 for d = 64 and nothing else, as only there ex2 is a bound. An exponential by
 * multiply-adds is ten instructions where ex2 is one, and issuing them is not free either: a
 * share of 1 in 16 adds 0.6 to some 6 instructions a score.
 * Measured, over step 11: 0.99 for d = 128, 0.99 to 1.00 for d = 64, 1.00 for d = 256. A share
 * of 1 in 8 costs 3 to 6 % for d = 128, one of 1 in 4 more everywhere. So ex2 is not what
 * bounds any of them.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/persistent.h"

template <int D> struct chosen;
template <> struct chosen<64> : persistent_shape<64, 3, 128, 4, 32, 160, true> {
    static constexpr int SOFTWARE = 1;
};
template <> struct chosen<128> : persistent_shape<128, 2, 128, 2, 24, 240, true> {
    static constexpr int SOFTWARE = 1;
};
template <> struct chosen<256> : persistent_shape<256, 2, 64, 2, 24, 240, false> {
    static constexpr int SOFTWARE = 1;
};

template <class T, int D> static struct kernel kernel_of()
{
    return persistent_kernel<T, chosen<D>>();
}

LADDER_STEP(exp2, "12_exp2", LONGEST_FIRST | COPY_ENGINE | PERSISTENT)
