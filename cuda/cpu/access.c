/* Accesses of lanes, each at a place of the kernel: found, checked, and kept until they are
 * requests of a warp (requests.c).
 *
 * Only one warp of an OpenMP thread runs between two points where it converges, its lanes one
 * after the other: what is pending belongs to that warp, and a lane's n-th access at a place
 * goes to the place's n-th request. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "cuda/cpu/worker.h"

enum {
    /* After so many accesses at a place a lane waits for the others of its warp, so that
     * pending requests take no more than a few MB however long a loop is. */
    MOST_PENDING = 1 << 13,
    FIRST_PENDING = 16,
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
                                   const struct cpu_where *where)
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
        cpu_stop(where->file, where->line, "%s of %d bytes outside %s%s", verbs[kind.way],
                 kind.bytes, all, cpu_called_at(where).text);
    cpu_stop(where->file, where->line,
             "%s of %d bytes outside %s: %" PRId64 " bytes after the start of %s, which has "
             "%" PRId64 "%s",
             verbs[kind.way], kind.bytes, all, (int64_t)(at - near->base), near->name,
             near->bytes, cpu_called_at(where).text);
}

static const struct cpu_array *array_of(const char *at, struct cpu_kind kind,
                                        const struct cpu_where *where)
{
    const struct worker *worker = cpu_worker;
    const struct cpu_array *array = kind.shared ? NULL : cpu_array_at(at, kind.bytes);
    for (int n = 0; kind.shared && !array && n < worker->regions; n++)
        if (inside(&worker->region[n], at, kind.bytes))
            array = &worker->region[n];
    if (!array)
        stop_outside(at, kind, where);
    return array;
}

static struct cpu_kind kind_of(uint64_t site)
{
    return (struct cpu_kind){.way = (enum cpu_way)(site & (CPU_SITE_SHARED - 1)),
                             .shared = site & CPU_SITE_SHARED,
                             .bytes = (int)(site >> 3 & 31)};
}

static bool is_place(const struct cpu_place *place, const char *at, uint64_t site,
                     const char *file)
{
    return place->site == site && place->file == file &&
           inside(place->array, at, place->kind.bytes);
}

static void place_grow(struct cpu_place *place)
{
    const size_t before = place->room, after = before ? 2 * before : CPU_WARP * FIRST_PENDING;
    size_t next[CPU_WARP];
    for (int lane = 0; lane < CPU_WARP; lane++)
        next[lane] = (size_t)(place->next[lane] - place->offset);
    place->offset = realloc(place->offset, after * sizeof *place->offset);
    CHECK(place->offset, "no host memory for %zu requests", after / CPU_WARP);
    memset(place->offset + before, 0, (after - before) * sizeof *place->offset);
    place->room = after;
    place->end = place->offset + after;
    for (int lane = 0; lane < CPU_WARP; lane++)
        place->next[lane] = place->offset + next[lane];
}

static struct cpu_place *place_make(struct worker *worker, const char *at, uint64_t site,
                                    const char *file)
{
    const struct cpu_kind kind = kind_of(site);
    const struct cpu_where where = {file, (int)(site >> 8 & 0xffffff), (int)(site >> 32)};
    const struct cpu_array *array = array_of(at, kind, &where);
    const bool bytes_of_steps = cpu_now.traced && !kind.shared;
    CHECK(worker->places < CPU_MAX_PLACES,
          "a kernel that accesses memory at more than %d places", CPU_MAX_PLACES);
    const int number = worker->places++;
    struct cpu_place *place = &worker->place[number];
    /* The room of what was there in an earlier launch is reused. */
    if (place->room == 0)
        place_grow(place);
    uint32_t *const offset = place->offset;
    const size_t room = place->room;
    *place = (struct cpu_place){.quick = cpu_may_be_quick(kind) && !bytes_of_steps ? site : 0,
                                .file = file,
                                .base = array->base,
                                .last = (uint64_t)(array->bytes / kind.bytes) - 1,
                                .offset = offset,
                                .room = room,
                                .number = (uint32_t)number,
                                .beside = &worker->place[0],
                                .site = site,
                                .at = where,
                                .kind = kind,
                                .array = array};
    if (kind.shared)
        place->words = &worker->words[(array->base - worker->shared) / CPU_WORD];
    else
        place->written = array->written;
    cpu_requests_clear(place);
    return place;
}

