#include "common/product_kernels.h"

#include <math.h>
#include <stdio.h>

#include "common/kernel_twin.h"
#include "common/random_inputs.h"

const struct product products[PRODUCTS] = {
    {CPU_MATMUL_NAIVE, 0, {4, 32, 8, 16}, 1, 1},
    {CPU_MATMUL_SHARED, 16, {16, 16, 16, 8}, 1, 1},
    {CPU_MATMUL_SHARED, 32, {32, 32, 32, 2}, 1, 1},
    {CPU_MATMUL_TILED, 16, {16, 16, 16, 9}, 2, 1},
    {CPU_MATMUL_TILED, 32, {32, 32, 32, 9}, 4, 2},
    {CPU_MATMUL_TILED, 64, {64, 64, 64, 5}, 8, 4},
};

char *product_name(char buffer[PRODUCT_NAME_LENGTH], const struct product *product)
{
    if (product->tile == 0)
        snprintf(buffer, PRODUCT_NAME_LENGTH, "%s", cpu_kernel_name(product->kernel));
    else
        snprintf(buffer, PRODUCT_NAME_LENGTH, "%s, T = %d", cpu_kernel_name(product->kernel),
                 product->tile);
    return buffer;
}

struct cpu_run product_run(const struct product *product, int rows, int cols, int depth)
{
    return (struct cpu_run){.kernel = product->kernel,
                            .rows = rows,
                            .cols = cols,
                            .depth = depth,
                            .tile = product->tile};
}

static struct account predict(const struct cpu_run *run)
{
    const struct io_matmul shape = {run->rows, run->cols, run->depth};
    return run->kernel == CPU_MATMUL_NAIVE    ? io_matmul_naive(&shape)
           : run->kernel == CPU_MATMUL_SHARED ? io_matmul_shared(&shape, run->tile)
                                              : io_matmul_tiled(&shape, run->tile);
}

static void multiply(struct account *account, int64_t times)
{
    for (int t = 0; t < account->tensor_count; t++) {
        for (int n = 0; n < DIRECTION_COUNT; n++) {
            account->tensor[t].traffic.of[n].bytes *= times;
            account->tensor[t].traffic.of[n].sectors *= times;
        }
    }
    account->flops.matrix *= times;
}

enum status product_count(struct product_counts *counts, const struct cpu_run *run,
                          const struct machine *machine, struct error *error)
{
    enum { NAIVE_ROWS = 4 };
    struct kernel_twin twin;
    struct cpu_run part = *run;
    const int rows = run->kernel == CPU_MATMUL_NAIVE ? NAIVE_ROWS : run->tile;
    const int sector = SECTOR_BYTES / (int)sizeof(float); /* where rows of blocks must begin */
    if (run->rows % rows == 0 && rows * run->depth % sector == 0 &&
        rows * run->cols % sector == 0)
        part.rows = rows;
    if (kernel_twin_count(&twin, &part, machine, error))
        return error->status;
    counts->predicted = predict(run);
    counts->simulated = twin.simulated;
    multiply(&counts->simulated, run->rows / part.rows);
    return STATUS_OK;
}

static double largest_share(const struct cpu_run *run, const float *C)
{
    const float *A = cpu_run_data(run, "A"), *B = cpu_run_data(run, "B");
    const double roundings = run->depth * 0x1p-24;
    double largest = 0;
    for (int i = 0; i < run->rows; i++) {
        for (int j = 0; j < run->cols; j++) {
            double sum = 0, magnitude = 0;
            for (int k = 0; k < run->depth; k++) {
                const double term =
                    (double)A[i * run->depth + k] * (double)B[k * run->cols + j];
                sum += term;
                magnitude += fabs(term);
            }
            const double share =
                fabs((double)C[i * run->cols + j] - sum) / (roundings * magnitude);
            largest = share <= largest ? largest : share; /* NaN stays */
        }
    }
    return largest;
}

enum status product_error(double *share, const struct cpu_run *shape,
                          const struct machine *machine, struct error *error)
{
    struct cpu_run run = *shape;
    struct kernel_twin twin;
    if (cpu_run_open(&run, error))
        return error->status;
    for (int n = 0; n < run.arrays; n++)
        if (run.array[n].input)
            random_fill(run.array[n].memory, (size_t)run.array[n].count, 1, (unsigned)n + 1);
    if (kernel_twin_run(&twin, &run, machine, error)) {
        cpu_run_close(&run);
        return error->status;
    }
    *share = largest_share(&run, twin.output);
    kernel_twin_free(&twin);
    cpu_run_close(&run);
    return STATUS_OK;
}

/* Nothing runs: what is recorded, beside the counts. */
static enum status look_up(struct basic_column *k, const struct options *o, int N,
                           struct error *error)
{
    for (int n = 0; n < PRODUCTS; n++) {
        struct basic_row *row = &k->row[n];
        struct product_counts counts;
        *row = (struct basic_row){.shape = product_run(&products[n], N, N, N)};
        if (basic_column_recorded(k, row, error) ||
            product_count(&counts, &row->shape, o->simulation.machine, error))
            return error->status;
        for (int d = 0; d < DIRECTION_COUNT; d++) {
            row->sectors.predicted[d] = account_total(&counts.predicted).of[d].sectors;
            row->sectors.simulated[d] = account_total(&counts.simulated).of[d].sectors;
        }
    }
    k->rows = PRODUCTS;
    return STATUS_OK;
}

enum status product_column_open(struct basic_column *k, const struct options *o, int N,
                                struct error *error)
{
    static const int ragged[][3] = {{37, 63, 20}, {65, 129, 33}, {50, 75, 100}};
    struct cpu_run shapes[PRODUCTS], small[BASIC_COLUMN_ROWS];
    int count = 0;
    for (int n = 0; n < PRODUCTS; n++) {
        shapes[n] = product_run(&products[n], N, N, N);
        small[count++] =
            product_run(&products[n], PRODUCT_SMALL_N, PRODUCT_SMALL_N, PRODUCT_SMALL_N);
    }
    for (int n = 0; n < 3; n++) {
        static const int of[] = {PRODUCT_NAIVE, PRODUCT_SHARED_32, PRODUCT_TILED_64};
        small[count++] =
            product_run(&products[of[n]], ragged[n][0], ragged[n][1], ragged[n][2]);
    }
    const bool live = o->gpu || o->cpu;
    if (basic_column_open(k, o, shapes, live ? PRODUCTS : 0, small, count, error))
        return error->status;
    return live ? STATUS_OK : look_up(k, o, N, error);
}
