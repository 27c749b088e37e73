/* Reading and writing NumPy's .npy files: the files and their data. The interface is described
 * in npy.h; headers are parsed and written by npy_header.c.
 *
 * Memory for the elements is allocated only after the header has been checked against the real
 * size of the file: a header cannot make us allocate what is not there.
 */
#include "core/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/dtype.h"
#include "core/input_file.h"
#include "core/npy_header.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they are");

static void decode_f2(float *dst, const unsigned char *src, size_t count)
{
    /* The data may begin at an odd address; the chunk gives dtype_decode() an aligned one. */
    uint16_t chunk[1024];
    size_t most = sizeof chunk / sizeof chunk[0];
    for (size_t done = 0; done < count; done += most) {
        size_t now = count - done < most ? count - done : most;
        memcpy(chunk, src + done * sizeof chunk[0], now * sizeof chunk[0]);
        dtype_decode(dst + done, DTYPE_F16, chunk, now);
    }
}

static void decode_f8(float *dst, const unsigned char *src, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, src + i * sizeof value, sizeof value);
        dst[i] = (float)value;
    }
}

static void decode(float *dst, enum npy_element element, const unsigned char *src, size_t count)
{
    switch (element) {
    case NPY_F2:
        decode_f2(dst, src, count);
        return;
    case NPY_F4:
        memcpy(dst, src, count * sizeof(float));
        return;
    case NPY_F8:
        decode_f8(dst, src, count);
        return;
    case NPY_ELEMENT_COUNT:
        break;
    }
    CHECK(false, "element %d", (int)element);
}

/* dst in C order (last index fastest) <- src in Fortran order (first index fastest); both have
 * the array's shape. Walks dst in order and keeps the offset in src of the current index. */
static void fortran_to_c(float *dst, const float *src, const struct npy *array)
{
    int64_t stride[NPY_MAX_DIMS], index[NPY_MAX_DIMS] = {0};
    int64_t product = 1, from = 0;
    for (int d = 0; d < array->ndim; d++) {
        stride[d] = product;
        product *= array->shape[d];
    }
    for (int64_t to = 0; to < array->count; to++) {
        dst[to] = src[from];
        for (int d = array->ndim - 1; d >= 0; d--) {
            from += stride[d];
            if (++index[d] < array->shape[d])
                break;
            from -= index[d] * stride[d];
            index[d] = 0;
        }
    }
}

/* Not NULL for an array without elements, as long as there is memory at all. */
static float *alloc_floats(int64_t count)
{
    return malloc((count > 0 ? (size_t)count : 1) * sizeof(float));
}

/* Makes the array that the header describes of its data, converted to floats in C order. */
static enum status make_array(struct npy *array, const struct npy_header *header,
                              const unsigned char *data, const char *name, struct error *error)
{
    struct npy made = {.ndim = header->ndim, .count = header->count};
    memcpy(made.shape, header->shape, sizeof made.shape);
    made.data = alloc_floats(made.count);
    if (made.data)
        decode(made.data, header->element, data, (size_t)made.count);
    if (made.data && header->fortran_order && made.ndim > 1) {
        float *in_c_order = alloc_floats(made.count);
        if (in_c_order)
            fortran_to_c(in_c_order, made.data, &made);
        free(made.data);
        made.data = in_c_order;
    }
    if (!made.data)
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for its %lld elements",
                         name, (long long)made.count);
    for (int64_t i = 0; i < made.count; i++)
        made.nonfinite += !isfinite(made.data[i]);
    *array = made;
    return STATUS_OK;
}

enum status npy_parse(struct npy *array, const void *bytes, size_t size, const char *name,
                      struct error *error)
{
    *array = (struct npy){0};
    struct npy_header header = {0};
    enum status status = npy_header_parse(&header, bytes, size, name, error);
    if (status == STATUS_OK)
        status = make_array(array, &header, (const unsigned char *)bytes + header.data_at, name,
                            error);
    return status;
}

static enum status read_header(struct npy_header *header, int file, size_t size,
                               const char *path, struct error *error)
{
    unsigned char *prefix;
    size_t prefix_bytes = size < NPY_PREFIX_BYTES ? size : NPY_PREFIX_BYTES;
    enum status status = input_file_read(&prefix, file, prefix_bytes, path, error);
    if (status == STATUS_OK)
        status = npy_header_parse(header, prefix, size, path, error);
    free(prefix);
    return status;
}

