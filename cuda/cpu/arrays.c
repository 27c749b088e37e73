/* The arrays of HBM that kernels may touch, and the counts of launches. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "cuda/cpu/worker.h"

enum {
    HOPPER_SHARED_BYTES = 227 * 1024,
    SILENT_SECONDS = 20,
};
#define STEP_LIMIT ((int64_t)1 << 32)

static struct {
    int count;
    struct cpu_array array[CPU_MAX_ARRAYS];
} arrays;
static struct cpu_counts counts;
struct cpu_options cpu_options;

void cpu_begin(const struct cpu_options *options)
{
    cpu_end();
    memset(&counts, 0, sizeof counts);
    cpu_options = *options;
    if (cpu_options.shared_bytes == 0)
        cpu_options.shared_bytes = HOPPER_SHARED_BYTES;
    if (cpu_options.step_limit == 0)
        cpu_options.step_limit = STEP_LIMIT;
    if (cpu_options.silent_seconds == 0)
        cpu_options.silent_seconds = SILENT_SECONDS;
}

void cpu_end(void)
{
    for (int n = 0; n < arrays.count; n++)
        free(arrays.array[n].written);
    arrays.count = 0;
}

void cpu_array(const char *name, const void *base, int64_t bytes, enum cpu_content content)
{
    CHECK(arrays.count < CPU_MAX_ARRAYS, "more than %d arrays", CPU_MAX_ARRAYS);
    CHECK(bytes > 0 && bytes < (int64_t)1 << 32, "array %s has %" PRId64 " bytes", name, bytes);
    const size_t words = (size_t)(bytes + CPU_WORD - 1) / CPU_WORD;
    unsigned char *written = malloc(words);
    CHECK(written, "no host memory to watch array %s", name);
    memset(written, content == CPU_FILLED, words);
    arrays.array[arrays.count++] =
        (struct cpu_array){.name = name, .base = base, .bytes = bytes, .written = written};
}

const struct cpu_array *cpu_array_at(const void *at, int bytes)
{
    const char *address = at;
    for (int n = 0; n < arrays.count; n++) {
        const struct cpu_array *array = &arrays.array[n];
        if (address >= array->base && address - array->base + bytes <= array->bytes)
            return array;
    }
    return NULL;
}

const struct cpu_array *cpu_array_before(const void *at)
{
    const struct cpu_array *near = NULL;
    for (int n = 0; n < arrays.count; n++) {
        const struct cpu_array *array = &arrays.array[n];
        if (array->base <= (const char *)at && (!near || near->base < array->base))
            near = array;
    }
    return near;
}

const struct cpu_counts *cpu_counts(void)
{
    return &counts;
}

struct cpu_launch_counts *cpu_launch_begin(const char *kernel, const char *file)
{
    CHECK(counts.launches < CPU_MAX_LAUNCHES, "more than %d launches", CPU_MAX_LAUNCHES);
    struct cpu_launch_counts *launch = &counts.launch[counts.launches++];
    snprintf(launch->kernel, sizeof launch->kernel, "%s", kernel);
    launch->file = file;
    return launch;
}

void cpu_traffic_add(struct cpu_traffic *sum, const struct cpu_traffic *x)
{
    sum->accesses += x->accesses;
    sum->requests += x->requests;
    sum->bytes += x->bytes;
    sum->sectors += x->sectors;
    sum->wavefronts += x->wavefronts;
    sum->least_wavefronts += x->least_wavefronts;
}

static bool ends_in_cu(const char *file)
{
    const size_t length = strlen(file);
    return length > 3 && strcmp(file + length - 3, ".cu") == 0;
}

/* The kernel's own line through which the place was reached, if it is known. */
static struct cpu_line line_of(const struct cpu_launch_counts *launch,
                               const struct cpu_place *place)
{
    struct cpu_line line = {.file = place->at.file,
                            .line = place->at.line,
                            .array = place->array->name,
                            .shared = place->kind.shared,
                            .way = place->kind.way};
    const int kernel_line = place->at.origin >> 16;
    if (!ends_in_cu(line.file) && kernel_line > 0) {
        line.file = launch->file;
        line.line = kernel_line;
    }
    return line;
}

static bool same_line(const struct cpu_line *a, const struct cpu_line *b)
{
    return a->line == b->line && a->way == b->way && a->shared == b->shared &&
           strcmp(a->file, b->file) == 0 && strcmp(a->array, b->array) == 0;
}

static void add_line(struct cpu_launch_counts *launch, const struct cpu_place *place)
{
    const struct cpu_line line = line_of(launch, place);
    int n = 0;
    while (n < launch->lines && !same_line(&launch->line[n], &line))
        n++;
    if (n == launch->lines) {
        CHECK(n < CPU_MAX_LINES, "memory is touched at more than %d lines", CPU_MAX_LINES);
        launch->line[launch->lines++] = line;
    }
    launch->line[n].uneven |= place->uneven;
    cpu_traffic_add(&launch->line[n].traffic, &place->traffic);
}

void cpu_counts_join(struct cpu_launch_counts *launch, const struct worker *worker)
{
    launch->barriers += worker->counts.barriers;
    launch->warp_barriers += worker->counts.warp_barriers;
    launch->exchanges += worker->counts.exchanges;
    for (int n = 1; n < worker->places; n++) { /* 0 is no place */
        const struct cpu_place *place = &worker->place[n];
        cpu_traffic_add(place->kind.shared ? &launch->shared[place->kind.way]
                                           : &launch->hbm[place->kind.way],
                        &place->traffic);
        add_line(launch, place);
    }
}

struct cpu_traffic cpu_array_traffic(const struct cpu_launch_counts *launch, const char *array,
                                     enum cpu_way way)
{
    struct cpu_traffic sum = {0};
    for (int n = 0; n < launch->lines; n++) {
        const struct cpu_line *line = &launch->line[n];
        if (!line->shared && line->way == way && strcmp(line->array, array) == 0)
            cpu_traffic_add(&sum, &line->traffic);
    }
    return sum;
}
