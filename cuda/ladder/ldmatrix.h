/* ldmatrix: four 8 x 8 matrices of 16-bit elements from shared memory into fragments of mma.
 *
 * Interface:
 *   ldmatrix(R, address)              R[i] <- a lane's two elements of matrix i
 *   ldmatrix_transposed(R, address)   the same of each matrix transposed
 *
 * Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix". Lane i gives the address (16
 * bytes, aligned) of row i % 8 of matrix i / 8, and gets elements 2t and 2t + 1 of row g of
 * each matrix, g = lane / 4, t = lane % 4; transposed, rows 2t and 2t + 1 of column g.
 *
 * Here the four are those of a tile of 16 x 16, in one of two orders:
 *
 *     DOWN_FIRST   R[0] R[2]     A of mma, tile (rows, k): R[0], R[1], R[2], R[3]
 *                  R[1] R[3]     B of two mma, tile (k, columns), transposed: R[0], R[1], and
 *                                R[2], R[3]
 *     RIGHT_FIRST  R[0] R[1]     B of two mma, tile (columns, k): R[0], R[1], and R[2], R[3]
 *                  R[2] R[3]
 *
 * A, and B0 and B1, have to be in neighbouring registers, as ldmatrix leaves its results: with
 * the other order the compiler has to move every fragment of K, some 230 moves a tile in step
 * 05.
 */
#ifndef FLASHLAB_CUDA_LADDER_LDMATRIX_H
#define FLASHLAB_CUDA_LADDER_LDMATRIX_H

#include <stdint.h>

enum matrix_order { DOWN_FIRST, RIGHT_FIRST };

/* An address in shared memory as PTX takes it. */
__device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ inline void ldmatrix(uint32_t (&R)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(R[0]), "=r"(R[1]), "=r"(R[2]), "=r"(R[3])
                 : "r"(address)
                 : "memory");
}

__device__ inline void ldmatrix_transposed(uint32_t (&R)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(R[0]), "=r"(R[1]), "=r"(R[2]), "=r"(R[3])
                 : "r"(address)
                 : "memory");
}

#endif
