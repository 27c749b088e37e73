/* A machine that a user names: one of the table, or one of a file of the user's own. */
#ifndef FLASHLAB_LESSONS_OWN_MACHINE_H
#define FLASHLAB_LESSONS_OWN_MACHINE_H

#include "core/machine.h"
#include "core/status.h"

/* Points *machine to the machine of the table with that name; or, if name contains / or ends in
 * .machine, reads that file into *own and points there. The file has one machine, and not by a
 * name of the table, so that no result is taken for that machine's. After a failure *machine is
 * as it was and the message begins with name. */
enum status machine_open(const struct machine **machine, struct machine *own, const char *name,
                         struct error *error);

#endif
