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

static struct cpu_kind kind_of(uint64_t site)
{
    return (struct cpu_kind){.way = (enum cpu_way)(site & (CPU_SITE_SHARED - 1)),
                             .shared = site & CPU_SITE_SHARED,
                             .bytes = (int)(site >> 3 & 31)};
}

static inline bool is_place(const struct place *place, const char *at, uint64_t site,
                            const char *file)
{
    return place->site == site && place->file == file &&
           (uint64_t)(at - place->base) <= place->last;
}

static struct place *place_make(struct worker *worker, const char *at, uint64_t site,
                                const char *file)
{
    const struct cpu_kind kind = kind_of(site);
    const struct cpu_place where = {file, (int)(site >> 8 & 0xffffff), (int)(site >> 32)};
    const struct cpu_array *array = array_of(at, kind, &where);
    CHECK(worker->places < CPU_MAX_PLACES,
          "a kernel that accesses memory at more than %d places", CPU_MAX_PLACES);
    const int number = worker->places++;
    struct place *place = &worker->place[number];
    /* The room of what was there in an earlier launch is reused. */
    uint32_t *const offset = place->offset;
    const uint32_t capacity = place->capacity;
    *place =
        (struct place){.site = site,
                       .file = file,
                       .base = array->base,
                       .last = (uint64_t)(array->bytes - kind.bytes),
                       .bytes = (uint32_t)kind.bytes,
                       .number = (uint8_t)number,
                       .one_word = kind.bytes == CPU_WORD && !(cpu_now.traced && !kind.shared),
                       .written = array->written,
                       .offset = offset,
                       .after = {place, place},
                       .at = where,
                       .kind = kind,
                       .array = array,
                       .capacity = capacity};
    if (kind.shared)
        place->words = &worker->words[(array->base - worker->shared) / CPU_WORD];
    return place;
}

static struct place *place_find(struct worker *worker, const char *at, uint64_t site,
                                const char *file)
{
    for (int n = 0; n < worker->places; n++)
        if (is_place(&worker->place[n], at, site, file))
            return &worker->place[n];
    return place_make(worker, at, site, file);
}

/* A loop leaves a place for itself or for where it went the last times: the access is at none
 * of the first two of these. */
static __attribute__((noinline)) void access_elsewhere(const void *at, uint64_t site,
                                                       const char *file)
{
    struct worker *worker = cpu_worker;
    struct place *last = worker->last, *const before = last->after[0];
    if (is_place(last->after[1], at, site, file))
        last->after[0] = last->after[1];
    else
        last->after[0] = place_find(worker, at, site, file);
    last->after[1] = before;
    worker->last = last->after[0];
    cpu_access(at, site, file);
}

static void place_grow(struct place *place)
{
    const uint32_t before = place->capacity, after = before ? 2 * before : 16;
    uint32_t *offset = realloc(place->offset, (size_t)after * CPU_WARP * sizeof *offset);
    CHECK(offset, "no host memory for %u requests", after);
    memset(offset + (size_t)before * CPU_WARP, 0,
           (size_t)(after - before) * CPU_WARP * sizeof *offset);
    place->offset = offset;
    place->capacity = after;
}

/* The lane has run for long, or the place has no room for one more access of it. */
static __attribute__((noinline)) void access_prepared(const void *at, uint64_t site,
                                                      const char *file)
{
    struct worker *worker = cpu_worker;
    if (worker->run_accesses >= PAUSE_ACCESSES)
        cpu_pause(file, (int)(site >> 8 & 0xffffff));
    struct place *place = worker->last;
    if (place->room == 0)
        worker->touched_place[worker->touched++] = place;
    if (place->made[cpu_now.lane] == place->capacity)
        place_grow(place);
    place->room = place->capacity;
    cpu_access(at, site, file);
}

static __attribute__((noinline)) void stop_misaligned(const struct place *place,
                                                      uint64_t offset)
{
    cpu_stop(place->at.file, place->at.line,
             "%s of %d bytes at %" PRIu64 " bytes after the start of %s: not a multiple%s",
             verbs[place->kind.way], place->kind.bytes, offset, place->array->name,
             cpu_called_at(&place->at).text);
}

