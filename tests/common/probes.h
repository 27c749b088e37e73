/* Probes of the memory system: one request of a warp each, described by a pattern's name and
 * two numbers, so that a program on the GPU and a test on the CPU make the same addresses.
 *
 * Interface:
 *   static struct probe_list list;
 *   probe_list_fill(&list);
 *   int slot[PROBE_LANES];
 *   probe_slots(slot, &list.probe[0]);     byte offset of lane k: slot[k] * bytes
 */
#ifndef FLASHLAB_TESTS_PROBES_H
#define FLASHLAB_TESTS_PROBES_H

#include <stdbool.h>
#include <stdint.h>

enum { PROBE_LANES = 32, PROBE_MOST = 1000, PROBE_SLOTS = 4096, PROBE_SHARED_BYTES = 32768 };

enum probe_access {
    PROBE_GLOBAL_LOAD,
    PROBE_GLOBAL_STORE,
    PROBE_SHARED_LOAD,
    PROBE_SHARED_STORE,
    PROBE_MATRIX_LOAD, /* ldmatrix: lane k has the address of row k % 8 of matrix k / 8 */
    PROBE_ACCESSES,
};

/* Slots of lane k; they count accesses of so many bytes:
 *   stride    k * a + b         0: broadcast; 33, b: a column of a padded tile of 32 x 32
 *   reversed  31 - k
 *   group     k / a * b         a neighbours share a slot
 *   random    below b, of seed a
 *   swizzle   k * a + (k % a ^ b)               column b of a tile of a columns, swizzled
 *   tile      k % 16 * a + b + k / 16           what ldmatrix reads for a fragment of 16 x 16
 *   xor_tile  k % 16 * a + (b + k / 16 ^ k % 8) the same, swizzled */
enum probe_pattern {
    PATTERN_STRIDE,
    PATTERN_REVERSED,
    PATTERN_GROUP,
    PATTERN_RANDOM,
    PATTERN_SWIZZLE,
    PATTERN_TILE,
    PATTERN_XOR_TILE,
    PATTERNS,
};

struct probe {
    enum probe_access access;
    int bytes; /* a lane: 4, 8 or 16 */
    int lanes; /* the first that take part; of ldmatrix those whose addresses count */
    enum probe_pattern pattern;
    int a, b;
};

struct probe_list {
    int count;
    struct probe probe[PROBE_MOST];
};

void probe_list_fill(struct probe_list *list);

/* slot[k], 0 <= slot[k] < PROBE_SLOTS; 0 for lanes that take no part. */
void probe_slots(int slot[PROBE_LANES], const struct probe *probe);

const char *probe_access_name(enum probe_access access);    /* "global_load" */
const char *probe_pattern_name(enum probe_pattern pattern); /* "stride" */

/* False if there is none of that name. */
bool probe_access_parse(enum probe_access *access, const char *name);
bool probe_pattern_parse(enum probe_pattern *pattern, const char *name);

#endif
