#include "cpu/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

int line_of(const char *file, const char *text)
{
    char row[512];
    int found = 0;
    FILE *source = fopen(file, "r");
    if (!source)
        fail_msg("%s cannot be read", file);
    for (int line = 1; fgets(row, sizeof row, source); line++) {
        if (!strstr(row, text))
            continue;
        if (found)
            fail_msg("%s: lines %d and %d have \"%s\"", file, found, line, text);
        found = line;
    }
    fclose(source);
    if (!found)
        fail_msg("%s: no line has \"%s\"", file, text);
    return found;
}

void assert_says(const struct fault *fault, const char *begin, ...)
{
    const char *at = fault->text, *part;
    va_list parts;
    if (!fault->aborted || strncmp(at, begin, strlen(begin)) != 0)
        fail_msg("expected %s...; got: %s", begin, fault->text);
    at += strlen(begin);
    va_start(parts, begin);
    while ((part = va_arg(parts, const char *))) {
        const char *found = strstr(at, part);
        if (!found)
            fail_msg("expected \"%s\" in its place; got: %s", part, fault->text);
        at = found + strlen(part);
    }
    va_end(parts);
    if (strchr(fault->text, '\n') != fault->text + strlen(fault->text) - 1)
        fail_msg("expected one line; got: %s", fault->text);
}
