/* Step 14: Qi in registers, for the scores too.
 *
 * Idea: the first operand of wgmma may lie in registers. In step 13 each product of the scores
 * reads 16 columns of its warpgroup's Qi from shared memory, 2 KB, beside 4 KB of Kj, though Qi
 * stays the same for all keys. Here a warp reads its rows once, by ldmatrix. They take D / 4
 * registers a thread: for d = 128, two warpgroups have those 32, beside O, S and P. For d = 64,
 * three have not, and for d = 256 O leaves none. The place of Qi is free for the next one as
 * soon as it has been read.
 *
 * Predicted: a tile of 128 keys reads 160 KB of shared memory for 2048 clocks of products,
 * TMA writes 64 KB more: 112 of the 128 bytes a clock that there are. Without Qi it is 96, and
 * waits for shared memory get shorter: 1.05.
 * Measured, over step 13: 1.02 to 1.04 at all lengths, 1.02 times cuDNN at N = 4096 and 16384,
 * causal 1.09. The tensor cores are busy 79 % of the time at N = 16384, in step 13 76 %; there
 * are also a tenth fewer instructions, as wgmma wants one descriptor less.
 *
 * Command: make ladder-bench
 */
#include "cuda/ladder/persistent.h"

template <int D> struct chosen;
template <> struct chosen<64> : persistent_shape<64, 3, 128, 4, 32, 160, true> {
    static constexpr int SLACK = 8;
};
template <> struct chosen<128> : persistent_shape<128, 2, 128, 2, 24, 240, true> {
    static constexpr int SOFTWARE = 1, SLACK = 8;
    static constexpr bool Q_STAYS = true;
};
template <> struct chosen<256> : persistent_shape<256, 2, 64, 2, 24, 240, false> {
    static constexpr int SLACK = 8;
};

template <class T, int D> static struct kernel kernel_of()
{
    return persistent_kernel<T, chosen<D>>();
}

LADDER_STEP(queries, "14_queries", LONGEST_FIRST | COPY_ENGINE | PERSISTENT)
