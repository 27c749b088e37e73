#include "common/kernel_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/report.h"

const char *kernel_way_name(enum cpu_way way)
{
    static const char *const names[CPU_WAYS] = {"load", "store", "reduce"};
    return names[way];
}

double kernel_efficiency(const struct cpu_traffic *t)
{
    return t->sectors > 0 ? 100.0 * (double)t->bytes / (double)(SECTOR_BYTES * t->sectors)
                          : 0.0;
}

int64_t kernel_conflicts(const struct cpu_traffic *t)
{
    return t->wavefronts - t->least_wavefronts;
}

void kernel_report_problem(const struct kernel_run *k)
{
    char shape[KERNEL_SHAPE_LENGTH];
    printf("%s: the CUDA source, executed on this CPU with the limits of %s\n%s, seed %" PRIu64
           "\n",
           cpu_kernel_name(k->run.kernel), k->machine->name, kernel_run_shape(shape, &k->run),
           k->seed);
}

static void print_hbm(const char *way, const char *array, const struct cpu_traffic *t)
{
    char x[4][32];
    if (t->requests == 0)
        return;
    printf("%-6s %-4s %13s %12s %14s %12s %5.1f %6.1f\n", way, array,
           report_grouped(x[0], t->accesses), report_grouped(x[1], t->requests),
           report_grouped(x[2], t->bytes), report_grouped(x[3], t->sectors),
           (double)t->sectors / (double)t->requests, kernel_efficiency(t));
}

static void print_all_hbm(const struct cpu_launch_counts *c, const struct cpu_run *run)
{
    printf("%-11s %13s %12s %14s %12s %5s %6s\n", "HBM", "accesses", "requests", "bytes",
           "sectors", "/req.", "eff. %");
    for (int way = 0; way < CPU_WAYS; way++) {
        const char *name = kernel_way_name((enum cpu_way)way);
        int arrays = 0;
        for (int n = 0; n < run->arrays; n++) {
            const struct cpu_traffic t =
                cpu_array_traffic(c, run->array[n].name, (enum cpu_way)way);
            print_hbm(name, run->array[n].name, &t);
            arrays += t.requests > 0;
        }
        if (arrays > 1)
            print_hbm(name, "all", &c->hbm[way]);
    }
}

static void print_shared(const struct cpu_launch_counts *c)
{
    char x[4][32];
    printf("%-11s %13s %12s %14s %12s %5s\n", "shared", "accesses", "requests", "wavefronts",
           "conflicts", "/req.");
    for (int way = 0; way < CPU_WAYS; way++) {
        const struct cpu_traffic *t = &c->shared[way];
        if (t->requests > 0)
            printf("%-11s %13s %12s %14s %12s %5.1f\n", kernel_way_name((enum cpu_way)way),
                   report_grouped(x[0], t->accesses), report_grouped(x[1], t->requests),
                   report_grouped(x[2], t->wavefronts),
                   report_grouped(x[3], kernel_conflicts(t)),
                   (double)t->wavefronts / (double)t->requests);
    }
}

void kernel_report_launches(const struct kernel_run *k)
{
    char x[3][32];
    for (int n = 0; n < k->counts->launches; n++) {
        const struct cpu_launch_counts *c = &k->counts->launch[n];
        printf("\nlaunch of %s\n", c->kernel);
        print_all_hbm(c, &k->run);
        if (c->shared[CPU_LOAD].requests + c->shared[CPU_STORE].requests > 0)
            print_shared(c);
        printf("Warps passed %s barriers, %s warp barriers and %s exchanges.\n",
               report_grouped(x[0], c->barriers), report_grouped(x[1], c->warp_barriers),
               report_grouped(x[2], c->exchanges));
    }
}

static const char *const direction_names[DIRECTION_COUNT] = {"loaded", "stored", "reduced"};

static bool same_sectors(const struct kernel_sectors *s, int direction)
{
    return s->predicted[direction] == s->simulated[direction] &&
           s->simulated[direction] == s->measured[direction];
}

