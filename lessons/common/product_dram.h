/* DRAM bytes of a matrix product by blocks, as the model of L2 gives them.
 *
 * Interface:
 *   struct product_dram dram;
 *   product_dram_predict(&dram, &(struct product_blocks){64, 64, 64, 5}, &shape, machine,
 * &error)
 *
 * A block of threads takes step columns of its rows of A and step rows of its columns of B at a
 * time, once each: what leaves an SM when shared memory, or L1 in the product that has none,
 * serves all threads of a block. Blocks go row by row over C. Some of them are modelled, and
 * stand for the others.
 */
#ifndef FLASHLAB_LESSONS_PRODUCT_DRAM_H
#define FLASHLAB_LESSONS_PRODUCT_DRAM_H

#include "core/machine.h"
#include "core/status.h"
#include "models/io_basic.h"

/* Extents are multiples of these, or the last blocks are smaller. */
struct product_blocks {
    int rows, cols, step;
    int per_sm; /* resident at a time */
};

struct product_dram {
    int64_t l2_bytes;   /* loads that leave the SMs */
    int64_t dram_bytes; /* read from DRAM */
};

/* Refuses a machine whose L2 is not known. */
enum status product_dram_predict(struct product_dram *dram, const struct product_blocks *blocks,
                                 const struct io_matmul *shape, const struct machine *machine,
                                 struct error *error);

#endif
