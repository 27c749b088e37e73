/* What a stopped kernel says, against its source.
 *
 * Interface:
 *   line_of("cuda/tile.h", "dst[place[n]] = value[n];")   the only line with that text
 *   assert_says(&fault, "cuda/tile.h:77: bug: ", "race: writes", "no __syncthreads()", NULL)
 */
#ifndef FLASHLAB_TESTS_CPU_MESSAGE_H
#define FLASHLAB_TESTS_CPU_MESSAGE_H

#include "common/fault.h"

/* Fails the test unless one line, and no other, has the text. */
int line_of(const char *file, const char *text);

/* Fails the test unless the child aborted after one line that begins with the first text and
 * has the others after it, in order. */
void assert_says(const struct fault *fault, const char *begin, ...) __attribute__((sentinel));

#endif
