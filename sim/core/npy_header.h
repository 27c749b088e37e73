/* The headers of .npy files, for npy.c only; everyone else uses core/npy.h.
 *
 * A file is: the magic "\x93NUMPY", a major and a minor version byte, the length of the header
 * (2 bytes in version 1, 4 in versions 2 and 3, little-endian), the header, the data. The
 * header is a Python dict literal, padded with spaces:
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 */
#ifndef FLASHLAB_CORE_NPY_HEADER_H
#define FLASHLAB_CORE_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/npy.h"
#include "core/status.h"

enum npy_element { NPY_F2, NPY_F4, NPY_F8, NPY_ELEMENT_COUNT };

struct npy_header {
    enum npy_element element;
    bool fortran_order;
    int ndim;
    int64_t shape[NPY_MAX_DIMS];
    int64_t count;  /* product of the shape */
    size_t data_at; /* offset of the data; the file ends exactly where they do */
};

/* The longest header that is accepted, the most that version 1.0 can express, and with what is
 * before it. Longer ones are for structured types, which are refused anyway. */
enum { NPY_LONGEST_HEADER = 65535, NPY_PREFIX_BYTES = 12 + NPY_LONGEST_HEADER };

/* Parses the header of a file of size bytes and checks that the data it promises, no more and
 * no less, follow. bytes are the first NPY_PREFIX_BYTES of the file, or all of a shorter one.
 * name appears in messages. Allocates nothing. */
enum status npy_header_parse(struct npy_header *header, const void *bytes, size_t size,
                             const char *name, struct error *error);

/* NumPy pads what is before the data to a multiple of 64 bytes, and leaves room for the first
 * dimension to grow to 21 digits. With f4 and a shape that npy_count_elements() accepts that is
 * always 128: the fixed text and the padding are 87 bytes, seven more dimensions at most 39. */
enum { NPY_HEADER_BYTES = 128 };

/* Everything before the data of a version 1.0 file of f4 in C order, byte for byte what NumPy
 * writes. ndim and shape as in struct npy_header. */
void npy_header_format(char bytes[NPY_HEADER_BYTES], int ndim, const int64_t *shape);

/* The most elements an array may have: more of them would, as doubles, exceed a ptrdiff_t. */
#define NPY_MAX_ELEMENTS (PTRDIFF_MAX / (ptrdiff_t)sizeof(double))

/* Stores the product of the shape in *count; false if the product of the dimensions that are
 * not 0 exceeds NPY_MAX_ELEMENTS. (With a 0 there are no elements, but whoever computes the
 * strides of such a shape would overflow; NumPy cannot make one either.) */
bool npy_count_elements(int64_t *count, int ndim, const int64_t *shape);

#endif
