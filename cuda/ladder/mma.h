/* mma.sync: the tensor cores' product of one warp, 16-bit operands, sums in fp32.
 *
 * Interface:
 *   mma<T>(C, A, B0, B1);     C (16 x 8, fp32) <- C + A (16 x 16) B (16 x 8)
 *   pack<T>(x, y)             two floats rounded to T in one register, x in the low half
 *
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
 *
 * With g = lane / 4 and t = lane % 4, a lane holds of each matrix (two elements a register for
 * A and B, the one of the lower column or row in the low half):
 *
 *   A, by rows         cols 2t, 2t+1   2t+8, 2t+9       B, by columns       col g
 *          row g       A[0]            A[2]               rows 2t, 2t+1     B0
 *          row g + 8   A[1]            A[3]               rows 2t+8, 2t+9   B1
 *
 *   C                  col 2t   col 2t+1
 *          row g       C[0]     C[1]
 *          row g + 8   C[2]     C[3]
 *
 * So the C of two products side by side, rounded and packed, is the A of the next product: P
 * never leaves the registers.
 */
#ifndef FLASHLAB_CUDA_LADDER_MMA_H
#define FLASHLAB_CUDA_LADDER_MMA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

template <class T>
__device__ inline void mma(float (&C)[4], const uint32_t (&A)[4], uint32_t B0, uint32_t B1);

template <>
__device__ inline void mma<__half>(float (&C)[4], const uint32_t (&A)[4], uint32_t B0,
                                   uint32_t B1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1));
}

template <>
__device__ inline void mma<__nv_bfloat16>(float (&C)[4], const uint32_t (&A)[4], uint32_t B0,
                                          uint32_t B1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(C[0]), "+f"(C[1]), "+f"(C[2]), "+f"(C[3])
        : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B0), "r"(B1));
}

template <class T> __device__ inline uint32_t pack(float x, float y);

template <> __device__ inline uint32_t pack<__half>(float x, float y)
{
    const __half2 pair = __floats2half2_rn(x, y);
    return reinterpret_cast<const uint32_t &>(pair);
}

template <> __device__ inline uint32_t pack<__nv_bfloat16>(float x, float y)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return reinterpret_cast<const uint32_t &>(pair);
}

#endif
