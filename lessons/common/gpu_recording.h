/* Recordings: what a GPU did in one run, in a small JSON file, for machines without a GPU.
 *
 * Those in lessons/recordings were made by `flashlab record` on the GPU that they name. The
 * inputs are not in the file: they follow from the shape and the seed (see random_inputs.h).
 */
#ifndef FLASHLAB_LESSONS_GPU_RECORDING_H
#define FLASHLAB_LESSONS_GPU_RECORDING_H

#include <stdint.h>
#include <stdio.h>

#include "core/attention.h"
#include "cuda/observation.h"

/* A result in a few numbers: its sum, its 2-norm, and projections on vectors of signs, each of
 * which a single wrong element changes. */
enum { PROJECTIONS = 4 };
struct result_summary {
    int64_t count, nonfinite; /* elements; of these NaN or infinite: left out of sum and norm */
    double sum, norm, projection[PROJECTIONS];
};

struct result_summary result_summarize(const float *values, size_t count);

struct gpu_recording {
    char date[16];     /* "2026-11-30" */
    char command[256]; /* that made it */
    enum algorithm algorithm;
    struct attention attention;
    uint64_t seed;
    struct result_summary o, lse;
    struct observation seen; /* o and lse NULL */
};

/* Writes it as JSON. Returns false if the stream failed. */
bool gpu_recording_write(const struct gpu_recording *recording, FILE *out);

/* Reads one. A launch may lack the instructions and wavefronts of shared memory, all four: they
 * are -1 then. The message of a refusal names the file and what is wrong in it. */
enum status gpu_recording_read(struct gpu_recording *recording, const char *path,
                               struct error *error);

void gpu_recording_free(struct gpu_recording *recording);

#endif
