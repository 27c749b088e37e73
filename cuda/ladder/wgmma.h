/* wgmma: the tensor cores' product of a warpgroup, 16-bit operands from shared memory, sums in
 * fp32 in registers, under way while the threads go on.
 *
 * Interface: C is 64 x N, 16 rows a warp; C[n] of a lane is that of mma.h, for columns 8n ...
 *   wgmma<T>(C, A, B, add)    C <- A B, + C if add; A (64 x 16) and B (16 x N) by descriptors
 *   wgmma<T>(C, A, B, add)    the same with A in registers: that of mma.h for the warp's rows
 *   wgmma<T>(C, A, B)         C <- C + A B; A in registers; the rows of B's tile are those of
 *                             B, not its columns
 *   wgmma_begin(C, ...)       before the first product that uses what the thread has written
 *   wgmma_commit()            the products since the last commit become a group
 *   wgmma_wait<n>(C, ...)     until at most the n newest groups are under way; the others' C
 *                             may be used after it
 *   tile_columns(tile)        descriptor of a tile of ROWS rows as tma.h leaves it: the operand
 *                             whose k runs along the rows (A, and B of the first wgmma)
 *   tile_rows<ROWS>(tile)     the same for a k that runs down the rows (B of the second)
 *   columns_step<ROWS>(k), rows_step(k)   added to a descriptor: 16 k further along k
 *
 * A descriptor says where an operand's 8 x 64 blocks of 1024 bytes lie:
 *
 *     tile of 24 rows, D = 128      tile_columns: blocks 0, 1, 2 are 1024 bytes apart; the 16
 *       block 0   block 3           columns of one product lie within 128 bytes, and k / 4
 *       block 1   block 4           chooses the column of blocks
 *       block 2   block 5           tile_rows: the 16 rows of a product are two blocks, 1024
 *                                   bytes apart; from block 0 to 3 it is ROWS * 128 bytes
 *
 * and its bits are
 *
 *     63 62   61 ... 46   45 ... 32     31 30   29 ... 16      15 14   13 ... 0
 *     swizzle 0           stride / 16   0       leading / 16   0       address / 16
 *
 * Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": "wgmma.mma_async",
 * "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group"; "Matrix Descriptor Format",
 * "Strides", "Register Fragments".
 */
#ifndef FLASHLAB_CUDA_LADDER_WGMMA_H
#define FLASHLAB_CUDA_LADDER_WGMMA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

enum { BLOCK_BYTES = 1024, SWIZZLE_128B = 1 };

__device__ inline uint64_t tile_descriptor(uint32_t tile, int leading_bytes, int stride_bytes)
{
    return (uint64_t)(tile / 16) | (uint64_t)(leading_bytes / 16) << 16 |
           (uint64_t)(stride_bytes / 16) << 32 | (uint64_t)SWIZZLE_128B << 62;
}

/* One product reaches over 128 bytes at most, so there is no leading stride. */
__device__ inline uint64_t tile_columns(uint32_t tile)
{
    return tile_descriptor(tile, 16, BLOCK_BYTES);
}

template <int ROWS> __device__ inline uint64_t tile_rows(uint32_t tile)
{
    return tile_descriptor(tile, ROWS * 128, BLOCK_BYTES);
}

template <int ROWS> __device__ inline constexpr uint64_t columns_step(int k)
{
    return (uint64_t)(k / 4 * ROWS * 128 + k % 4 * 32) / 16;
}

__device__ inline constexpr uint64_t rows_step(int k)
{
    return (uint64_t)(k * 2 * BLOCK_BYTES) / 16;
}

/* The compiler may move arithmetic over an asm that does not name its registers. */
template <int N> __device__ inline void registers_settle(float (&C)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        asm volatile("" : "+f"(C[n][0]), "+f"(C[n][1]), "+f"(C[n][2]), "+f"(C[n][3])::"memory");
}

