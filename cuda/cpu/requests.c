/* Accesses of lanes as requests of warps, and what those cost. */
#include <string.h>

#include "core/sectors.h"
#include "cuda/cpu/worker.h"
#include "models/banks.h"

/* The n-th accesses of the lanes at a place. */
struct request {
    uint32_t active;        /* bit k: lane k takes part */
    const uint32_t *offset; /* [CPU_WARP]; any number for other lanes */
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

static struct cpu_cost cost_of_shared(const struct cpu_place *place, const struct request *r)
{
    const int bytes = place->kind.bytes;
    const bool is_load = place->kind.way == CPU_LOAD;
    const bool is_one = (r->active & (r->active - 1)) == 0; /* lane alone */
    struct cpu_cost cost = {.wavefronts = 1, .least_wavefronts = 1};
    if (bytes == CPU_WORD && (is_one || within_banks(r)))
        return cost;
    cost.wavefronts = bank_wavefronts(r->offset, r->active, bytes, is_load);
    if (cost.wavefronts > 1)
        cost.least_wavefronts = bank_least_wavefronts(r->offset, r->active, bytes, is_load);
    return cost;
}

static struct cpu_cost cost_of(const struct cpu_place *place, const struct request *r)
{
    if (place->kind.shared)
        return cost_of_shared(place, r);
    if (evenly_spaced(r, (uint32_t)place->kind.bytes) || evenly_spaced(r, 0)) {
        const uint32_t first = r->offset[0], last = r->offset[CPU_WARP - 1];
        return (struct cpu_cost){.sectors =
                                     (int)(last / SECTOR_BYTES - first / SECTOR_BYTES) + 1};
    }
    return (struct cpu_cost){.sectors = sectors_of(r)};
}

/* Does the request cost what the known one does? All of its accesses lie as far from that
 * one's, by whole sectors, or by whole words of banks. */
static bool costs_the_same(const struct request *r, const struct cpu_place *place)
{
    const uint32_t *a = r->offset, *b = place->known_offset;
    const uint32_t shift = a[0] - b[0];
    /* powers of two, for % would be a division */
    uint32_t other = shift & ((place->kind.shared ? BANK_BYTES : SECTOR_BYTES) - 1);
    for (int lane = 0; lane < CPU_WARP; lane++)
        other |= (a[lane] - b[lane]) ^ shift;
    return other == 0 && r->active == place->known_active;
}

static void know_cost(struct cpu_place *place, const struct request *r)
{
    memcpy(place->known_offset, r->offset, sizeof place->known_offset);
    place->known_active = r->active;
    place->known_cost = cost_of(place, r);
}

static void add_request(struct cpu_place *place, const struct request *request)
{
    const struct cpu_cost *cost = &place->known_cost;
    struct cpu_traffic *sum = &place->traffic;
    const int lanes = __builtin_popcount(request->active);
    sum->requests++;
    sum->accesses += lanes;
    sum->bytes += (int64_t)lanes * place->kind.bytes;
    sum->sectors += cost->sectors;
    sum->wavefronts += cost->wavefronts;
    sum->least_wavefronts += cost->least_wavefronts;
}

/* made: accesses of each lane, not known where all have made n. */
static struct request request_of(const struct cpu_place *place, uint32_t n, uint32_t fewest,
                                 const uint32_t made[CPU_WARP])
{
    struct request request = {0xffffffff, place->offset + (size_t)n * CPU_WARP};
    if (n < fewest)
        return request;
    request.active = 0;
    for (uint32_t lane = 0; lane < CPU_WARP; lane++)
        request.active |= (uint32_t)(n < made[lane]) << lane;
    return request;
}

static uint32_t made_by(const struct cpu_place *place, int lane)
{
    return (uint32_t)(place->next[lane] - place->offset) / CPU_WARP;
}

/* Do some lanes of the warp make fewer accesses than others? */
static bool made_unlike(const struct cpu_place *place)
{
    uintptr_t other = 0;
    for (int lane = 0; lane < CPU_WARP; lane++)
        other |= (uintptr_t)place->next[lane] ^ (uintptr_t)(place->next[0] + lane);
    return other != 0;
}

/* made <- accesses of each lane; most, fewest <- of a lane. */
static void find_extremes(uint32_t made[CPU_WARP], uint32_t *most, uint32_t *fewest,
                          struct cpu_place *place)
{
    uint32_t least = UINT32_MAX; /* without those that were never here */
    for (int lane = 0; lane < CPU_WARP; lane++)
        made[lane] = made_by(place, lane);
    for (int lane = 0; lane < CPU_WARP; lane++) {
        *most = made[lane] > *most ? made[lane] : *most;
        *fewest = made[lane] < *fewest ? made[lane] : *fewest;
        least = made[lane] - 1 < least ? made[lane] - 1 : least;
    }
    place->uneven |= *most > least + 2;
}

void cpu_requests_clear(struct cpu_place *place)
{
    place->end = place->offset;
    for (int lane = 0; lane < CPU_WARP; lane++)
        place->next[lane] = place->offset + lane;
}

/* Returns how many accesses the lane with the most has made. */
static uint32_t merge_place(struct cpu_place *place)
{
    uint32_t made[CPU_WARP], most = made_by(place, 0), fewest = most;
    if (made_unlike(place))
        find_extremes(made, &most, &fewest, place);
    for (uint32_t n = 0; n < most; n++) {
        const struct request request = request_of(place, n, fewest, made);
        if (!costs_the_same(&request, place))
            know_cost(place, &request);
        add_request(place, &request);
    }
    cpu_requests_clear(place);
    return most;
}

uint32_t cpu_requests_merge(struct worker *worker)
{
    uint32_t most = 0;
    for (int n = 0; n < worker->touches; n++)
        most += merge_place(worker->touched[n]);
    worker->touches = 0;
    return most;
}
