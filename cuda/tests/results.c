#include "results.h"

#include <inttypes.h>
#include <time.h>

#include "cuda/device.h"

enum status results_machine(FILE *file, const char *command, struct error *error)
{
    struct device_info info;
    char date[32];
    const time_t now = time(NULL);
    if (device_query(&info, error))
        return error->status;
    if (!file)
        return STATUS_OK;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    fprintf(file, "# %s, %d SMs, compute capability %d.%d; driver %s, CUDA %d.%d\n", info.name,
            info.sms, info.compute_major, info.compute_minor, info.driver,
            info.runtime_version / 1000, info.runtime_version % 1000 / 10);
    fprintf(file, "# %s: %s\n", date, command);
    return STATUS_OK;
}

void results_shape_columns(FILE *file)
{
    fprintf(file, "kernel,batch,heads_q,heads_kv,seqlen_q,seqlen_k,head_dim,head_dim_v,mask,"
                  "block_q,block_k,rows,cols,depth,tile");
}

void results_shape(FILE *file, const struct run *run)
{
    const struct attention *a = &run->a;
    fprintf(file, "%s,", kernel_name(run->kernel));
    if (kernel_is_attention(run->kernel))
        fprintf(file, "%d,%d,%d,%d,%d,%d,%d,%s,%d,%d,,,,", a->batch, a->heads_q, a->heads_kv,
                a->seqlen_q, a->seqlen_k, a->head_dim, a->head_dim_v, mask_name(a->mask),
                a->block_q, a->block_k);
    else if (run->kernel == KERNEL_VECTOR_ADD)
        fprintf(file, ",,,,,,,,,,,%d,,", run->cols);
    else if (run->kernel == KERNEL_MATMUL_NAIVE)
        fprintf(file, ",,,,,,,,,,%d,%d,%d,", run->rows, run->cols, run->depth);
    else if (kernel_is_matmul(run->kernel))
        fprintf(file, ",,,,,,,,,,%d,%d,%d,%d", run->rows, run->cols, run->depth, run->tile);
    else
        fprintf(file, ",,,,,,,,,,%d,%d,,", run->rows, run->cols);
}

/* The measured columns. Those of the three directions are named like the columns that they are
 * compared with, the others like their counters. */
static const enum counter measured[] = {COUNTER_LOAD_SECTORS,
                                        COUNTER_STORE_SECTORS,
                                        COUNTER_REDUCE_SECTORS,
                                        COUNTER_L2_SECTORS,
                                        COUNTER_DRAM_READ_BYTES,
                                        COUNTER_DRAM_WRITE_BYTES,
                                        COUNTER_SHARED_LOAD_CONFLICTS,
                                        COUNTER_SHARED_STORE_CONFLICTS,
                                        COUNTER_SHARED_LOAD_INSTRUCTIONS,
                                        COUNTER_SHARED_LOAD_WAVEFRONTS,
                                        COUNTER_SHARED_STORE_INSTRUCTIONS,
                                        COUNTER_SHARED_STORE_WAVEFRONTS,
                                        COUNTER_DURATION_NS};
#define MEASURED (sizeof measured / sizeof measured[0])

void results_counters_header(FILE *file)
{
    struct error error;
    if (!file || results_machine(file, "FLASHLAB_COUNTERS_CSV=FILE make gpu-test", &error))
        return;
    results_shape_columns(file);
    static const char *const columns[] = {"predicted", "simulated", "measured"};
    for (int k = 0; k < 3; k++)
        fprintf(file, ",%s_load,%s_store,%s_reduce", columns[k], columns[k], columns[k]);
    for (size_t k = DIRECTION_COUNT; k < MEASURED; k++)
        fprintf(file, ",%s", counter_name(measured[k]));
    fputc('\n', file);
}

static void write_sectors(FILE *file, const struct account *account)
{
    const struct traffic total = account_total(account);
    for (int k = 0; k < DIRECTION_COUNT; k++)
        fprintf(file, ",%" PRId64, total.of[k].sectors);
}

/* -1, not counted, if it is that in any launch. */
static double sum_of_launches(const struct counter_values *values, int launches,
                              enum counter counter)
{
    double sum = 0;
    for (int i = 0; i < launches; i++) {
        if (values[i].of[counter] < 0)
            return -1;
        sum += values[i].of[counter];
    }
    return sum;
}

void results_counters_row(FILE *file, const struct run *run, const struct gpu *simulated,
                          const struct counter_values *values, int launches)
{
    if (!file)
        return;
    const struct account predicted = run_predict(run), account = gpu_account(simulated);
    results_shape(file, run);
    write_sectors(file, &predicted);
    write_sectors(file, &account);
    for (size_t k = 0; k < MEASURED; k++)
        fprintf(file, ",%.0f", sum_of_launches(values, launches, measured[k]));
    fputc('\n', file);
}
