/* The third column of the lessons about vectors, matrix products and softmaxes: what our CUDA
 * kernels did there, as kernel_column.h has it for attention. On this machine's GPU with --gpu;
 * on its CPU, where their source is executed and observed, with --cpu; else as cuda/results
 * says of a GPU, and beside it small shapes on the CPU.
 *
 * Interface:
 *   static const struct cpu_run shapes[] = {{.kernel = CPU_SOFTMAX_SAFE, .rows = 8192, ...}};
 *   struct basic_column k;
 *   basic_column_open(&k, options, shapes, 1, small, 1, &error)   before anything is printed
 *   basic_column_claim(&lesson, &k)                               sectors and results
 *   k.row[0].dram_read_bytes, k.row[0].median_us                  what else is known
 */
#ifndef FLASHLAB_LESSONS_BASIC_COLUMN_H
#define FLASHLAB_LESSONS_BASIC_COLUMN_H

#include "common/kernel_run.h"
#include "common/lesson.h"

enum basic_source { BASIC_UNKNOWN, BASIC_ON_GPU, BASIC_ON_CPU, BASIC_RECORDED };

/* A kernel at a shape. */
struct basic_row {
    struct cpu_run shape; /* kernel, rows, cols, depth and tile */
    enum basic_source source;
    struct kernel_sectors sectors;               /* measured: unless the source is unknown */
    struct kernel_result result;                 /* array NULL: not compared */
    double dram_read_bytes, dram_write_bytes;    /* -1: not known */
    double l2_sectors;                           /* that came to L2; -1: not known */
    double shared_loads, shared_load_wavefronts; /* of warps; -1: not known */
    double median_us;                            /* of a run; -1: not known */
};

enum { BASIC_COLUMN_ROWS = 16 };
struct basic_column {
    bool live;           /* --gpu or --cpu: nothing is recorded */
    char gpu[128];       /* "NVIDIA H200"; empty: no GPU */
    char software[64];   /* "driver 580.159.04, CUDA 13.0" */
    char date[16];       /* of the recording */
    char uncounted[512]; /* why the GPU's counters could not be read */
    int rows, small_rows;
    struct basic_row row[BASIC_COLUMN_ROWS];   /* at the lesson's shapes */
    struct basic_row small[BASIC_COLUMN_ROWS]; /* with their results; none with --cpu */
};

/* Runs the kernels, or looks their shapes up among the recorded ones, and counts on the
 * simulator. A shape without a recording has the source BASIC_UNKNOWN: the lesson then says so.
 */
enum status basic_column_open(struct basic_column *k, const struct options *o,
                              const struct cpu_run *shapes, int count,
                              const struct cpu_run *small, int small_count,
                              struct error *error);

/* The table: sectors of each row in all three columns, and results of the small ones. */
void basic_column_claim(struct lesson *l, const struct basic_column *k);

/* Fills a row with what cuda/results has of its shape, and the names of the GPU. Nothing is
 * simulated. */
enum status basic_column_recorded(struct basic_column *k, struct basic_row *row,
                                  struct error *error);

#endif
