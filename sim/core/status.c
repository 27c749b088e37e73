#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum status error_set(struct error *error, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

void check_failed(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: bug: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}
