#include "cuda/trace.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"
#include "cuda/step_buffer.h"

/* Lends the run the buffer's memory; buffer->steps and buffer->rows are what it asked for. */
static enum status run_into(struct step_buffer *buffer, enum algorithm algorithm,
                            const struct attention *a, const struct device_tensors *t,
                            struct error *error)
{
    struct device_tensors traced = *t;
    buffer->steps = buffer->rows = 0;
    if (device_alloc(&traced.steps, "the step buffer", sizeof *buffer, error))
        return error->status;
    const bool failed = device_upload(traced.steps, buffer, sizeof *buffer, error) ||
                        trace_launchers[algorithm](a, &traced, error) ||
                        stream_wait(traced.stream, error) ||
                        device_download(buffer, traced.steps, sizeof *buffer, error);
    device_free(traced.steps);
    return failed ? error->status : STATUS_OK;
}

/* A record and the number of its launch. */
struct ordered_step {
    const struct device_step *step;
    int launch;
};

static int simulators_order(const void *x, const void *y)
{
    const struct ordered_step *a = x, *b = y;
    if (a->launch != b->launch)
        return a->launch < b->launch ? -1 : 1;
    for (int axis = 2; axis >= 0; axis--)
        if (a->step->block[axis] != b->step->block[axis])
            return a->step->block[axis] < b->step->block[axis] ? -1 : 1;
    return (a->step->number > b->step->number) - (a->step->number < b->step->number);
}

/* Launches follow each other on the stream, so the slots of one come before those of the next:
 * another kernel's name is another launch. */
static void put_in_order(struct ordered_step *ordered, const struct device_step *steps,
                         size_t count)
{
    for (size_t n = 0; n < count; n++) {
        const bool same = n == 0 || strcmp(steps[n].kernel, steps[n - 1].kernel) == 0;
        ordered[n].step = &steps[n];
        ordered[n].launch = (n > 0 ? ordered[n - 1].launch : 0) + !same;
    }
    qsort(ordered, count, sizeof *ordered, simulators_order);
}

/* values: room for the rows of any record, three times. */
static void add_step(struct step_log *log, const struct device_step *step,
                     const struct device_row *rows, float *values)
{
    const struct step_record record = {
        .kernel = step->kernel,
        .block = {step->block[0], step->block[1], step->block[2]},
        .i = step->i,
        .j = step->j,
        .step = step->name,
        .read_bytes = step->read_bytes,
        .written_bytes = step->written_bytes,
        .rows = step->rows,
        .m = values,
        .l = values + step->rows,
        .o_norm = values + 2 * step->rows};
    for (int r = 0; r < step->rows; r++) {
        record.m[r] = rows[step->first_row + r].m;
        record.l[r] = rows[step->first_row + r].l;
        record.o_norm[r] = rows[step->first_row + r].o_norm;
    }
    step_log_add(log, &record);
}

static enum status read_steps(struct step_log *log, const struct step_buffer *buffer,
                              struct error *error)
{
    const size_t count = (size_t)buffer->steps, row_count = (size_t)buffer->rows;
    struct device_step *steps = malloc(count * sizeof *steps);
    struct device_row *rows = malloc((row_count + 1) * sizeof *rows); /* there may be none */
    struct ordered_step *ordered = malloc(count * sizeof *ordered);
    float values[3 * MAX_BLOCK];
    enum status status = STATUS_OK;
    if (!steps || !rows || !ordered)
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %zu step records",
                           count);
    if (status == STATUS_OK)
        status = device_download(steps, buffer->step, count * sizeof *steps, error);
    if (status == STATUS_OK && row_count > 0)
        status = device_download(rows, buffer->row, row_count * sizeof *rows, error);
    if (status == STATUS_OK) {
        put_in_order(ordered, steps, count);
        for (size_t n = 0; n < count; n++)
            add_step(log, ordered[n].step, rows, values);
    }
    free(steps);
    free(rows);
    free(ordered);
    return status;
}

/* Twice: without room, to learn how much is needed, and with it. */
enum status attention_trace(struct step_log *log, enum algorithm algorithm,
                            const struct attention *a, const struct device_tensors *t,
                            struct error *error)
{
    struct step_buffer buffer = {0};
    if (run_into(&buffer, algorithm, a, t, error))
        return error->status;
    buffer.step_room = buffer.steps;
    buffer.row_room = buffer.rows;
    const bool failed =
        device_alloc((void **)&buffer.step, "the buffer of step records",
                     buffer.step_room * sizeof *buffer.step, error) ||
        (buffer.row_room > 0 && device_alloc((void **)&buffer.row, "the buffer of their rows",
                                             buffer.row_room * sizeof *buffer.row, error)) ||
        run_into(&buffer, algorithm, a, t, error) || read_steps(log, &buffer, error);
    device_free(buffer.step);
    device_free(buffer.row);
    return failed ? error->status : STATUS_OK;
}
