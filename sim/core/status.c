#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void error_format(struct error *error, enum status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error->status = status;
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
}

void error_prefix(struct error *error, const char *text)
{
    const struct error old = *error;
    error_format(error, old.status, "%s%s", text, old.text);
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