void kernel_report_verdicts(const struct kernel_run *k)
{
    const struct kernel_sectors *s = &k->sectors;
    char x[3][32];
    printf("\n      %-16s %16s %16s %16s\n", "sectors", "predicted", "simulated", "CPU");
    for (int n = 0; n < DIRECTION_COUNT; n++)
        if (s->predicted[n] + s->simulated[n] + s->measured[n] > 0)
            printf("%s  %-16s %16s %16s %16s\n", same_sectors(s, n) ? "PASS" : "FAIL",
                   direction_names[n], report_grouped(x[0], s->predicted[n]),
                   report_grouped(x[1], s->simulated[n]), report_grouped(x[2], s->measured[n]));
    for (int n = 0; n < k->results; n++)
        printf("%s  %s: differs from the simulator's by %.2g of %.0e (rms + |x|)\n",
               k->result[n].difference <= 1.0 ? "PASS" : "FAIL", k->result[n].array,
               k->result[n].difference, k->result[n].tolerance);
}

void kernel_report_add_traffic(cJSON *object, const struct cpu_traffic *t, bool shared)
{
    report_add_integer(object, "accesses", t->accesses);
    report_add_integer(object, "requests", t->requests);
    report_add_integer(object, "bytes", t->bytes);
    if (shared) {
        report_add_integer(object, "wavefronts", t->wavefronts);
        report_add_integer(object, "conflicts", kernel_conflicts(t));
    } else {
        report_add_integer(object, "sectors", t->sectors);
        cJSON_AddNumberToObject(object, "efficiency_percent", kernel_efficiency(t));
    }
}

static void add_ways(cJSON *parent, const char *key, const struct cpu_traffic *t, bool shared)
{
    cJSON *object = cJSON_AddObjectToObject(parent, key);
    for (int way = 0; way < CPU_WAYS; way++)
        if (t[way].requests > 0)
            kernel_report_add_traffic(
                cJSON_AddObjectToObject(object, kernel_way_name((enum cpu_way)way)), &t[way],
                shared);
}

static void add_launch(cJSON *launches, const struct cpu_launch_counts *c,
                       const struct cpu_run *run)
{
    cJSON *launch = cJSON_CreateObject();
    cJSON_AddItemToArray(launches, launch);
    cJSON_AddStringToObject(launch, "kernel", c->kernel);
    add_ways(launch, "hbm", c->hbm, false);
    cJSON *arrays = cJSON_AddObjectToObject(launch, "arrays");
    for (int n = 0; n < run->arrays; n++) {
        struct cpu_traffic ways[CPU_WAYS];
        for (int way = 0; way < CPU_WAYS; way++)
            ways[way] = cpu_array_traffic(c, run->array[n].name, (enum cpu_way)way);
        add_ways(arrays, run->array[n].name, ways, false);
    }
    add_ways(launch, "shared", c->shared, true);
    report_add_integer(launch, "barriers", c->barriers);
    report_add_integer(launch, "warp_barriers", c->warp_barriers);
    report_add_integer(launch, "exchanges", c->exchanges);
}

/* JSON has no infinity: a difference beyond all measure is a string. */
static void add_results(cJSON *json, const struct kernel_run *k)
{
    cJSON *results = cJSON_AddObjectToObject(json, "differences");
    for (int n = 0; n < k->results; n++) {
        if (k->result[n].difference < 1e300)
            cJSON_AddNumberToObject(results, k->result[n].array, k->result[n].difference);
        else
            cJSON_AddStringToObject(results, k->result[n].array, "inf");
    }
}

cJSON *kernel_report_json(const struct kernel_run *k)
{
    char shape[KERNEL_SHAPE_LENGTH];
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kernel", cpu_kernel_name(k->run.kernel));
    cJSON_AddBoolToObject(json, "on_cpu", true);
    cJSON_AddStringToObject(json, "machine", k->machine->name);
    cJSON_AddStringToObject(json, "shape", kernel_run_shape(shape, &k->run));
    report_add_integer(json, "seed", (int64_t)k->seed);
    cJSON *launches = cJSON_AddArrayToObject(json, "launches");
    for (int n = 0; n < k->counts->launches; n++)
        add_launch(launches, &k->counts->launch[n], &k->run);
    cJSON *sectors = cJSON_AddObjectToObject(json, "sectors");
    for (int n = 0; n < DIRECTION_COUNT; n++) {
        cJSON *direction = cJSON_AddObjectToObject(sectors, direction_names[n]);
        report_add_integer(direction, "predicted", k->sectors.predicted[n]);
        report_add_integer(direction, "simulated", k->sectors.simulated[n]);
        report_add_integer(direction, "on_cpu", k->sectors.measured[n]);
    }
    add_results(json, k);
    cJSON_AddBoolToObject(json, "equal", k->equal);
    return json;
}
