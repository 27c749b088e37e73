/* The device memory that the tracing build writes step records to, as kernels and host see it.
 *
 * Slots are handed out by counting steps and rows up, past the room too: then nothing is
 * written, and the host learns how much room is needed.
 */
#ifndef FLASHLAB_CUDA_STEP_BUFFER_H
#define FLASHLAB_CUDA_STEP_BUFFER_H

#include <stdint.h>

enum { STEP_NAME_LENGTH = 48 };

/* A step_record (core/trace.h) without its rows. */
struct device_step {
    char kernel[STEP_NAME_LENGTH], name[STEP_NAME_LENGTH];
    int block[3]; /* in the simulator's grid */
    int number;   /* of the block's steps: 0, 1, ... */
    int i, j;
    int rows;
    int64_t first_row;
    int64_t read_bytes, written_bytes;
};

/* NaN: the step does not know it. */
struct device_row {
    float m, l, o_norm;
};

struct step_buffer {
    unsigned long long steps, rows; /* handed out so far */
    unsigned long long step_room, row_room;
    struct device_step *step; /* [step_room] */
    struct device_row *row;   /* [row_room] */
};

#endif
