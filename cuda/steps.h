/* Step marks of the kernels: the ends of the steps of an algorithm.
 *
 * Interface, in a kernel:
 *   STEPS_BEGIN(i, 0, plane);       the place of its block in the simulated twin's grid
 *   STEP("load Qi", i, -1);         where the twin calls block_step(b, "load Qi", i, -1)
 *   STEP_ROWS("Oi = ...", i, j, rows, m, l, Oi, dv);     where it calls block_step_rows()
 *   STEP_STATISTICS("m, l", i, j, rows, m, l);           where it does so without O
 *   STEP_NORMS("Oi = ...", i, j, rows, Oi, dv);          where it does so without m and l
 * and in its launcher, before the launch: steps_attach(t, &error).
 *
 * Same names, same order, same Q tile i and K/V tile j as in the twin: tests hold both against
 * each other. The marks generate no code, but in the tracing build: with FLASHLAB_TRACE the
 * attention kernels are compiled a second time, their launchers named trace_..., and each mark
 * writes a record to t->steps; and on the CPU (cpu/cpu.h), where each adds to a record if
 * somebody wants them. All threads of the block must reach it.
 */
#ifndef FLASHLAB_CUDA_STEPS_H
#define FLASHLAB_CUDA_STEPS_H

#include "cuda/attention.h"

#ifdef FLASHLAB_TRACE

#include "cuda/step_writer.h"

#define launch_naive_attention trace_naive_attention
#define launch_standard_attention trace_standard_attention
#define launch_flash1_forward trace_flash1_forward
#define launch_flash2_forward trace_flash2_forward

#define STEPS_BEGIN(x, y, z)                                                                   \
    struct step_writer step_writer = steps_begin(__func__, x, y, z, TRACED_THREADS)
#define STEPS_BEGIN_WARP(x, y, z)                                                              \
    struct step_writer step_writer = steps_begin(__func__, x, y, z, WARP_THREADS)
#define STEP(name, i, j) ((void)write_step(step_writer, name, i, j, 0))
#define STEP_ROWS(name, i, j, rows, m, l, O, dv)                                               \
    write_step_rows(step_writer, name, i, j, rows, m, l, O, dv)
#define STEP_STATISTICS(name, i, j, rows, m, l)                                                \
    write_step_statistics(step_writer, name, i, j, rows, m, l)
#define STEP_NORMS(name, i, j, rows, O, dv)                                                    \
    write_step_norms(step_writer, name, i, j, rows, O, dv)

#elif defined FLASHLAB_CPU

#include "cuda/cpu/step_marks.h"

#else

#define STEPS_BEGIN(x, y, z) ((void)0)
/* Where a warp, not a block, does the work of one block of the twin: all its threads reach each
 * mark; those of the block's other warps need not. */
#define STEPS_BEGIN_WARP(x, y, z) ((void)0)
#define STEP(name, i, j) ((void)(i), (void)(j))
/* rows: rows of the tile inside the edge. m[R], l[R] and O[R][C] are register tiles as tile.h
 * has them; or m, l and O[parts] those of one row whose columns k, k + 32, ... lane k has. dv:
 * columns of O that count. */
#define STEP_ROWS(name, i, j, rows, m, l, O, dv) STEP(name, i, j)
/* Of tiles only. */
#define STEP_STATISTICS(name, i, j, rows, m, l) STEP(name, i, j)
#define STEP_NORMS(name, i, j, rows, O, dv) STEP(name, i, j)

#endif

#ifndef FLASHLAB_TRACE
static inline enum status steps_attach(const struct device_tensors *t, struct error *error)
{
    (void)t, (void)error;
    return STATUS_OK;
}

#endif
#endif
