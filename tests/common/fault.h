/* For tests of CHECK(): runs a function that must stop the program, and keeps what it said.
 *
 * Interface:
 *   struct fault fault = fault_of(divide_by_zero_tiles, &args);
 *   fault.aborted, fault.text
 *   if (!fault_is_bug(&fault, "sim/core/memory.c", "outside tensor Q"))
 *       fail_msg("%s", fault.text);
 *
 * The function runs in a forked child with one OpenMP thread and 20 seconds to live, so what it
 * leaves behind, or breaks, is gone afterwards. It must not use CMocka's asserts.
 */
#ifndef FLASHLAB_TESTS_FAULT_H
#define FLASHLAB_TESTS_FAULT_H

#include <stdbool.h>

/* How a child ended. */
struct fault {
    bool aborted;    /* by abort(), not by returning, exit() or another signal */
    char text[4096]; /* the beginning of what it wrote to stderr */
};

struct fault fault_of(void (*function)(void *context), void *context);

/* True if the child aborted after one line "file:LINE: bug: ..." that contains message. */
bool fault_is_bug(const struct fault *fault, const char *file, const char *message);

#endif
