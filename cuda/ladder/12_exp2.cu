/* Step 12: one exponential in 16 without the unit for exponentials.
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