static __attribute__((noinline)) void stop_unwritten(const struct place *place, uint32_t offset)
{
    cpu_stop(place->at.file, place->at.line,
             "%s of element %u of %s, which nobody has written%s", verbs[place->kind.way],
             offset / (uint32_t)place->kind.bytes, place->array->name,
             cpu_called_at(&place->at).text);
}

/* Of the access at offset, one word. Blocks on other OpenMP threads may look at the same. */
static inline void access_hbm_word(const struct place *place, uint32_t offset, uint32_t word,
                                   enum cpu_way way)
{
    if (way == CPU_STORE)
        __atomic_store_n(&place->written[word], 1, __ATOMIC_RELAXED);
    else if (!__atomic_load_n(&place->written[word], __ATOMIC_RELAXED))
        stop_unwritten(place, offset);
}

static __attribute__((noinline)) void access_hbm(struct worker *worker,
                                                 const struct place *place, uint32_t offset)
{
    const enum cpu_way way = place->kind.way;
    const uint32_t end = offset + place->bytes;
    if (cpu_now.traced)
        (way == CPU_LOAD ? worker->read_bytes : worker->written_bytes)[cpu_thread_number()] +=
            place->bytes;
    for (uint32_t word = offset / CPU_WORD; word * CPU_WORD < end; word++)
        access_hbm_word(place, offset, word, way);
}

static __attribute__((noinline)) void access_shared(struct worker *worker,
                                                    const struct place *place, uint32_t offset)
{
    const uint32_t end = offset + place->bytes;
    bool read = place->kind.way == CPU_LOAD;
    for (uint32_t word = offset / CPU_WORD; read && word * CPU_WORD < end; word++)
        read = cpu_shared_read(worker, &place->words[word], place->number);
    if (!read)
        cpu_shared_check(worker, offset, place);
}

static __attribute__((noinline)) void
read_shared_word(struct worker *worker, const struct place *place, uint32_t offset)
{
    if (!cpu_shared_read(worker, &place->words[offset / CPU_WORD], place->number))
        cpu_shared_check(worker, offset, place);
}

/* Everything waits for this one: what is rare is done by functions that it ends in, so that it
 * needs no stack. */
void cpu_access(const void *at, uint64_t site, const char *file)
{
    struct worker *worker = cpu_worker;
    struct place *place = worker->last;
    if (!is_place(place, at, site, file)) {
        place = place->after[0];
        if (!is_place(place, at, site, file))
            return access_elsewhere(at, site, file);
        worker->last = place;
    }
    const uint32_t lane = (uint32_t)cpu_now.lane, made = place->made[lane];
    if (made == place->room || worker->run_accesses >= PAUSE_ACCESSES)
        return access_prepared(at, site, file);
    const uint64_t offset = (uint64_t)((const char *)at - place->base);
    if (offset & (place->bytes - 1))
        return stop_misaligned(place, offset);
    worker->run_accesses++;
    place->made[lane] = made + 1;
    place->offset[made * CPU_WARP + lane] = (uint32_t)offset;
    const enum cpu_way way = (enum cpu_way)(site & (CPU_SITE_SHARED - 1));
    if (site & CPU_SITE_SHARED) {
        if (place->one_word && way == CPU_LOAD)
            return read_shared_word(worker, place, (uint32_t)offset);
        return access_shared(worker, place, (uint32_t)offset);
    }
    if (!place->one_word)
        return access_hbm(worker, place, (uint32_t)offset);
    access_hbm_word(place, (uint32_t)offset, (uint32_t)offset / CPU_WORD, way);
}

void cpu_requests_begin(struct worker *worker)
{
    worker->place[0] = (struct place){.array = &nothing,
                                      .offset = worker->place[0].offset,
                                      .capacity = worker->place[0].capacity,
                                      .after = {&worker->place[0], &worker->place[0]}};
    worker->places = 1;
    worker->touched = 0;
    worker->last = &worker->place[0];
    memset(&worker->counts, 0, sizeof worker->counts);
}

/* The n-th accesses of the lanes at a place. */
struct request {
    uint32_t active;        /* bit k: lane k takes part */
    const uint32_t *offset; /* [CPU_WARP]; any number for other lanes */
};

/* What a request costs: sectors of HBM, passes over the banks of shared memory. */
struct cost {
    int sectors, wavefronts, least_wavefronts;
};

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

