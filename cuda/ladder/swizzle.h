/* Where the elements of a tile lie in shared memory: row-major, or swizzled.
 *
 * Interface: byte offsets from the start of a tile whose rows are D 16-bit elements, in chunks
 * of 8 elements (16 bytes):
 *   plain<D>::at(row, chunk)      row * 2D + 16 chunk
 *   swizzled<D>::at(row, chunk)   row * 2D + 16 (chunk XOR row % 8)
 *   boxes<ROWS>::at(row, chunk)   blocks of 64 columns, each of ROWS swizzled rows: see tma.h
 *   box_right<ROWS>(address, n)   an address in boxes<ROWS>, n tiles of 16 x 16 to the right
 *   lane_offset<D, ORDER>()       of the lane's chunk of a swizzled tile of 16 x 16, for
 *                                 ldmatrix (ORDER: see there); + 32D n: n tiles down, ^ 32 n:
 *                                 n tiles to the right
 *
 * Shared memory delivers 128 bytes at once, if they lie in 32 different banks. ldmatrix reads a
 * chunk from each of 8 rows; rows are a multiple of 128 bytes long, so in row-major order the 8
 * chunks share 4 banks and take 8 passes. XOR deals them out, for rows 0 to 7 and chunks 0 to
 * 7:
 *
 *     row 0   0 1 2 3 4 5 6 7        chunk 0 lies at the places 0, 1, ..., 7: each row in
 *     row 1   1 0 3 2 5 4 7 6        four banks of its own; and a row is still a permutation
 *     row 2   2 3 0 1 6 7 4 5        of itself, so writing whole rows stays free of
 *     ...                            conflicts.
 *     row 7   7 6 5 4 3 2 1 0
 */
#ifndef FLASHLAB_CUDA_LADDER_SWIZZLE_H
#define FLASHLAB_CUDA_LADDER_SWIZZLE_H

#include "cuda/ladder/ldmatrix.h"

template <int D> struct plain {
    __device__ static unsigned at(unsigned row, unsigned chunk)
    {
        return row * 2 * D + 16 * chunk;
    }
};

template <int D> struct swizzled {
    __device__ static unsigned at(unsigned row, unsigned chunk)
    {
        return row * 2 * D + 16 * (chunk ^ row % 8);
    }
};

template <int ROWS> struct boxes {
    __device__ static unsigned at(unsigned row, unsigned chunk)
    {
        return chunk / 8 * (ROWS * 128) + swizzled<64>::at(row, chunk % 8);
    }
};

template <int ROWS> __device__ inline uint32_t box_right(uint32_t address, int n)
{
    return (address ^ 32 * (n % 4)) + n / 4 * (ROWS * 128);
}

/* Tiles start at multiples of 1024 bytes and rows at multiples of 128, so 32 n and the bits of
 * the row do not meet, and XOR with 32 n is chunk + 2n, swizzled. */
template <int D, enum matrix_order ORDER> __device__ inline uint32_t lane_offset()
{
    const unsigned lane = threadIdx.x % 32, matrix = lane / 8;
    const unsigned below = ORDER == DOWN_FIRST ? matrix % 2 : matrix / 2;
    const unsigned right = ORDER == DOWN_FIRST ? matrix / 2 : matrix % 2;
    return swizzled<D>::at(lane % 8 + 8 * below, right);
}

#endif
