#include "common/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDING FLASHLAB_ROOT "/lessons/recordings/h200_counters.csv"

/* One line: implementation, phase, batch, heads, seqlen, head_dim, causal, dtype, block_q (may
 * be empty), grid, then the counters. */
static bool parse_line(struct recorded_kernel *k, const char *line)
{
    char block_q[16];
    int causal, used = 0;
    int64_t reduced, l2_read, l2_write, duration_ns;
    if (sscanf(line, "%63[^,],%31[^,],%d,%d,%d,%d,%d,%*[^,],%n", k->implementation, k->phase,
               &k->batch, &k->heads, &k->seqlen, &k->head_dim, &causal, &used) != 7 ||
        used == 0)
        return false;
    const char *rest = line + used;
    const size_t length = strcspn(rest, ",");
    if (length >= sizeof block_q || rest[length] != ',')
        return false;
    memcpy(block_q, rest, length);
    block_q[length] = '\0';
    k->block_q = atoi(block_q);
    k->causal = causal != 0;
    const int found = sscanf(rest + length,
                             ",%*d,%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64
                             ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64,
                             &k->global_load_sectors, &k->global_store_sectors, &reduced,
                             &k->tma_load_bytes, &k->tma_store_bytes, &l2_read, &l2_write,
                             &k->dram_bytes_read, &k->dram_bytes_written, &duration_ns);
    k->duration_us = (double)duration_ns / 1e3;
    return found == 10;
}

int recording_read(struct recorded_kernel **kernels, struct error *error)
{
    char line[512];
    int count = 0;
    *kernels = NULL;
    FILE *file = fopen(RECORDING, "r");
    if (!file) {
        error_format(error, STATUS_BAD_FILE, "%s: %s", RECORDING, strerror(errno));
        return -1;
    }
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (number == 1)
            continue; /* the names of the columns */
        struct recorded_kernel kernel = {0};
        struct recorded_kernel *grown = realloc(*kernels, (size_t)(count + 1) * sizeof kernel);
        if (!grown || !parse_line(&kernel, line)) {
            error_format(error, STATUS_BAD_FILE, "%s: line %d cannot be read", RECORDING,
                         number);
            free(grown ? grown : *kernels);
            *kernels = NULL;
            fclose(file);
            return -1;
        }
        *kernels = grown;
        grown[count++] = kernel;
    }
    fclose(file);
    return count;
}
