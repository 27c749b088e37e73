/* flashlab occupancy: how many blocks an SM holds, and what each limit alone would allow. */
#include <inttypes.h>
#include <stdio.h>

#include "common/options.h"
#include "common/report.h"
#include "flashlab.h"
#include "models/occupancy.h"

enum { DEFAULT_THREADS = 256, DEFAULT_REGISTERS = 32 };

static const struct usage usage = {
    .program = "flashlab occupancy",
    .summary = "Says how many blocks of a kernel an SM holds at once, and what limits them.\n"
               "Defaults: 256 threads of 32 registers, no shared memory.",
    .options = OPTION_BIT(OPTION_THREADS) | OPTION_BIT(OPTION_REGISTERS) |
               OPTION_BIT(OPTION_SHARED) | OPTION_BIT(OPTION_MACHINE) | OPTION_BIT(OPTION_JSON),
};

static double percent(const struct occupancy *o, const struct sm_limits *sm)
{
    return 100.0 * o->warps / sm_warps(sm);
}

/* What one block takes of a limit, as it is given out, and what an SM has. */
static void amounts(int64_t *block, int64_t *all, enum occupancy_limit limit,
                    const struct sm_limits *sm, const struct block_needs *needs,
                    const struct occupancy *o)
{
    const int64_t warps = (needs->threads + WARP_THREADS - 1) / WARP_THREADS;
    const int64_t of_block[OCCUPANCY_LIMITS] = {1, warps, o->registers_allocated,
                                                o->shared_allocated};
    const int64_t of_sm[OCCUPANCY_LIMITS] = {sm->blocks, sm_warps(sm), sm->registers,
                                             sm->shared_bytes};
    *block = of_block[limit];
    *all = of_sm[limit];
}

static void print_table(const char *machine, const struct sm_limits *sm,
                        const struct block_needs *needs, const struct occupancy *o)
{
    char block_text[32], all_text[32];
    int64_t block, all;
    printf("%s, compute capability %d.%d: blocks of %d threads, %d registers a thread,\n"
           "%" PRId64 " bytes of shared memory (and %d reserved)\n\n",
           machine, sm->major, sm->minor, needs->threads, needs->registers, needs->shared_bytes,
           sm->shared_reserved);
    printf("%-14s %11s %11s %11s\n", "limit", "a block", "an SM", "blocks");
    for (int k = 0; k < OCCUPANCY_LIMITS; k++) {
        const enum occupancy_limit limit = (enum occupancy_limit)k;
        amounts(&block, &all, limit, sm, needs, o);
        printf("%-14s %11s %11s %11d%s\n", occupancy_limit_name(limit),
               report_grouped(block_text, block), report_grouped(all_text, all), o->by[k],
               o->by[k] == o->blocks ? "  *" : "");
    }
    if (o->blocks == 0)
        printf("\n0 blocks an SM: one does not fit, for want of %s\n",
               occupancy_limit_name(o->limit));
    else
        printf("\n%d blocks an SM, %d of %d warps: occupancy %.1f %%, limited by %s\n",
               o->blocks, o->warps, sm_warps(sm), percent(o, sm),
               occupancy_limit_name(o->limit));
}

static void print_json(const char *machine, const struct sm_limits *sm,
                       const struct block_needs *needs, const struct occupancy *o)
{
    static const char *const keys[OCCUPANCY_LIMITS] = {"blocks", "warps", "registers",
                                                       "shared_memory"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "machine", machine);
    report_add_integer(json, "threads", needs->threads);
    report_add_integer(json, "registers", needs->registers);
    report_add_integer(json, "shared_bytes", needs->shared_bytes);
    report_add_integer(json, "blocks", o->blocks);
    report_add_integer(json, "warps", o->warps);
    cJSON_AddNumberToObject(json, "occupancy_percent", percent(o, sm));
    cJSON_AddStringToObject(json, "limited_by", occupancy_limit_name(o->limit));
    cJSON *by = cJSON_AddObjectToObject(json, "blocks_by_limit");
    for (int k = 0; k < OCCUPANCY_LIMITS; k++)
        report_add_integer(by, keys[k], o->by[k]);
    report_write_json(json);
}

int flashlab_occupancy(int argc, char **argv)
{
    struct options o;
    options_init(&o);
    o.threads = DEFAULT_THREADS;
    o.registers = DEFAULT_REGISTERS;
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    const char *machine = o.simulation.machine->name;
    const struct sm_limits *sm = sm_limits_of_machine(machine);
    if (!sm) {
        struct error error;
        error_format(&error, STATUS_BAD_ARGUMENT,
                     "--machine %.64s: occupancy is known of NVIDIA's GPUs in the table of "
                     "`flashlab machines`",
                     machine);
        return usage_error(&usage, &error);
    }
    const struct block_needs needs = {o.threads, o.registers, o.shared_bytes};
    const struct occupancy occupancy = occupancy_of(sm, &needs);
    if (o.json)
        print_json(machine, sm, &needs, &occupancy);
    else
        print_table(machine, sm, &needs, &occupancy);
    return exit_status(&usage, EXIT_OK);
}
