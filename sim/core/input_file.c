#define _GNU_SOURCE
#include "core/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status check_regular(size_t *size, int file, const char *path, struct error *error)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return error_set(error, STATUS_BAD_FILE, "%s: cannot read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return error_set(error, STATUS_BAD_FILE, "%s: %s, not a regular file", path,
                         S_ISDIR(info.st_mode) ? "a directory" : "a device or pipe");
    *size = (size_t)info.st_size;
    return STATUS_OK;
}

enum status input_file_open(int *file, size_t *size, const char *path, struct error *error)
{
    /* O_NONBLOCK: opening a pipe must not wait for a writer, it is to be refused. */
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*file < 0)
        return error_set(error, STATUS_BAD_FILE, "%s: cannot open: %s", path, strerror(errno));
    if (check_regular(size, *file, path, error)) {
        close(*file);
        return error->status;
    }
    return STATUS_OK;
}

enum status input_file_read(unsigned char **bytes, int file, size_t size, const char *path,
                            struct error *error)
{
    *bytes = malloc(size > 0 ? size : 1);
    if (!*bytes)
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for its %zu bytes", path,
                         size);
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, *bytes + done, size - done);
        if (got == 0)
            return error_set(error, STATUS_BAD_FILE, "%s: got shorter while it was read", path);
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return error_set(error, STATUS_BAD_FILE, "%s: cannot read: %s", path,
                             strerror(errno));
    }
    return STATUS_OK;
}
