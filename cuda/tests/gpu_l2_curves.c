/* Prints what reaches DRAM of simple patterns of access, by the size of the data, as CSV: what
 * docs/l2.md says of L2's capacity and of the data that stay dirty in it.
 *
 * Before each point L2 is full of clean lines that no one uses. Blocks are as many as an H200
 * has SMs, or 16, of 1,024 threads.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cold_cache.h"
#include "cuda/counters.h"
#include "l2_curve_kernels.h"
#include "results.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const char *const counted[] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                      "gpu__time_duration.sum"};
enum { COUNTED = LENGTH(counted), ALL_SMS = 132, FEW_SMS = 16, MIB = 1 << 20 };
enum { MOST_MIB = 192, MOST_SIZES = 16 };

static const char *const pattern_names[] = {
    [L2_READ_OWN] = "read_own",
    [L2_READ_ALL] = "read_all",
    [L2_WRITE] = "write",
    [L2_UPDATE] = "update",
    [L2_ACCUMULATE] = "accumulate",
    [L2_WRITE_READ_OWN] = "write_read_own",
    [L2_WRITE_READ_ALL] = "write_read_all",
    [L2_COPY] = "copy",
    [L2_COPY_IN_ORDER] = "copy_in_order",
    [L2_ADD] = "add",
    [L2_ADD_IN_ORDER] = "add_in_order",
    [L2_WAIT] = "wait",
};

/* A curve: 0 ends the sizes. Those of patterns that write and then read are what is read. */
static const struct curve {
    enum l2_pattern pattern;
    int blocks, passes;
    int written_mib;
    int mib[MOST_SIZES];
} curves[] = {
    {L2_READ_OWN, ALL_SMS, 9, 0, {16, 24, 32, 36, 38, 40, 44, 48, 52, 56, 60, 64, 96}},
    {L2_READ_OWN, FEW_SMS, 9, 0, {16, 24, 32, 36, 40, 44, 48, 52, 56, 60, 64, 96}},
    {L2_READ_ALL, ALL_SMS, 5, 0, {16, 24, 26, 28, 30, 32, 34, 36, 40, 48, 64}},
    {L2_WRITE, ALL_SMS, 1, 0, {4, 8, 16, 20, 24, 28, 32, 40, 48, 64, 96, 192}},
    {L2_WRITE, ALL_SMS, 9, 0, {4, 8, 16, 20, 22, 24, 28, 32, 40, 48, 64}},
    {L2_WRITE, FEW_SMS, 1, 0, {4, 8, 16, 20, 24, 28, 32, 40, 48, 64}},
    {L2_UPDATE, ALL_SMS, 9, 0, {4, 8, 16, 20, 24, 28, 32, 36, 40, 48, 64}},
    {L2_UPDATE, FEW_SMS, 9, 0, {4, 8, 16, 20, 24, 28, 32, 36, 40, 48, 64}},
    {L2_ACCUMULATE, ALL_SMS, 9, 0, {8, 12, 14, 16, 17, 18, 20, 22, 24, 32}},
    {L2_ACCUMULATE, FEW_SMS, 9, 0, {8, 12, 14, 16, 17, 18, 20, 22, 24, 32}},
    {L2_COPY, ALL_SMS, 1, 0, {4, 8, 16, 20, 24, 32, 48, 64, 128, 192}},
    {L2_COPY_IN_ORDER, ALL_SMS, 1, 0, {4, 8, 16, 20, 24, 32, 48, 64, 128, 192}},
    {L2_ADD, ALL_SMS, 1, 0, {4, 8, 12, 16, 20, 24, 32, 48, 64, 128, 192}},
    {L2_ADD_IN_ORDER, ALL_SMS, 1, 0, {4, 8, 12, 16, 20, 24, 32, 48, 64, 128, 192}},
    {L2_WRITE_READ_OWN, ALL_SMS, 1, 16, {8, 16, 20, 24, 32, 40, 48, 64, 96}},
    {L2_WRITE_READ_ALL, ALL_SMS, 1, 16, {8, 12, 16, 20, 24, 32, 40, 48, 64}},
};

static const int64_t waits_ns[] = {1000000, 10000000, 100000000, 300000000};

/* What the passes of a point need. */
struct cold_point {
    struct l2_curve_point point;
    void *memory, *other; /* device */
    struct cold_cache cold;
};

static enum status make_cold(void *context, struct error *error)
{
    const struct cold_point *p = context;
    return cold_cache_fill(&p->cold, error);
}

static enum status launch(void *context, struct error *error)
{
    const struct cold_point *p = context;
    return launch_l2_curve_point(&p->point, p->memory, p->other, error);
}

static enum status print_point(struct cold_point *p, struct counters *counters,
                               struct error *error)
{
    double values[COUNTED];
    if (counters_measure_range(values, counters, make_cold, launch, p, error))
        return error->status;
    printf("%s,%d,%d,%lld,%lld", pattern_names[p->point.pattern], p->point.blocks,
           p->point.passes, (long long)p->point.bytes, (long long)p->point.other_bytes);
    for (int k = 0; k < COUNTED; k++)
        printf(",%.0f", values[k]);
    printf("\n");
    return STATUS_OK;
}

static enum status print_curve(const struct curve *curve, struct cold_point *p,
                               struct counters *counters, struct error *error)
{
    for (int k = 0; k < MOST_SIZES && curve->mib[k] > 0; k++) {
        const int64_t bytes = (int64_t)curve->mib[k] * MIB;
        p->point =
            (struct l2_curve_point){curve->pattern, curve->blocks, curve->passes, bytes, 0};
        if (curve->written_mib > 0) {
            p->point.bytes = (int64_t)curve->written_mib * MIB;
            p->point.other_bytes = bytes;
        }
        if (print_point(p, counters, error))
            return error->status;
    }
    return STATUS_OK;
}

static enum status print_points(struct cold_point *p, struct counters *counters,
                                struct error *error)
{
    printf("pattern,blocks,passes,bytes,read_bytes,dram_read_bytes,dram_write_bytes,"
           "duration_ns\n");
    for (size_t k = 0; k < LENGTH(curves); k++)
        if (print_curve(&curves[k], p, counters, error))
            return error->status;
    for (size_t k = 0; k < LENGTH(waits_ns); k++) {
        p->point = (struct l2_curve_point){L2_WAIT, 1, 1, waits_ns[k], 0};
        if (print_point(p, counters, error))
            return error->status;
    }
    return STATUS_OK;
}

int main(void)
{
    struct error error = {0};
    struct counters *counters = NULL;
    struct cold_point p = {0};
    const size_t bytes = (size_t)MOST_MIB * MIB;
    if (!results_machine(stdout, "make gpu-l2-curves", &error) &&
        !cold_cache_open(&p.cold, &error) &&
        !device_alloc(&p.memory, "the memory that is gone through", bytes, &error) &&
        !device_alloc(&p.other, "other memory", 2 * bytes, &error) &&
        !counters_open_metrics(&counters, counted, COUNTED, &error))
        print_points(&p, counters, &error);
    counters_close(counters);
    device_free(p.other);
    device_free(p.memory);
    cold_cache_close(&p.cold);
    if (error.status)
        fprintf(stderr, "gpu_l2_curves: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
