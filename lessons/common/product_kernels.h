/* The matrix products of lesson 02: which kernels with which tiles, and their counts.
 *
 * Interface:
 *   struct basic_column k;
 *   product_column_open(&k, &options, N, &error)          k.row[n] belongs to products[n]
 *   product_count(&counts, &k.row[n].shape, machine, &error)
 */
#ifndef FLASHLAB_LESSONS_PRODUCT_KERNELS_H
#define FLASHLAB_LESSONS_PRODUCT_KERNELS_H

#include "common/basic_column.h"
#include "common/product_dram.h"

enum { PRODUCTS = 6 };

/* blocks.per_sm: as the driver counts them on an H200, cuda/results/h200_occupancy.csv. */
struct product {
    enum cpu_kernel kernel;
    int tile; /* 0: none */
    struct product_blocks blocks;
    int thread_rows, thread_cols; /* elements of C that a thread has */
};
extern const struct product products[PRODUCTS];
enum { PRODUCT_NAIVE = 0, PRODUCT_SHARED_32 = 2, PRODUCT_TILED_64 = 5 };

/* "matmul_tiled, T = 64", in a buffer that is returned. */
enum { PRODUCT_NAME_LENGTH = 32 };
char *product_name(char buffer[PRODUCT_NAME_LENGTH], const struct product *product);

/* rows x cols <- depth, the kernel and tile of the product. */
struct cpu_run product_run(const struct product *product, int rows, int cols, int depth);

/* Simulated is one row of thread blocks, times the rows of blocks, where they are all whole:
 * then each moves the same. Else it is all of them. */
struct product_counts {
    struct account predicted, simulated;
};
enum status product_count(struct product_counts *counts, const struct cpu_run *run,
                          const struct machine *machine, struct error *error);

/* The largest error of the simulated product of random matrices against float64, as a share of
 * depth roundings of the sum of the terms' magnitudes (Higham 2002, section 4.2). */
enum status product_error(double *share, const struct cpu_run *shape,
                          const struct machine *machine, struct error *error);

/* The kernels on N x N matrices on the GPU or CPU as the options say, else as recorded; and on
 * small ones, ragged and whole, with results. With --cpu only small ones would end soon. */
enum status product_column_open(struct basic_column *k, const struct options *o, int N,
                                struct error *error);

/* Of the small rows the first PRODUCTS have whole tiles, in the order of the products. */
enum { PRODUCT_SMALL_N = 128 };

#endif
