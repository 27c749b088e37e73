/* Accesses of lanes as requests of warps.
 *
 * Only one warp of an OpenMP thread runs between two points where it converges, its lanes one
 * after the other: what is pending belongs to that warp, and a lane's n-th access at a place
 * goes to the place's n-th request. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/sectors.h"
#include "core/status.h"
#include "cuda/cpu/worker.h"
#include "models/banks.h"

enum {
    /* After so many accesses a lane waits for the others of its warp, so that pending requests
     * take no more than a few MB however long a loop is. */
    PAUSE_ACCESSES = 1 << 15,
};

/* Of the place before the first access, which no access can be at. */
static const struct cpu_array nothing;

static const char *const verbs[CPU_WAYS] = {
    [CPU_LOAD] = "load", [CPU_STORE] = "store", [CPU_REDUCE] = "atomic"};

static bool inside(const struct cpu_array *array, const char *at, int bytes)
{
    return at >= array->base && at - array->base + bytes <= array->bytes;
}

/* Names the array that an access outside of all may have meant. */
_Noreturn static void stop_outside(const char *at, struct cpu_kind kind,
                                   const struct cpu_place *place)
{
    const struct worker *worker = cpu_worker;
    const bool shared = kind.shared;
    const struct cpu_array *near = NULL;
    if (!shared)
        near = cpu_array_before(at);
    for (int n = 0; shared && n < worker->regions; n++) {
        const struct cpu_array *region = &worker->region[n];
        if (region->base <= at && (!near || near->base < region->base))
            near = region;
    }
    const char *all = shared ? "the block's shared memory" : "all arrays";
    if (!near)
        cpu_stop(place->file, place->line, "%s of %d bytes outside %s%s", verbs[kind.way],
                 kind.bytes, all, cpu_called_at(place).text);
    cpu_stop(place->file, place->line,
             "%s of %d bytes outside %s: %" PRId64 " bytes after the start of %s, which has "
             "%" PRId64 "%s",
             verbs[kind.way], kind.bytes, all, (int64_t)(at - near->base), near->name,
             near->bytes, cpu_called_at(place).text);
}

static const struct cpu_array *array_of(const char *at, struct cpu_kind kind,
                                        const struct cpu_place *place)
{
    const struct worker *worker = cpu_worker;
    const struct cpu_array *array = kind.shared ? NULL : cpu_array_at(at, kind.bytes);
    for (int n = 0; kind.shared && !array && n < worker->regions; n++)
        if (inside(&worker->region[n], at, kind.bytes))
            array = &worker->region[n];
    if (!array)
        stop_outside(at, kind, place);
    return array;
}

static inline bool is_place(const struct place *place, struct cpu_place at, const char *address,
                            struct cpu_kind kind)
{
    return place->at.line == at.line && place->at.origin == at.origin &&
           place->at.file == at.file && memcmp(&place->kind, &kind, sizeof kind) == 0 &&
           inside(place->array, address, kind.bytes);
}

static struct place *place_make(struct worker *worker, struct cpu_place at, const char *address,
                                struct cpu_kind kind)
{
    const struct cpu_array *array = array_of(address, kind, &at);
    CHECK(worker->places < CPU_MAX_PLACES,
          "a kernel that accesses memory at more than %d places", CPU_MAX_PLACES);
    const int number = worker->places++;
    struct place *place = &worker->place[number];
    /* The room of what was there in an earlier launch is reused. */
    uint32_t *const offset = place->offset;
    const uint32_t capacity = place->capacity;
    *place = (struct place){.at = at,
                            .kind = kind,
                            .array = array,
                            .after = {place, place},
                            .number = (uint8_t)number,
                            .offset = offset,
                            .capacity = capacity};
    return place;
}

static __attribute__((noinline)) struct place *place_find(struct worker *worker,
                                                          struct cpu_place at,
                                                          const char *address,
                                                          struct cpu_kind kind)
{
    for (int n = 0; n < worker->places; n++)
        if (is_place(&worker->place[n], at, address, kind))
            return &worker->place[n];
    return place_make(worker, at, address, kind);
}

/* A loop leaves a place for itself or for where it went the last times. */
static inline struct place *place_of(struct worker *worker, struct cpu_place at,
                                     const char *address, struct cpu_kind kind)
{
    struct place *last = worker->last;
    if (is_place(last, at, address, kind))
        return last;
    if (!is_place(last->after[0], at, address, kind)) {
        struct place *const before = last->after[0];
        if (is_place(last->after[1], at, address, kind))
            last->after[0] = last->after[1];
        else
            last->after[0] = place_find(worker, at, address, kind);
        last->after[1] = before;
    }
    return worker->last = last->after[0];
}

static __attribute__((noinline)) void stop_unwritten(const struct place *place, uint32_t offset)
{
    cpu_stop(place->at.file, place->at.line,
             "%s of element %u of %s, which nobody has written%s", verbs[place->kind.way],
             offset / place->kind.bytes, place->array->name, cpu_called_at(&place->at).text);
}

/* Blocks on other OpenMP threads may look at the same words. */
static inline void access_hbm(struct worker *worker, const struct place *place, uint32_t offset)
{
    unsigned char *written = place->array->written;
    const uint32_t end = offset + place->kind.bytes;
    for (uint32_t word = offset / CPU_WORD; word * CPU_WORD < end; word++) {
        if (place->kind.way == CPU_STORE)
            __atomic_store_n(&written[word], 1, __ATOMIC_RELAXED);
        else if (!__atomic_load_n(&written[word], __ATOMIC_RELAXED))
            stop_unwritten(place, offset);
    }
    (place->kind.way == CPU_LOAD ? worker->read_bytes
                                 : worker->written_bytes)[cpu_now.number] += place->kind.bytes;
}

