/* The CUDA device from plain C: properties, memory, streams, timing and errors.
 *
 * Interface:
 *   struct device_info info;
 *   if (device_query(&info, &error)) ...      no usable GPU: error.text says why
 *   float *x;
 *   device_alloc((void **)&x, "x", bytes, &error);
 *   device_upload(x, host, bytes, &error);    HBM <- host, waits
 *   device_download(host, x, bytes, &error);  host <- HBM, waits
 *   device_free(x);
 *   device_time(&time, work, context, &plan, &error);
 *
 * Device 0 is used (CUDA_VISIBLE_DEVICES chooses). Every CUDA call is checked; the message of a
 * failure has the call, file and line, CUDA's error name, and what to do about it.
 */
#ifndef FLASHLAB_CUDA_DEVICE_H
#define FLASHLAB_CUDA_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device_info {
    char name[256];
    int compute_major, compute_minor;
    int sms;
    int driver_version, runtime_version; /* of CUDA: 1000 major + 10 minor */
    char driver[32];                     /* "580.159.04" */
    int64_t memory_bytes, free_bytes;
    int64_t l2_bytes;
    int64_t shared_bytes_per_block; /* the most a block may ask for */
};

enum status device_query(struct device_info *info, struct error *error);

/* Allocates bytes, each 0xff: floats are NaN. The message has needed and free bytes. */
enum status device_alloc(void **memory, const char *name, size_t bytes, struct error *error);
void device_free(void *memory); /* NULL: nothing happens */

enum status device_upload(void *device, const void *host, size_t bytes, struct error *error);
enum status device_download(void *host, const void *device, size_t bytes, struct error *error);

/* A stream for device_tensors.stream and its like. */
enum status stream_create(void **stream, struct error *error);
void stream_destroy(void *stream);

/* Waits until all work on the stream is done (NULL: the default stream): errors of kernels
 * surface here. */
enum status stream_wait(void *stream, struct error *error);

/* Work put on a stream; context is the caller's. */
typedef enum status device_work(void *context, struct error *error);

/* How to time: repetitions before the clock runs, and repetitions timed. */
struct timing_plan {
    int warmup, repeats;
    void *stream; /* that the work goes to */
};

/* Microseconds of one repetition, by events on the stream around each. */
struct timing {
    double median_us, fastest_us, slowest_us;
};

enum status device_time(struct timing *timing, device_work *work, void *context,
                        const struct timing_plan *plan, struct error *error);

/* dst <- src, both on the device: the yardstick of bandwidth. */
enum status device_copy(void *dst, const void *src, size_t bytes, void *stream,
                        struct error *error);

#ifdef __cplusplus
}
#endif

#endif
