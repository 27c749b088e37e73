/* Step 11: as many blocks as SMs, each with many tiles of queries.
 */
#include "cuda/ladder/persistent.h"

template <int D> struct chosen;
template <> struct chosen<64> : persistent_shape<64, 3, 128, 4, 32, 160, true> {
};
template <> struct chosen<128> : persistent_shape<128, 2, 128, 2, 24, 240, true> {
};
template <> struct chosen<256> : persistent_shape<256, 2, 64, 2, 24, 240, false> {
};

template <class T, int D> static struct kernel kernel_of()
{
    return persistent_kernel<T, chosen<D>>();
}

LADDER_STEP(persistent, "11_persistent", LONGEST_FIRST | COPY_ENGINE | PERSISTENT)
