/* Accesses of lanes as requests of warps, and the arrays that they may touch.
 *
 * Only one warp of an OpenMP thread runs between two points where it converges, its lanes one
 * after the other: what is pending belongs to that warp, and a lane's n-th access at a place
 * goes to the place's n-th request. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sectors.h"
#include "core/status.h"
#include "cuda/cpu/engine.h"

enum { MAX_PLACES = 64, WORD_BYTES = 4 };

struct array {
    const char *name;
    const char *base;
    int64_t bytes;
    unsigned char *written; /* by word; owned */
};

static struct {
    int count;
    struct array array[CPU_MAX_ARRAYS];
} arrays;
static struct cpu_counts counts;

struct request {
    int active;
    int64_t address[CPU_WARP];
};

/* A place of the kernel with its pending requests. */
struct place {
    struct cpu_place at;
    const struct array *array;
    enum cpu_way way;
    int element_bytes;
    int next;           /* the request that the running lane's next access here joins */
    int used, capacity; /* requests */
    struct request *request;
};

static __thread struct {
    int count, hint;
    struct place place[MAX_PLACES];
    struct cpu_launch_counts counts;
} pending;

void cpu_begin(void)
{
    cpu_end();
    memset(&counts, 0, sizeof counts);
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
    CHECK(bytes > 0, "array %s has %" PRId64 " bytes", name, bytes);
    const size_t words = (size_t)(bytes + WORD_BYTES - 1) / WORD_BYTES;
    unsigned char *written = malloc(words);
    CHECK(written, "no host memory to watch array %s", name);
    memset(written, content == CPU_FILLED, words);
    arrays.array[arrays.count++] = (struct array){name, base, bytes, written};
}

const struct cpu_counts *cpu_counts(void)
{
    return &counts;
}

struct cpu_launch_counts *cpu_launch_begin(const char *kernel)
{
    CHECK(counts.launches < CPU_MAX_LAUNCHES, "more than %d launches", CPU_MAX_LAUNCHES);
    struct cpu_launch_counts *launch = &counts.launch[counts.launches++];
    snprintf(launch->kernel, sizeof launch->kernel, "%s", kernel);
    return launch;
}

static const char *const verbs[CPU_WAYS] = {[CPU_LOAD] = "load", [CPU_STORE] = "store"};

/* The array that an access may have meant: the last that begins at or before it. */
static void stop_outside(const char *at, int bytes, enum cpu_way way,
                         const struct cpu_place *place)
{
    const struct array *near = NULL;
    for (int n = 0; n < arrays.count; n++)
        if (arrays.array[n].base <= at && (!near || near->base < arrays.array[n].base))
            near = &arrays.array[n];
    if (!near)
        cpu_stop(place->file, place->line, "%s of %d bytes outside all arrays", verbs[way],
                 bytes);
    cpu_stop(place->file, place->line,
             "%s of %d bytes outside all arrays: %" PRId64 " bytes after the start of %s, "
             "which has %" PRId64,
             verbs[way], bytes, (int64_t)(at - near->base), near->name, near->bytes);
}

static const struct array *array_of(const char *at, int bytes, enum cpu_way way,
                                    const struct cpu_place *place)
{
    for (int n = 0; n < arrays.count; n++) {
        const struct array *array = &arrays.array[n];
        if (at >= array->base && at - array->base + bytes <= array->bytes)
            return array;
    }
    stop_outside(at, bytes, way, place);
    return NULL;
}

/* Blocks on other OpenMP threads may look at the same words. */
static void watch(const struct array *array, int64_t offset, int bytes, enum cpu_way way,
                  const struct cpu_place *place)
{
    for (int64_t word = offset / WORD_BYTES; word * WORD_BYTES < offset + bytes; word++) {
        if (way == CPU_STORE)
            __atomic_store_n(&array->written[word], 1, __ATOMIC_RELAXED);
        else if (!__atomic_load_n(&array->written[word], __ATOMIC_RELAXED))
            cpu_stop(place->file, place->line,
                     "load of element %" PRId64 " of %s, which nobody has written",
                     offset / bytes, array->name);
    }
}

static bool is_place(const struct place *place, const struct cpu_place *at,
                     const struct array *array, enum cpu_way way)
{
    return place->at.line == at->line && place->at.origin == at->origin &&
           place->array == array && place->way == way && place->at.file == at->file;
}

/* Places follow each other as they did for the lane before: the next is tried first. */
static struct place *place_of(const struct cpu_place *at, const struct array *array,
                              enum cpu_way way, int bytes)
{
    if (pending.hint >= pending.count)
        pending.hint = 0;
    for (int n = pending.hint; n < pending.count; n++)
        if (is_place(&pending.place[n], at, array, way))
            return &pending.place[n];
    for (int n = 0; n < pending.hint; n++)
        if (is_place(&pending.place[n], at, array, way))
            return &pending.place[n];
    CHECK(pending.count < MAX_PLACES, "a kernel with more than %d places", MAX_PLACES);
    struct place *place = &pending.place[pending.count++];
    /* The requests of what was there in an earlier launch are reused. */
    place->at = *at;
    place->array = array;
    place->way = way;
    place->element_bytes = bytes;
    place->next = place->used = 0;
    return place;
}

static void place_grow(struct place *place)
{
    place->capacity = place->capacity ? 2 * place->capacity : 16;
    place->request = realloc(place->request, (size_t)place->capacity * sizeof *place->request);
    CHECK(place->request, "no host memory for %d requests", place->capacity);
}

void cpu_observe(const void *at, int bytes, enum cpu_way way, const struct cpu_place *at_place)
{
    const struct array *array = array_of(at, bytes, way, at_place);
    const int64_t offset = (const char *)at - array->base;
    watch(array, offset, bytes, way, at_place);
    struct place *place = place_of(at_place, array, way, bytes);
    pending.hint = (int)(place - pending.place) + 1;
    if (place->next == place->used) {
        if (place->used == place->capacity)
            place_grow(place);
        place->request[place->used++].active = 0;
    }
    struct request *request = &place->request[place->next++];
    request->address[request->active++] = offset;
}

void cpu_requests_begin(void)
{
    pending.count = pending.hint = 0;
    memset(&pending.counts, 0, sizeof pending.counts);
}

void cpu_requests_lane(void)
{
    for (int n = 0; n < pending.count; n++)
        pending.place[n].next = 0;
    pending.hint = 0;
}

void cpu_requests_merge(void)
{
    struct cpu_launch_counts *sum = &pending.counts;
    for (int n = 0; n < pending.count; n++) {
        struct place *place = &pending.place[n];
        for (int k = 0; k < place->used; k++) {
            const struct request *request = &place->request[k];
            sum->accesses[place->way] += request->active;
            sum->bytes[place->way] += (int64_t)request->active * place->element_bytes;
            sum->sectors[place->way] += sectors_of_request(request->address, request->active);
        }
        sum->requests[place->way] += place->used;
        place->used = 0;
    }
}

void cpu_requests_join(struct cpu_launch_counts *launch)
{
    for (int way = 0; way < CPU_WAYS; way++) {
        launch->accesses[way] += pending.counts.accesses[way];
        launch->requests[way] += pending.counts.requests[way];
        launch->bytes[way] += pending.counts.bytes[way];
        launch->sectors[way] += pending.counts.sectors[way];
    }
}
