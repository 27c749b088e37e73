/* Sections of lesson 02: where a matrix product's bytes come from, what it asks of shared
 * memory, how long it takes. k is that of product_column_open() for N.
 */
#ifndef FLASHLAB_LESSONS_PRODUCT_CLAIMS_H
#define FLASHLAB_LESSONS_PRODUCT_CLAIMS_H

#include <stdio.h>

#include "common/lesson.h"
#include "common/product_kernels.h"

/* Bytes at one level of memory: what the model says, and what was measured (-1: nothing). */
enum product_level { PRODUCT_LANES, PRODUCT_SECTORS, PRODUCT_L2, PRODUCT_DRAM, PRODUCT_LEVELS };
struct product_levels {
    double model[PRODUCT_LEVELS], measured[PRODUCT_LEVELS];
};

/* L2 and DRAM stay -1 in the model of a machine whose L2 is not known, all measured ones if
 * gpu, where they come from, is another machine. */
enum status product_levels_find(struct product_levels *levels, const struct product *product,
                                const struct basic_row *row, const char *gpu,
                                const struct machine *machine, struct error *error);

/* The walk from lanes to DRAM. */
enum status product_claim_levels(struct lesson *l, const struct basic_column *k,
                                 struct error *error);

/* Wavefronts, by the closed form, on the CPU and on the GPU. */
void product_claim_shared(struct lesson *l, const struct basic_column *k);

/* Times, beside the least that each unit would need. */
void product_claim_times(struct lesson *l, const struct basic_column *k);

#endif
