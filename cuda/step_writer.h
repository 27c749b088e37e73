/* What the step marks of the tracing build do: see steps.h. */
#ifndef FLASHLAB_CUDA_STEP_WRITER_H
#define FLASHLAB_CUDA_STEP_WRITER_H

#include "cuda/attention.h"
#include "cuda/counted_memory.h"
#include "cuda/error.h"
#include "cuda/step_buffer.h"
#include "cuda/tile.h"

/* Where the kernels of this file write. */
static __device__ struct step_buffer *step_buffer;

/* t->steps is a struct step_buffer in device memory. */
static enum status steps_attach(const struct device_tensors *t, struct error *error)
{
    CUDA_TRY(cudaMemcpyToSymbol(step_buffer, &t->steps, sizeof t->steps), error);
    return STATUS_OK;
}

/* The team is the threads that do the work of one thread block of the simulator: a block's, or
 * a warp's. */
struct step_writer {
    const char *kernel;
    int block[3];
    int number;         /* of the next step */
    int first, threads; /* the team's threads: first, ... first + threads - 1 */
};

static __device__ struct step_writer steps_begin(const char *kernel, int x, int y, int z,
                                                 int threads)
{
    block_bytes()[threadIdx.x] = {0, 0};
    return {kernel, {x, y, z}, 0, (int)threadIdx.x / threads * threads, threads};
}

static __device__ void team_barrier(const struct step_writer &writer)
{
    if (writer.threads == WARP_THREADS)
        __syncwarp();
    else
        __syncthreads();
}

static __device__ void copy_name(char (&dst)[STEP_NAME_LENGTH], const char *name)
{
    int at = 0;
    for (; at < STEP_NAME_LENGTH - 1 && name[at] != '\0'; at++)
        dst[at] = name[at];
    dst[at] = '\0';
}

/* By one thread of the team. Returns the place of the record's rows; NULL: no room. */
static __device__ struct device_row *fill_step(const struct step_writer &writer,
                                               const char *name, int i, int j, int rows)
{
    struct step_buffer *buffer = step_buffer;
    const unsigned long long slot = atomicAdd(&buffer->steps, 1ULL);
    const unsigned long long first_row = atomicAdd(&buffer->rows, (unsigned long long)rows);
    if (slot >= buffer->step_room || first_row + (unsigned)rows > buffer->row_room)
        return nullptr;
    struct device_step *step = &buffer->step[slot];
    copy_name(step->kernel, writer.kernel);
    copy_name(step->name, name);
    for (int axis = 0; axis < 3; axis++)
        step->block[axis] = writer.block[axis];
    step->number = writer.number;
    step->i = i;
    step->j = j;
    step->rows = rows;
    step->first_row = (int64_t)first_row;
    step->read_bytes = step->written_bytes = 0;
    for (int n = writer.first; n < writer.first + writer.threads; n++) {
        step->read_bytes += block_bytes()[n].read;
        step->written_bytes += block_bytes()[n].written;
    }
    return buffer->row + first_row;
}

/* By the whole team; all get what fill_step() returned. */
static __device__ struct device_row *write_step(struct step_writer &writer, const char *name,
                                                int i, int j, int rows)
{
    __shared__ struct device_row *places[TRACED_THREADS / WARP_THREADS];
    struct device_row **place = &places[writer.first / WARP_THREADS];
    team_barrier(writer); /* all have counted what they did, and read the previous place */
    if ((int)threadIdx.x == writer.first)
        *place = fill_step(writer, name, i, j, rows);
    team_barrier(writer);
    writer.number++;
    return *place;
}

/* The sum over groups of threads that lie beside each other: a power of two, up to a warp. */
__device__ inline double group_sum(double x, int threads)
{
    for (int other = threads / 2; other > 0; other /= 2)
        x += __shfl_xor_sync(0xffffffff, x, other);
    return x;
}

/* The 2-norm of the thread's row of a tile, in all threads of the row. */
template <int C> __device__ inline float row_norm(const float (&row)[C], int cols)
{
    double square = 0.0;
    for (int c = 0; c < C; c++)
        if (thread_col() + c * COL_THREADS < cols)
            square += (double)row[c] * (double)row[c];
    return (float)sqrt(group_sum(square, COL_THREADS));
}

/* The record's r-th row of the thread's rows, by one thread of the row. place: NULL, no room.
 */
__device__ inline void put_row(struct device_row *place, int r, int rows,
                               struct device_row values)
{
    const int row = thread_row() + r * ROW_THREADS;
    if (place && row < rows && thread_col() == 0)
        place[row] = values;
}

/* Of tiles over the whole block. What a step does not know is NaN: see core/trace.h. */
template <int R, int C>
__device__ inline void write_step_rows(struct step_writer &writer, const char *name, int i,
                                       int j, int rows, const float (&m)[R],
                                       const float (&l)[R], const float (&O)[R][C], int dv)
{
    struct device_row *place = write_step(writer, name, i, j, rows);
    for (int r = 0; r < R; r++)
        put_row(place, r, rows, {m[r], l[r], row_norm(O[r], dv)});
}
template <int R>
__device__ inline void write_step_statistics(struct step_writer &writer, const char *name,
                                             int i, int j, int rows, const float (&m)[R],
                                             const float (&l)[R])
{
    struct device_row *place = write_step(writer, name, i, j, rows);
    for (int r = 0; r < R; r++)
        put_row(place, r, rows, {m[r], l[r], NAN});
}
template <int R, int C>
__device__ inline void write_step_norms(struct step_writer &writer, const char *name, int i,
                                        int j, int rows, const float (&O)[R][C], int dv)
{
    struct device_row *place = write_step(writer, name, i, j, rows);
    for (int r = 0; r < R; r++)
        put_row(place, r, rows, {NAN, NAN, row_norm(O[r], dv)});
}

/* Of the one row of a warp. */
template <int PARTS>
__device__ inline void write_step_rows(struct step_writer &writer, const char *name, int i,
                                       int j, int rows, float m, float l,
                                       const float (&O)[PARTS], int dv)
{
    struct device_row *place = write_step(writer, name, i, j, rows);
    const int lane = (int)threadIdx.x % WARP_THREADS;
    double square = 0.0;
    for (int part = 0; part < PARTS; part++)
        if (part * WARP_THREADS + lane < dv)
            square += (double)O[part] * (double)O[part];
    square = group_sum(square, WARP_THREADS);
    if (place && lane == 0)
        *place = {m, l, (float)sqrt(square)};
}

#endif