static void place_grow(struct place *place)
{
    const uint32_t before = place->capacity, after = before ? 2 * before : 16;
    uint32_t *offset = calloc((size_t)CPU_WARP * after, sizeof *offset);
    CHECK(offset, "no host memory for %u requests", after);
    for (uint32_t lane = 0; lane < CPU_WARP && before > 0; lane++)
        memcpy(offset + lane * after, place->offset + lane * before, before * sizeof *offset);
    free(place->offset);
    place->offset = offset;
    place->capacity = after;
}

/* The place has room for one more access of the running lane. */
static __attribute__((noinline)) void place_prepare(struct worker *worker, struct place *place)
{
    if (!place->touched) {
        place->touched = true;
        worker->touched_place[worker->touched++] = place;
    }
    if (place->made[cpu_now.lane] == place->capacity)
        place_grow(place);
}

static __attribute__((noinline)) void stop_misaligned(const struct place *place,
                                                      uint64_t offset)
{
    cpu_stop(place->at.file, place->at.line,
             "%s of %d bytes at %" PRIu64 " bytes after the start of %s: not a multiple%s",
             verbs[place->kind.way], place->kind.bytes, offset,
             place->kind.shared ? "shared memory" : place->array->name,
             cpu_called_at(&place->at).text);
}

/* Short, and what is rare in functions of its own: everything waits for this one. */
void cpu_access(const void *at, struct cpu_kind kind, const char *file, int line, int origin)
{
    struct worker *worker = cpu_worker;
    if (worker->run_accesses++ == PAUSE_ACCESSES)
        cpu_pause(file, line);
    struct place *place = place_of(worker, (struct cpu_place){file, line, origin}, at, kind);
    const char *start = kind.shared ? worker->shared : place->array->base;
    const uint64_t offset = (uint64_t)((const char *)at - start);
    if (offset & (uint64_t)(kind.bytes - 1))
        stop_misaligned(place, offset);
    if (!kind.shared)
        access_hbm(worker, place, (uint32_t)offset);
    else if (kind.way != CPU_LOAD || kind.bytes > CPU_WORD ||
             !cpu_shared_read_again(worker, (uint32_t)offset))
        cpu_shared_check(worker, (uint32_t)offset, place);
    const uint32_t lane = (uint32_t)cpu_now.lane;
    if (place->made[lane] == place->capacity || !place->touched)
        place_prepare(worker, place);
    place->offset[lane * place->capacity + place->made[lane]++] = (uint32_t)offset;
}

void cpu_requests_begin(struct worker *worker)
{
    worker->place[0] =
        (struct place){.array = &nothing, .after = {&worker->place[0], &worker->place[0]}};
    worker->places = 1;
    worker->touched = 0;
    worker->last = &worker->place[0];
    memset(&worker->counts, 0, sizeof worker->counts);
}

/* The n-th accesses of the lanes at a place. */
struct request {
    uint32_t active; /* bit k: lane k takes part */
    uint32_t offset[CPU_WARP];
};

static void gather(struct request *request, const struct place *place, uint32_t n)
{
    const uint32_t *offset = place->offset + n;
    uint32_t active = 0;
    for (uint32_t lane = 0; lane < CPU_WARP; lane++, offset += place->capacity) {
        active |= (uint32_t)(n < place->made[lane]) << lane;
        request->offset[lane] = *offset; /* of some earlier access, if the lane has none */
    }
    request->active = active;
}

/* Distinct sectors. No element lies across a sector's edge. */
static int sectors_of(const struct request *request)
{
    int64_t address[CPU_WARP];
    int active = 0, sectors = 0;
    bool ascending = true;
    for (int lane = 0; lane < CPU_WARP; lane++) {
        if (!(request->active >> lane & 1))
            continue;
        address[active] = request->offset[lane];
        if (active == 0 || address[active] / SECTOR_BYTES != address[active - 1] / SECTOR_BYTES)
            sectors++;
        ascending &= active == 0 || address[active] >= address[active - 1];
        active++;
    }
    return ascending ? sectors : sectors_of_request(address, active);
}

static void add_request(struct place *place, const struct request *request)
{
    struct cpu_traffic *sum = &place->traffic;
    const int lanes = __builtin_popcount(request->active), bytes = place->kind.bytes;
    const bool is_load = place->kind.way == CPU_LOAD;
    sum->requests++;
    sum->accesses += lanes;
    sum->bytes += (int64_t)lanes * bytes;
    if (place->kind.shared) {
        const int passes = bank_wavefronts(request->offset, request->active, bytes, is_load);
        sum->wavefronts += passes;
        sum->least_wavefronts +=
            passes == 1
                ? 1
                : bank_least_wavefronts(request->offset, request->active, bytes, is_load);
    } else {
        sum->sectors += sectors_of(request);
    }
}

void cpu_requests_merge(struct worker *worker)
{
    for (int n = 0; n < worker->touched; n++) {
        struct place *place = worker->touched_place[n];
        uint32_t most = 0, least = UINT32_MAX;
        for (int lane = 0; lane < CPU_WARP; lane++) {
            most = place->made[lane] > most ? place->made[lane] : most;
            /* those that were never here took another way */
            least = place->made[lane] - 1 < least ? place->made[lane] - 1 : least;
        }
        place->uneven |= most > least + 2;
        for (uint32_t k = 0; k < most; k++) {
            struct request request;
            gather(&request, place, k);
            add_request(place, &request);
        }
        memset(place->made, 0, sizeof place->made);
        place->touched = false;
    }
    worker->touched = 0;
}