static enum status read_open_file(struct npy *array, int file, size_t size, const char *path,
                                  struct error *error)
{
    struct npy_header header = {0};
    enum status status = read_header(&header, file, size, path, error);
    if (status != STATUS_OK)
        return status;
    if (lseek(file, (off_t)header.data_at, SEEK_SET) < 0)
        return error_set(error, STATUS_BAD_FILE, "%s: cannot read: %s", path, strerror(errno));
    unsigned char *data;
    status = input_file_read(&data, file, size - header.data_at, path, error);
    if (status == STATUS_OK)
        status = make_array(array, &header, data, path, error);
    free(data);
    return status;
}

enum status npy_read(struct npy *array, const char *path, struct error *error)
{
    int file;
    size_t size;
    *array = (struct npy){0};
    if (input_file_open(&file, &size, path, error))
        return error->status;
    enum status status = read_open_file(array, file, size, path, error);
    close(file);
    return status;
}

/* Creates a file that did not exist in the folder of path, and stores its name, which the
 * caller frees. Returns its descriptor, or -1 with errno set and *name NULL.
 *
 * Not mkstemp(): its files are readable by their owner only, and so would be the result. */
static int create_beside(char **name, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    size_t size = folder + 64;
    *name = malloc(size);
    if (!*name)
        return -1;
    memcpy(*name, path, folder);
    int file = -1;
    errno = EEXIST;
    for (int attempt = 0; file < 0 && errno == EEXIST && attempt < 1000; attempt++) {
        snprintf(*name + folder, size - folder, ".npy-%ld-%d.tmp", (long)getpid(), attempt);
        file = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (file < 0) {
        int reason = errno;
        free(*name);
        *name = NULL;
        errno = reason;
    }
    return file;
}

/* Writes header and data and closes the file; returns 0 or the errno of what failed. */
static int write_and_close(int file, const float *data, int64_t count, int ndim,
                           const int64_t *shape)
{
    char header[NPY_HEADER_BYTES];
    npy_header_format(header, ndim, shape);
    FILE *stream = fdopen(file, "wb");
    if (!stream) {
        int reason = errno;
        close(file);
        return reason;
    }
    int reason = 0;
    if (fwrite(header, 1, sizeof header, stream) != sizeof header ||
        (count > 0 && fwrite(data, sizeof *data, (size_t)count, stream) != (size_t)count))
        reason = errno ? errno : EIO;
    /* A full disk may show only here. */
    if (fclose(stream) != 0 && reason == 0)
        reason = errno;
    return reason;
}

/* Checks what npy_write() was asked for, before anything is created. */
static enum status check_request(int64_t *count, const char *path, int ndim,
                                 const int64_t *shape, struct error *error)
{
    if (ndim < 0 || ndim > NPY_MAX_DIMS)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: cannot write %d dimensions, allowed are 0 to %d", path, ndim,
                         NPY_MAX_DIMS);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0)
            return error_set(
                error, STATUS_BAD_ARGUMENT,
                "%s: cannot write dimension %d of size %lld, it must be at least 0", path, d,
                (long long)shape[d]);
    }
    if (!npy_count_elements(count, ndim, shape))
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the shape has too many elements, at most %lld are allowed", path,
                         (long long)NPY_MAX_ELEMENTS);
    /* rename() would replace a device: as root, writing to /dev/null would remove it. */
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return error_set(error, STATUS_BAD_FILE, "%s: cannot write: %s, not a regular file",
                         path, S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
    return STATUS_OK;
}

enum status npy_write(const char *path, const float *data, int ndim, const int64_t *shape,
                      struct error *error)
{
    int64_t count;
    enum status status = check_request(&count, path, ndim, shape, error);
    if (status != STATUS_OK)
        return status;
    CHECK(data || count == 0, "%s: no data for %lld elements", path, (long long)count);
    char *temporary;
    int file = create_beside(&temporary, path);
    if (file < 0)
        return error_set(error, STATUS_BAD_FILE,
                         "%s: cannot create a temporary file in its folder: %s", path,
                         strerror(errno));
    int reason = write_and_close(file, data, count, ndim, shape);
    if (reason == 0 && rename(temporary, path) != 0)
        reason = errno;
    if (reason != 0) {
        unlink(temporary);
        status =
            error_set(error, STATUS_BAD_FILE, "%s: cannot write: %s", path, strerror(reason));
    }
    free(temporary);
    return status;
}

void npy_free(struct npy *array)
{
    free(array->data);
    *array = (struct npy){0};
}
