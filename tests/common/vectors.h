/* The stored attention problems of tests/data/attention, with the answers of PyTorch in
 * float64.
 *
 * Interface:
 *   struct csv manifest;
 *   csv_read(&manifest, STORED_MANIFEST);
 *   for (int row = 0; row < manifest.rows; row++) {
 *       struct stored stored;
 *       stored_read(&stored, &manifest, row);
 *       ...
 *       stored_free(&stored);
 *   }
 * A file that is missing, or of another shape than the manifest says, fails the test.
 */
#ifndef FLASHLAB_TESTS_VECTORS_H
#define FLASHLAB_TESTS_VECTORS_H

#include "common/csv.h"
#include "common/reference.h"

#define STORED_MANIFEST "attention/manifest.csv"

struct stored {
    const char *name;       /* the manifest's */
    struct problem problem; /* of F32, blocks 16 x 16, until the test says otherwise */
    double scale;           /* before it was rounded to problem.a.scale */
    struct truth truth;     /* stored as float32, so within half a unit of float32 of float64 */
};

void stored_read(struct stored *stored, const struct csv *manifest, int row);
void stored_free(struct stored *stored);

/* Copies the problem with its elements rounded to that dtype; *exact says if none changed. */
struct problem stored_problem(const struct stored *stored, enum dtype dtype, bool *exact);

#endif
