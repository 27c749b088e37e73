#include "common/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status cannot_write(const struct output_file *file, int code, struct error *error)
{
    return error_set(error, STATUS_BAD_FILE, "%s %.1000s: cannot be written: %s", file->option,
                     file->path, strerror(code));
}

enum status output_open(struct output_file *file, const char *option, const char *path,
                        struct error *error)
{
    struct stat info;
    *file = (struct output_file){.option = option, .path = path};
    if (snprintf(file->partial, sizeof file->partial, "%s.partial", path) >=
        (int)sizeof file->partial)
        return cannot_write(file, ENAMETOOLONG, error);
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return error_set(error, STATUS_BAD_FILE, "%s %.1000s: is not a regular file", option,
                         path);
    file->stream = fopen(file->partial, "w");
    return file->stream ? STATUS_OK : cannot_write(file, errno, error);
}

enum status output_commit(struct output_file *file, struct error *error)
{
    const int failed = ferror(file->stream) | fclose(file->stream);
    if (!failed && rename(file->partial, file->path) == 0)
        return STATUS_OK;
    const int code = errno;
    unlink(file->partial);
    return cannot_write(file, code, error);
}

void output_abandon(struct output_file *file)
{
    fclose(file->stream);
    unlink(file->partial);
}
