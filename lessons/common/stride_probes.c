#include "common/stride_probes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/results_table.h"

enum { MOST_STRIDE = 4096 };

/* A whole number of the field from least to most. */
static enum status read_field(int *value, const struct results_table *t, int row,
                              const char *column, int least, int most, const char *path,
                              struct error *error)
{
    double number;
    if (!results_table_number(&number, t, row, column) || number != floor(number) ||
        number < least || number > most)
        return error_set(error, STATUS_BAD_FILE, "%s: row %d: %s must be from %d to %d", path,
                         row + 1, column, least, most);
    *value = (int)number;
    return STATUS_OK;
}

static bool is(const struct results_table *t, int row, const char *column, const char *text)
{
    const char *found = results_table_text(t, row, column);
    return found && strcmp(found, text) == 0;
}

/* The row as a probe, appended. */
static enum status read_probe(struct stride_probes *p, const struct results_table *t, int row,
                              const char *path, struct error *error)
{
    struct stride_probe probe = {.store = is(t, row, "access", "global_store")};
    const struct {
        const char *column;
        int *value, least, most;
    } fields[] = {
        {"bytes", &probe.access.bytes, 1, 16},
        {"lanes", &probe.access.lanes, 1, COALESCING_LANES},
        {"a", &probe.access.stride, 0, MOST_STRIDE},
        {"b", &probe.access.start, 0, MOST_STRIDE},
        {probe.store ? "store_sectors" : "load_sectors", &probe.measured, 0, COALESCING_LANES}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (read_field(fields[i].value, t, row, fields[i].column, fields[i].least,
                       fields[i].most, path, error))
            return error->status;
    p->probe[p->count++] = probe;
    return STATUS_OK;
}

static enum status read_probes(struct stride_probes *p, const struct results_table *t,
                               const char *path, struct error *error)
{
    p->probe = malloc((size_t)t->rows * sizeof *p->probe);
    if (!p->probe)
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for it", path);
    snprintf(p->gpu, sizeof p->gpu, "%s", t->gpu);
    snprintf(p->software, sizeof p->software, "%s", t->software);
    snprintf(p->date, sizeof p->date, "%s", t->date);
    for (int row = 0; row < t->rows; row++)
        if ((is(t, row, "access", "global_load") || is(t, row, "access", "global_store")) &&
            is(t, row, "pattern", "stride") && read_probe(p, t, row, path, error))
            return error->status;
    if (p->count == 0)
        return error_set(error, STATUS_BAD_FILE, "%s: no access at a stride is in it", path);
    return STATUS_OK;
}

enum status stride_probes_read(struct stride_probes *p, const char *path, struct error *error)
{
    struct results_table t;
    *p = (struct stride_probes){0};
    if (results_table_read(&t, path, error))
        return error->status;
    const enum status status = read_probes(p, &t, path, error);
    results_table_free(&t);
    if (status)
        stride_probes_free(p);
    return status;
}

void stride_probes_free(struct stride_probes *p)
{
    free(p->probe);
    *p = (struct stride_probes){0};
}

struct coalesced stride_coalesced(const struct stride_access *a)
{
    int64_t address[COALESCING_LANES] = {0};
    for (int lane = 0; lane < a->lanes; lane++)
        address[lane] = ((int64_t)lane * a->stride + a->start) * a->bytes;
    const uint32_t active = (uint32_t)((UINT64_C(1) << a->lanes) - 1);
    return coalesced_request(address, active, a->bytes);
}

int stride_measured(const struct stride_probes *p, const struct stride_access *access)
{
    for (int n = 0; n < p->count; n++) {
        const struct stride_access *a = &p->probe[n].access;
        if (!p->probe[n].store && a->bytes == access->bytes && a->lanes == access->lanes &&
            a->stride == access->stride && a->start == access->start)
            return p->probe[n].measured;
    }
    return -1;
}
