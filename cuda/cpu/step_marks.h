/* What the step marks of cuda/steps.h are on the CPU. */
#ifndef FLASHLAB_CUDA_CPU_STEP_MARKS_H
#define FLASHLAB_CUDA_CPU_STEP_MARKS_H

#include "cuda/cpu/engine.h"
#include "cuda/tile.h"

#define STEPS_BEGIN(x, y, z) struct cpu_team step_team = {x, y, z, 0}
#define STEPS_BEGIN_WARP(x, y, z) STEPS_BEGIN(x, y, z)
#define STEP(name, i, j) ((void)cpu_mark(&step_team, name, i, j, 0))
#define STEP_ROWS(name, i, j, rows, m, l, O, dv)                                               \
    do {                                                                                       \
        struct cpu_step_rows *const step_rows = cpu_mark(&step_team, name, i, j, rows);        \
        if (step_rows) {                                                                       \
            cpu_step_statistics(step_rows, m, l);                                              \
            cpu_step_norms(step_rows, O, dv);                                                  \
        }                                                                                      \
    } while (0)
#define STEP_STATISTICS(name, i, j, rows, m, l)                                                \
    do {                                                                                       \
        struct cpu_step_rows *const step_rows = cpu_mark(&step_team, name, i, j, rows);        \
        if (step_rows)                                                                         \
            cpu_step_statistics(step_rows, m, l);                                              \
    } while (0)
#define STEP_NORMS(name, i, j, rows, O, dv)                                                    \
    do {                                                                                       \
        struct cpu_step_rows *const step_rows = cpu_mark(&step_team, name, i, j, rows);        \
        if (step_rows)                                                                         \
            cpu_step_norms(step_rows, O, dv);                                                  \
    } while (0)

/* NULL: nobody wants to know, or the step has no rows. */
static inline struct cpu_step_rows *cpu_mark(struct cpu_team *team, const char *name, int i,
                                             int j, int rows)
{
    return cpu_now.traced ? cpu_step(team, name, i, j, rows) : NULL;
}

/* Of a tile over the whole block. */
template <int R>
static inline void cpu_step_statistics(struct cpu_step_rows *rows, const float (&m)[R],
                                       const float (&l)[R])
{
    for (int r = 0; r < R; r++)
        cpu_step_row(rows, thread_row() + r * ROW_THREADS, m[r], l[r]);
}
template <int R, int C>
static inline void cpu_step_norms(struct cpu_step_rows *rows, const float (&O)[R][C], int dv)
{
    for (int r = 0; r < R; r++) {
        double square = 0.0;
        for (int c = 0; c < C; c++)
            if (thread_col() + c * COL_THREADS < dv)
                square += (double)O[r][c] * (double)O[r][c];
        cpu_step_square(rows, thread_row() + r * ROW_THREADS, square);
    }
}

/* Of the one row of a warp. */
static inline void cpu_step_statistics(struct cpu_step_rows *rows, float m, float l)
{
    cpu_step_row(rows, 0, m, l);
}
template <int PARTS>
static inline void cpu_step_norms(struct cpu_step_rows *rows, const float (&O)[PARTS], int dv)
{
    double square = 0.0;
    for (int part = 0; part < PARTS; part++)
        if (part * CPU_WARP + cpu_now.lane < dv)
            square += (double)O[part] * (double)O[part];
    cpu_step_square(rows, 0, square);
}

#endif
