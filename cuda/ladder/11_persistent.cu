/* Step 11: as many blocks as SMs, each with many tiles of queries.
 *
 * Idea: a block of step 10 begins with nothing in shared memory and nothing for the tensor
 * cores, and ends with O on its way out: some 4000 clocks a tile of queries in which products
 * wait. Here blocks stay and take the next tile of queries, longest first, from a counter in
 * HBM: its first keys and its queries are loaded while the last ones are worked on, and O
 * leaves beside them (persistent.h). Warpgroups need not end a tile together: with a causal
 * mask, or where the last tile of queries is not full, one has less to do than another.
 *
 * Predicted: at N = 1024 a tile of queries takes some 20000 clocks, so 1.1 to 1.2; nothing at
 * N = 16384.
 * Measured, over step 10: for d = 128 1.14 at N = 1024, 1.05 at 4096, 1.02 at 16384, causal
 * 1.16, 1.08, 1.02; for d = 64 1.11, 1.01, 0.98, causal 1.20, 1.03, 0.99; for d = 256, where
 * there is no room for O beside Qi, 1.00. The number of the next tile must be taken late: taken
 * when its predecessor begins, a block may end up with two long ones, 0.88 at N = 16384 with a
 * causal mask and d = 256.
 *
 * Command: make ladder-bench
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
