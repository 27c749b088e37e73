#include "common/dram_report.h"

#include <stdio.h>

#include "common/report.h"

static double hit_rate(const struct l2_launch *launch)
{
    const int64_t asked = launch->read_sectors;
    return asked > 0 ? 1 - (double)launch->miss_sectors / (double)asked : 0;
}

void dram_print(const struct l2_traffic *l2)
{
    printf("\n%-18s %15s %17s %16s %8s\n", "DRAM, by a model", "bytes read", "bytes written",
           "left dirty in L2", "L2 hits");
    for (int k = 0; k < l2->launch_count; k++) {
        const struct l2_launch *launch = &l2->launches[k];
        char read[32], written[32], dirty[32];
        printf("%-18s %15s %17s %16s %6.1f %%\n", launch->name,
               report_grouped(read, launch->dram_read_bytes),
               report_grouped(written, launch->dram_written_bytes),
               report_grouped(dirty, launch->dirty_bytes), 100 * hit_rate(launch));
    }
}

void dram_add_json(cJSON *parent, const struct l2_traffic *l2)
{
    cJSON *launches = cJSON_AddArrayToObject(parent, "dram");
    for (int k = 0; k < l2->launch_count; k++) {
        const struct l2_launch *launch = &l2->launches[k];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "launch", launch->name);
        report_add_integer(object, "read_bytes", launch->dram_read_bytes);
        report_add_integer(object, "written_bytes", launch->dram_written_bytes);
        report_add_integer(object, "dirty_bytes", launch->dirty_bytes);
        cJSON_AddNumberToObject(object, "l2_hit_rate", hit_rate(launch));
        cJSON_AddItemToArray(launches, object);
    }
}