template <int N> __device__ inline void registers_settle(uint32_t (&A)[N][4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
        asm volatile("" : "+r"(A[n][0]), "+r"(A[n][1]), "+r"(A[n][2]), "+r"(A[n][3])::"memory");
}

template <class... ARRAYS> __device__ inline void wgmma_begin(ARRAYS &...arrays)
{
    (registers_settle(arrays), ...);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int groups, class... ARRAYS> __device__ inline void wgmma_wait(ARRAYS &...arrays)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
    (registers_settle(arrays), ...);
}

template <class T, int N>
__device__ inline void wgmma(float (&C)[N][4], uint64_t A, uint64_t B, bool add);
template <class T, int DOWN, int N>
__device__ inline void wgmma_registers(float (&C)[N][4], const uint32_t (&A)[4], uint64_t B,
                                       bool add);

template <class T, int N>
__device__ inline void wgmma(float (&C)[N][4], const uint32_t (&A)[4], uint64_t B, bool add)
{
    wgmma_registers<T, 0>(C, A, B, add);
}

template <class T, int N>
__device__ inline void wgmma(float (&C)[N][4], const uint32_t (&A)[4], uint64_t B)
{
    wgmma_registers<T, 1>(C, A, B, true);
}

/* Operands of an asm: ten names of registers; 4 and 16 registers of C. */
#define TEN(t)                                                                                 \
    "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t     \
    "8, %" #t "9"
#define C4(n) "+f"(C[n][0]), "+f"(C[n][1]), "+f"(C[n][2]), "+f"(C[n][3])
#define C16(n) C4(n), C4(n + 1), C4(n + 2), C4(n + 3)

/* Both operands in shared memory, k along the rows of both. names: of C's registers; a, b, add:
 * those of the operands after them. */
#define WGMMA_SHARED(T, type, columns, names, a, b, add_, ...)                                 \
    template <>                                                                                \
    __device__ inline void wgmma<T, columns / 8>(float(&C)[columns / 8][4], uint64_t A,        \
                                                 uint64_t B, bool add)                         \
    {                                                                                          \
        asm volatile("{\n"                                                                     \
                     ".reg .pred p;\n"                                                         \
                     "setp.ne.b32 p, " add_ ", 0;\n"                                           \
                     "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type     \
                     " {" names "}, " a ", " b ", p, 1, 1, 0, 0;\n"                            \
                     "}"                                                                       \
                     : __VA_ARGS__                                                             \
                     : "l"(A), "l"(B), "r"((int)add));                                         \
    }

/* A in registers; k down the rows of B's tile if down is 1, along them if 0. */
#define WGMMA_REGISTERS(T, type, columns, down, names, a, b, add_, ...)                        \
    template <>                                                                                \
    __device__ inline void wgmma_registers<T, down, columns / 8>(                              \
        float(&C)[columns / 8][4], const uint32_t(&A)[4], uint64_t B, bool add)                \
    {                                                                                          \
        asm volatile("{\n"                                                                     \
                     ".reg .pred p;\n"                                                         \
                     "setp.ne.b32 p, " add_ ", 0;\n"                                           \
                     "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type     \
                     " {" names "}, {" a "}, " b ", p, 1, 1, " #down ";\n"                     \
                     "}"                                                                       \
                     : __VA_ARGS__                                                             \
                     : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "l"(B), "r"((int)add));     \
    }

#define NAMES_64 TEN() ", " TEN(1) ", " TEN(2) ", %30, %31"
#define NAMES_80 TEN() ", " TEN(1) ", " TEN(2) ", " TEN(3)
#define NAMES_128 NAMES_60 ", %60, %61, %62, %63"
#define NAMES_60 NAMES_80 ", " TEN(4) ", " TEN(5)
#define NAMES_256                                                                              \
    NAMES_60 ", " TEN(6) ", " TEN(7) ", " TEN(8) ", " TEN(9) ", " TEN(10) ", " TEN(            \
        11) ", %120, %121, %122, %123, %124, %125, %126, %127"
#define C_64 C16(0), C16(4)
#define C_80 C_64, C4(8), C4(9)
#define C_128 C_64, C16(8), C16(12)
#define C_256 C_128, C16(16), C16(20), C16(24), C16(28)

#define WGMMA(T, type)                                                                         \
    WGMMA_SHARED(T, type, 64, NAMES_64, "%32", "%33", "%34", C_64)                             \
    WGMMA_SHARED(T, type, 80, NAMES_80, "%40", "%41", "%42", C_80)                             \
    WGMMA_SHARED(T, type, 128, NAMES_128, "%64", "%65", "%66", C_128)                          \
    WGMMA_REGISTERS(T, type, 128, 0, NAMES_128, "%64, %65, %66, %67", "%68", "%69", C_128)     \
    WGMMA_REGISTERS(T, type, 64, 1, NAMES_64, "%32, %33, %34, %35", "%36", "%37", C_64)        \
    WGMMA_REGISTERS(T, type, 128, 1, NAMES_128, "%64, %65, %66, %67", "%68", "%69", C_128)     \
    WGMMA_REGISTERS(T, type, 256, 1, NAMES_256, "%128, %129, %130, %131", "%132", "%133", C_256)

WGMMA(__half, "f16")
WGMMA(__nv_bfloat16, "bf16")

#endif
