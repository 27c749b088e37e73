/* Single requests of a warp to global memory at a stride, as an H200 counted them
 * (cuda/results/h200_probes.csv), beside the model of coalescing.
 *
 * Interface:
 *   struct stride_probes p;
 *   stride_probes_read(&p, path, &error);
 *   for (int n = 0; n < p.count; n++)
 *       compare(stride_coalesced(&p.probe[n].access).sectors, p.probe[n].measured);
 *   stride_probes_free(&p);
 */
#ifndef FLASHLAB_LESSONS_STRIDE_PROBES_H
#define FLASHLAB_LESSONS_STRIDE_PROBES_H

#include <stdbool.h>

#include "core/status.h"
#include "models/coalescing.h"

/* Lane k of the first lanes accesses bytes bytes at (k * stride + start) * bytes. */
struct stride_access {
    int bytes, lanes, stride, start;
};

struct stride_probe {
    bool store;
    struct stride_access access;
    int measured; /* sectors */
};

struct stride_probes {
    int count;
    struct stride_probe *probe;           /* [count], owned */
    char gpu[64], software[64], date[16]; /* as struct results_table has them */
};

/* Reads the file's loads and stores at a stride; its other probes are passed over.
 * STATUS_BAD_FILE if it cannot be read or a field is no number in its range; the message begins
 * with the path. */
enum status stride_probes_read(struct stride_probes *p, const char *path, struct error *error);
void stride_probes_free(struct stride_probes *p);

/* What the model says of the access. */
struct coalesced stride_coalesced(const struct stride_access *access);

/* The sectors of such a load, measured; -1 if no one measured it. */
int stride_measured(const struct stride_probes *p, const struct stride_access *access);

#endif
