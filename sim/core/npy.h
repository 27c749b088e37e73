/* NumPy's .npy files: the tensors that users bring and take away.
 *
 * Interface:
 *   npy_read() reads format versions 1.0, 2.0 and 3.0 with little-endian f2, f4 or f8 elements
 *   in C or Fortran order, and gives floats in C order. Anything else (other types, big-endian,
 *   truncated or contradictory headers, trailing bytes) is refused with a message that names
 *   the file, what was found and what is allowed. The data are allocated only after the header
 *   has been found to agree with the size of the file.
 *       struct npy array;
 *       struct error error;
 *       if (npy_read(&array, "q.npy", &error) != STATUS_OK)
 *           fprintf(stderr, "%s\n", error.text);
 *   prints for example
 *       q.npy: truncated: shape (2, 3) of '<f4' needs 24 bytes of data, the file has 20
 *
 *   npy_write() writes version 1.0, f4, C order, byte for byte as NumPy does, first to a
 *   temporary file in the same folder that it then renames: a reader never sees half a file,
 *   and a write that fails leaves neither the temporary file nor a change at path. A symbolic
 *   link at path is replaced, not followed; a directory, device or pipe is refused.
 *
 * Source: NumPy's format description (numpy.lib.format).
 */
#ifndef FLASHLAB_CORE_NPY_H
#define FLASHLAB_CORE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NPY_MAX_DIMS = 8 };

struct npy {
    int ndim;                    /* 0 (a scalar) to NPY_MAX_DIMS */
    int64_t shape[NPY_MAX_DIMS]; /* each at least 0 */
    int64_t count;               /* product of the shape */
    int64_t nonfinite;           /* elements that are NaN or infinite as floats */
    float *data;                 /* count floats, C order; owned, free with npy_free() */
};

/* Reads a regular file. On failure *array is empty and *error says why. On success data is not
 * NULL, even without elements; values of f8 are rounded to float (beyond its range: infinity).
 * What *array held before is not freed. */
enum status npy_read(struct npy *array, const char *path, struct error *error);

/* Parses size bytes that are the whole contents of a file, at any alignment; name appears in
 * messages. */
enum status npy_parse(struct npy *array, const void *bytes, size_t size, const char *name,
                      struct error *error);

/* Writes data (the product of shape[ndim] floats, C order) to path. data may be NULL if there
 * are no elements, shape if ndim is 0. */
enum status npy_write(const char *path, const float *data, int ndim, const int64_t *shape,
                      struct error *error);

/* Frees the data; safe on an empty array. */
void npy_free(struct npy *array);

#ifdef __cplusplus
}
#endif

#endif
