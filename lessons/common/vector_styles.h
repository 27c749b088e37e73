/* Vector addition as one writes it in CUDA and in Triton, both on the simulator. */
#ifndef FLASHLAB_LESSONS_VECTOR_STYLES_H
#define FLASHLAB_LESSONS_VECTOR_STYLES_H

#include "core/machine.h"
#include "core/status.h"
#include "core/traffic.h"

enum vector_style { STYLE_THREAD, STYLE_BLOCK, VECTOR_STYLES };

/* "a thread's view", "a block's view" */
const char *vector_style_name(enum vector_style style);

/* What adding vectors of count elements moves. */
enum status vector_style_count(struct account *account, enum vector_style style, int count,
                               const struct machine *machine, struct error *error);

/* How many of count elements of random vectors both styles add to a + b, bit for bit. */
enum status vector_styles_same(int64_t *same, int count, const struct machine *machine,
                               struct error *error);

#endif