/* Perhaps the one in the site's slot, or beside it. */
static struct cpu_place *place_find(struct worker *worker, const char *at, uint64_t site,
                                    const char *file, struct cpu_place *in_slot)
{
    if (is_place(in_slot, at, site, file))
        return in_slot;
    if (is_place(in_slot->beside, at, site, file))
        return in_slot->beside;
    for (int n = 0; n < worker->places; n++)
        if (is_place(&worker->place[n], at, site, file))
            return &worker->place[n];
    return place_make(worker, at, site, file);
}

void cpu_touch(struct cpu_place *place)
{
    struct worker *worker = cpu_worker;
    if (place->end == place->offset)
        worker->touched[worker->touches++] = place;
    place->end = place->offset + place->room;
}

static void stop_misaligned(const struct cpu_place *place, uint64_t offset)
{
    cpu_stop(place->at.file, place->at.line,
             "%s of %d bytes at %" PRIu64 " bytes after the start of %s: not a multiple%s",
             verbs[place->kind.way], place->kind.bytes, offset, place->array->name,
             cpu_called_at(&place->at).text);
}

static void stop_unwritten(const struct cpu_place *place, uint32_t offset)
{
    cpu_stop(place->at.file, place->at.line,
             "%s of element %u of %s, which nobody has written%s", verbs[place->kind.way],
             offset / (uint32_t)place->kind.bytes, place->array->name,
             cpu_called_at(&place->at).text);
}

/* Blocks on other OpenMP threads may look at the same. */
static void access_hbm(struct worker *worker, const struct cpu_place *place, uint32_t offset)
{
    const enum cpu_way way = place->kind.way;
    const uint32_t bytes = (uint32_t)place->kind.bytes, end = offset + bytes;
    if (cpu_now.traced)
        (way == CPU_LOAD ? worker->read_bytes : worker->written_bytes)[cpu_thread_number()] +=
            bytes;
    for (uint32_t word = offset / CPU_WORD; word * CPU_WORD < end; word++) {
        if (way == CPU_STORE)
            __atomic_store_n(&place->written[word], 1, __ATOMIC_RELAXED);
        else if (!__atomic_load_n(&place->written[word], __ATOMIC_RELAXED))
            stop_unwritten(place, offset);
    }
}

void cpu_access(const void *at, uint64_t site, const char *file)
{
    struct worker *worker = cpu_worker;
    struct cpu_place **slot = &cpu_now.slot[cpu_slot(site)];
    struct cpu_place *place = place_find(worker, at, site, file, *slot);
    if (place != *slot && place != (*slot)->beside) {
        place->beside = *slot;
        *slot = place;
    }
    cpu_now.last = place;
    const uint64_t offset = (uint64_t)((const char *)at - place->base);
    if (offset & (uint64_t)(place->kind.bytes - 1))
        stop_misaligned(place, offset);
    uint32_t **const next = &place->next[cpu_now.lane];
    if (*next - place->offset >= CPU_WARP * MOST_PENDING)
        cpu_pause(file, place->at.line);
    cpu_touch(place);
    if (*next >= place->end)
        place_grow(place);
    **next = (uint32_t)offset;
    *next += CPU_WARP;
    if (place->kind.shared)
        cpu_shared_check(worker, (uint32_t)offset, place);
    else
        access_hbm(worker, place, (uint32_t)offset);
}

void cpu_access_begin(struct worker *worker)
{
    struct cpu_place *none = &worker->place[0];
    *none = (struct cpu_place){
        .array = &nothing, .beside = none, .offset = none->offset, .room = none->room};
    worker->places = 1;
    memset(&worker->counts, 0, sizeof worker->counts);
    cpu_now.last = none;
    for (int n = 0; n < 1 << CPU_SLOT_BITS; n++)
        cpu_now.slot[n] = none;
}
