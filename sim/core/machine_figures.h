/* The figures of a machine by their keys: how they are called, in which units they are written,
 * and whether they are known.
 *
 * Interface:
 *   for (int f = 0; f < FIGURE_COUNT; f++)
 *       printf("%s = %s\n", machine_figures[f].key, machine_figure_format(buffer, m, f));
 */
#ifndef FLASHLAB_CORE_MACHINE_FIGURES_H
#define FLASHLAB_CORE_MACHINE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum machine_kind {
    KIND_COUNT,
    KIND_BYTES,
    KIND_BYTES_PER_SECOND,
    KIND_HERTZ,
    KIND_FLOPS,
    KIND_OPS, /* results a second */
};

enum machine_type { TYPE_INT, TYPE_INT64, TYPE_DOUBLE };

/* What is said of one figure. */
struct machine_figure_info {
    const char *key; /* in files of machines */
    enum machine_kind kind;
    bool required;     /* a machine without it is refused */
    bool may_be_none;  /* "none" is allowed: the machine has no such thing */
    double most;       /* that is allowed, in base units */
    const char *field; /* of struct machine, and the key in JSON */
    size_t offset;     /* of the field, which is of that type */
    enum machine_type type;
};

extern const struct machine_figure_info machine_figures[FIGURE_COUNT];

/* In base units: bytes, hertz, a second. 0: unknown; MACHINE_NONE: the machine has none. */
double machine_figure_get(const struct machine *m, enum machine_figure f);
void machine_figure_set(struct machine *m, enum machine_figure f, double value);

enum { FIGURE_TEXT_SIZE = 40, FIGURE_ALLOWED_SIZE = 120 };

/* As files have it: "228 KiB", "3.35 TB/s", "none"; "unknown" for what is not known. Returns
 * buffer. */
char *machine_figure_format(char buffer[FIGURE_TEXT_SIZE], const struct machine *m,
                            enum machine_figure f);

/* Reads what machine_figure_format() writes, other than "unknown": a decimal number above 0,
 * and after a blank one of the units of its kind. Returns whether text is that, and no more
 * than the most that is allowed. */
bool machine_figure_parse(double *value, enum machine_figure f, const char *text);

/* What machine_figure_parse() wants, for messages: "a whole number from 1 to 65536". Returns
 * buffer. */
char *machine_figure_allowed(char buffer[FIGURE_ALLOWED_SIZE], enum machine_figure f);

#ifdef __cplusplus
}
#endif

#endif