/* All lanes of the warp, each so many bytes behind the one before. */
static bool evenly_spaced(const struct request *r, uint32_t bytes)
{
    uint32_t other = 0;
    for (uint32_t lane = 0; lane < CPU_WARP; lane++)
        other |= (r->offset[lane] - r->offset[0]) ^ (lane * bytes);
    return other == 0 && r->active == 0xffffffff;
}

/* All lanes of the warp, among as many words as there are banks: no two words share one. */
static bool within_banks(const struct request *r)
{
    uint32_t least = r->offset[0], most = r->offset[0];
    for (int lane = 1; lane < CPU_WARP; lane++) {
        least = r->offset[lane] < least ? r->offset[lane] : least;
        most = r->offset[lane] > most ? r->offset[lane] : most;
    }
    return most - least < BANKS * BANK_BYTES && r->active == 0xffffffff;
}

static struct cost cost_of_shared(const struct place *place, const struct request *r)
{
    const int bytes = place->kind.bytes;
    const bool is_load = place->kind.way == CPU_LOAD;
    struct cost cost = {.wavefronts = 1, .least_wavefronts = 1};
    if (bytes == CPU_WORD && within_banks(r))
        return cost;
    cost.wavefronts = bank_wavefronts(r->offset, r->active, bytes, is_load);
    if (cost.wavefronts > 1)
        cost.least_wavefronts = bank_least_wavefronts(r->offset, r->active, bytes, is_load);
    return cost;
}

static struct cost cost_of(const struct place *place, const struct request *r)
{
    if (place->kind.shared)
        return cost_of_shared(place, r);
    if (evenly_spaced(r, place->bytes) || evenly_spaced(r, 0)) {
        const uint32_t first = r->offset[0], last = r->offset[CPU_WARP - 1];
        return (struct cost){.sectors = (int)(last / SECTOR_BYTES - first / SECTOR_BYTES) + 1};
    }
    return (struct cost){.sectors = sectors_of(r)};
}

/* Does the request cost what the one before it at the place did? All of its accesses lie as far
 * from that one's, by whole sectors; banks repeat sooner. */
static bool costs_the_same(const struct request *r, const struct request *before)
{
    const uint32_t *a = r->offset, *b = before->offset;
    const uint32_t shift = a[0] - b[0];
    uint32_t other = 0;
    for (int lane = 0; lane < CPU_WARP; lane++)
        other |= (a[lane] - b[lane]) ^ shift;
    return other == 0 && r->active == before->active && shift % SECTOR_BYTES == 0;
}

static void add_request(struct place *place, const struct request *request,
                        const struct cost *cost)
{
    struct cpu_traffic *sum = &place->traffic;
    const int lanes = __builtin_popcount(request->active);
    sum->requests++;
    sum->accesses += lanes;
    sum->bytes += (int64_t)lanes * place->kind.bytes;
    sum->sectors += cost->sectors;
    sum->wavefronts += cost->wavefronts;
    sum->least_wavefronts += cost->least_wavefronts;
}

static struct request request_of(const struct place *place, uint32_t n, uint32_t fewest)
{
    struct request request = {0xffffffff, place->offset + (size_t)n * CPU_WARP};
    if (n < fewest)
        return request;
    request.active = 0;
    for (uint32_t lane = 0; lane < CPU_WARP; lane++)
        request.active |= (uint32_t)(n < place->made[lane]) << lane;
    return request;
}

static void merge_place(struct place *place)
{
    uint32_t most = 0, fewest = UINT32_MAX, least = UINT32_MAX;
    struct request before = {0};
    struct cost cost;
    for (int lane = 0; lane < CPU_WARP; lane++) {
        const uint32_t made = place->made[lane];
        most = made > most ? made : most;
        fewest = made < fewest ? made : fewest;
        least = made - 1 < least ? made - 1 : least; /* without those that were never here */
    }
    place->uneven |= most > least + 2;
    for (uint32_t n = 0; n < most; n++) {
        const struct request request = request_of(place, n, fewest);
        if (n == 0 || !costs_the_same(&request, &before))
            cost = cost_of(place, &request);
        add_request(place, &request, &cost);
        before = request;
    }
    place->made_of_all = (made_of_all){0};
    place->room = 0;
}

void cpu_requests_merge(struct worker *worker)
{
    for (int n = 0; n < worker->touched; n++)
        merge_place(worker->touched_place[n]);
    worker->touched = 0;
}
