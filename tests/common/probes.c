#include "common/probes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/problem.h"

static const char *const access_names[PROBE_ACCESSES] = {
    "global_load", "global_store", "shared_load", "shared_store", "matrix_load"};
static const char *const pattern_names[PATTERNS] = {"stride",  "reversed", "group",   "random",
                                                    "swizzle", "tile",     "xor_tile"};

const char *probe_access_name(enum probe_access access)
{
    return access_names[access];
}

const char *probe_pattern_name(enum probe_pattern pattern)
{
    return pattern_names[pattern];
}

/* Its index, or -1. */
static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

bool probe_access_parse(enum probe_access *access, const char *name)
{
    const int found = find_name(access_names, PROBE_ACCESSES, name);
    *access = found < 0 ? PROBE_GLOBAL_LOAD : (enum probe_access)found;
    return found >= 0;
}

bool probe_pattern_parse(enum probe_pattern *pattern, const char *name)
{
    const int found = find_name(pattern_names, PATTERNS, name);
    *pattern = found < 0 ? PATTERN_STRIDE : (enum probe_pattern)found;
    return found >= 0;
}

static int slot_of(const struct probe *probe, int lane, uint64_t *state)
{
    const int a = probe->a, b = probe->b;
    switch (probe->pattern) {
    case PATTERN_STRIDE:
        return lane * a + b;
    case PATTERN_REVERSED:
        return PROBE_LANES - 1 - lane;
    case PATTERN_GROUP:
        return lane / a * b;
    case PATTERN_RANDOM:
        return random_between(state, 0, b - 1);
    case PATTERN_SWIZZLE:
        return lane * a + (lane % a ^ b);
    case PATTERN_TILE:
        return lane % 16 * a + b + lane / 16;
    case PATTERN_XOR_TILE:
        return lane % 16 * a + ((b + lane / 16) ^ lane % 8);
    default:
        fail_msg("pattern %d", (int)probe->pattern);
        return 0;
    }
}

void probe_slots(int slot[PROBE_LANES], const struct probe *probe)
{
    uint64_t state = (uint64_t)probe->a;
    for (int lane = 0; lane < PROBE_LANES; lane++) {
        const int wanted = slot_of(probe, lane, &state);
        slot[lane] = lane < probe->lanes ? wanted : 0;
        assert_in_range(slot[lane], 0, PROBE_SLOTS - 1);
    }
}
