/* Which probes there are. */
#include "common/probes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void add(struct probe_list *list, struct probe probe)
{
    assert_true(list->count < PROBE_MOST);
    list->probe[list->count++] = probe;
}

/* Every first to last of the pattern's number a, with b. */
static void add_each_a(struct probe_list *list, struct probe probe, int first, int last)
{
    for (probe.a = first; probe.a <= last; probe.a++)
        add(list, probe);
}

static void add_groups(struct probe_list *list, struct probe probe)
{
    probe.pattern = PATTERN_GROUP;
    for (probe.a = 2; probe.a <= 16; probe.a *= 2)
        for (probe.b = 1; probe.b <= 9; probe.b += 8)
            add(list, probe);
}

static void add_random(struct probe_list *list, struct probe probe)
{
    probe.pattern = PATTERN_RANDOM;
    for (probe.b = 4; probe.b <= 256; probe.b *= 8) {
        probe.a = probe.b + 1;
        add(list, probe);
        probe.a = probe.b + 2;
        add(list, probe);
    }
}

static void add_lanes(struct probe_list *list, struct probe probe)
{
    static const int lanes[] = {1, 5, 8, 16, 19};
    for (int i = 0; i < 5; i++) {
        probe.lanes = lanes[i];
        add(list, probe);
    }
}

/* Strides, what begins inside a sector, and what shares or scatters addresses. */
static void add_global(struct probe_list *list, enum probe_access access, int bytes)
{
    struct probe probe = {.access = access, .bytes = bytes, .lanes = PROBE_LANES};
    add_each_a(list, probe, 0, bytes == 4 ? 33 : 17);
    probe.a = 1;
    add_lanes(list, probe);
    for (probe.b = 1; probe.b < (bytes == 4 ? 32 : 32 / bytes + 2); probe.b++)
        add(list, probe);
    probe.pattern = PATTERN_REVERSED;
    add(list, probe);
    add_groups(list, probe);
    add_random(list, probe);
}

/* Strides, and the columns of a tile of 32 x 32 as a transposition reads them. */
static void add_shared(struct probe_list *list, enum probe_access access, int bytes)
{
    struct probe probe = {.access = access, .bytes = bytes, .lanes = PROBE_LANES};
    add_each_a(list, probe, 0, 33);
    probe.a = 1;
    add_lanes(list, probe);
    for (probe.b = 1; probe.b < 32; probe.b += 10) {
        probe.pattern = PATTERN_STRIDE;
        probe.a = 32;
        add(list, probe);
        probe.a = 33;
        add(list, probe);
        probe.pattern = PATTERN_SWIZZLE;
        probe.a = 32;
        add(list, probe);
    }
    probe.pattern = PATTERN_REVERSED;
    add(list, probe);
    add_groups(list, probe);
    add_random(list, probe);
}

/* Rows of 16 bytes: of any pitch, and as the fragments of tiles of 64, 128 and 256 bytes a row,
 * bare, padded by one slot and swizzled. */
static void add_matrices(struct probe_list *list, int matrices)
{
    struct probe probe = {.access = PROBE_MATRIX_LOAD, .bytes = 16, .lanes = 8 * matrices};
    add_each_a(list, probe, 0, 17);
    add_groups(list, probe);
    add_random(list, probe);
    for (probe.b = 0; probe.b <= 6; probe.b += 6) {
        for (int pitch = 4; pitch <= 16; pitch *= 2) {
            probe.pattern = PATTERN_TILE;
            probe.a = pitch;
            add(list, probe);
            probe.a = pitch + 1;
            add(list, probe);
            probe.pattern = PATTERN_XOR_TILE;
            probe.a = pitch < 8 ? 8 : pitch;
            add(list, probe);
        }
    }
}

void probe_list_fill(struct probe_list *list)
{
    list->count = 0;
    for (int bytes = 4; bytes <= 16; bytes *= 2) {
        add_global(list, PROBE_GLOBAL_LOAD, bytes);
        add_global(list, PROBE_GLOBAL_STORE, bytes);
        add_shared(list, PROBE_SHARED_LOAD, bytes);
        add_shared(list, PROBE_SHARED_STORE, bytes);
    }
    for (int matrices = 1; matrices <= 4; matrices *= 2)
        add_matrices(list, matrices);
}
