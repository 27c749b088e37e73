#include "models/occupancy.h"

#include <stddef.h>
#include <strings.h>

#include "core/machine.h"

enum { REGISTER_UNIT = 256, PARTITIONS = 4 };

#define KB(x) ((x)*INT64_C(1024))

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; units and what
 * is reserved: cuda_occupancy.h. */
/* clang-format off */
static const struct sm_limits limits[] = {
    /*       threads blocks registers shared/SM shared/block unit reserved */
    { 7, 0,    2048,    32,    65536,   KB(96),      KB(96), 256,       0},
    { 7, 5,    1024,    16,    65536,   KB(64),      KB(64), 256,       0},
    { 8, 0,    2048,    32,    65536,  KB(164),     KB(163), 128,    1024},
    { 8, 6,    1536,    16,    65536,  KB(100),      KB(99), 128,    1024},
    { 8, 9,    1536,    24,    65536,  KB(100),      KB(99), 128,    1024},
    { 9, 0,    2048,    32,    65536,  KB(228),     KB(227), 128,    1024},
    {10, 0,    2048,    32,    65536,  KB(228),     KB(227), 128,    1024},
    {12, 0,    1536,    24,    65536,  KB(100),      KB(99), 128,    1024},
};
/* clang-format on */

/* The machine "teaching" is invented: that of compute capability 7.5 with 48 KB. */
static const struct sm_limits teaching = {7, 5, 1024, 16, 65536, KB(48), KB(48), 256, 0};

static const struct {
    const char *name;
    int major, minor;
} machines[] = {
    {"T4", 7, 5},        {"V100", 7, 0},     {"A100-40GB", 8, 0},
    {"A100-80GB", 8, 0}, {"RTX-3090", 8, 6}, {"RTX-4090", 8, 9},
    {"H100", 9, 0},      {"H200", 9, 0},     {"B200", 10, 0},
};

const struct sm_limits *sm_limits_find(int major, int minor)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].major == major && limits[i].minor == minor)
            return &limits[i];
    return NULL;
}

const struct sm_limits *sm_limits_of_machine(const char *machine)
{
    if (strcasecmp(machine, "teaching") == 0)
        return &teaching;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (strcasecmp(machines[i].name, machine) == 0)
            return sm_limits_find(machines[i].major, machines[i].minor);
    return NULL;
}

int sm_warps(const struct sm_limits *sm)
{
    return sm->threads / WARP_THREADS;
}

static int64_t round_up(int64_t count, int64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

/* A block that asks for more registers than there are does not start, and that check counts its
 * warps as if all partitions had as many. */
static int blocks_by_registers(const struct sm_limits *sm, int warps, int64_t per_warp)
{
    if (per_warp == 0)
        return sm->blocks;
    if (per_warp * round_up(warps, PARTITIONS) > sm->registers)
        return 0;
    return (int)(sm->registers / PARTITIONS / per_warp * PARTITIONS / warps);
}

static int blocks_by_shared(const struct sm_limits *sm, int64_t asked, int64_t allocated)
{
    if (asked > sm->shared_per_block)
        return 0;
    return allocated > 0 ? (int)(sm->shared_bytes / allocated) : sm->blocks;
}

struct occupancy occupancy_of(const struct sm_limits *sm, const struct block_needs *needs)
{
    struct occupancy o = {0};
    const int warps = (needs->threads + WARP_THREADS - 1) / WARP_THREADS;
    const int64_t per_warp = round_up((int64_t)needs->registers * WARP_THREADS, REGISTER_UNIT);
    o.registers_allocated = per_warp * warps;
    o.shared_allocated = round_up(needs->shared_bytes + sm->shared_reserved, sm->shared_unit);
    o.by[OCCUPANCY_BLOCKS] = sm->blocks;
    o.by[OCCUPANCY_WARPS] = needs->threads > MOST_THREADS_PER_BLOCK ? 0 : sm_warps(sm) / warps;
    o.by[OCCUPANCY_REGISTERS] = needs->registers > MOST_REGISTERS_PER_THREAD
                                    ? 0
                                    : blocks_by_registers(sm, warps, per_warp);
    o.by[OCCUPANCY_SHARED] = blocks_by_shared(sm, needs->shared_bytes, o.shared_allocated);
    o.blocks = o.by[o.limit];
    for (int k = 1; k < OCCUPANCY_LIMITS; k++) {
        if (o.by[k] < o.blocks) {
            o.blocks = o.by[k];
            o.limit = (enum occupancy_limit)k;
        }
    }
    o.warps = o.blocks * warps;
    return o;
}

const char *occupancy_limit_name(enum occupancy_limit limit)
{
    static const char *const names[OCCUPANCY_LIMITS] = {"blocks", "warps", "registers",
                                                        "shared memory"};
    return names[limit];
}
