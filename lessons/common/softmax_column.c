#include "common/softmax_column.h"

#include <math.h>
#include <string.h>

#include "core/traffic.h"

static const enum cpu_kernel kernels[SOFTMAX_WAYS] = {CPU_SOFTMAX_NAIVE, CPU_SOFTMAX_SAFE,
                                                      CPU_SOFTMAX_ONLINE};

enum status softmax_column_open(struct basic_column *k, const struct options *o, int N,
                                struct error *error)
{
    struct cpu_run shapes[SOFTMAX_WAYS], small[SOFTMAX_WAYS];
    for (int way = 0; way < SOFTMAX_WAYS; way++) {
        shapes[way] = (struct cpu_run){.kernel = kernels[way], .rows = N, .cols = N};
        small[way] = (struct cpu_run){.kernel = kernels[way], .rows = 5, .cols = 1003};
    }
    return basic_column_open(k, o, shapes, SOFTMAX_WAYS, small, SOFTMAX_WAYS, error);
}

static enum status read_length(struct softmax_sweep *s, struct softmax_length *length,
                               struct error *error)
{
    for (int way = 0; way < SOFTMAX_WAYS; way++) {
        struct basic_row row = {
            .shape = {.kernel = kernels[way], .rows = length->rows, .cols = length->cols}};
        if (basic_column_recorded(&s->gpu, &row, error))
            return error->status;
        if (row.source != BASIC_RECORDED || row.median_us < 0 || row.dram_read_bytes < 0 ||
            row.dram_write_bytes < 0)
            return error_set(error, STATUS_BAD_FILE,
                             "cuda/results/h200_basic.csv: %s of %d x %d is missing",
                             cpu_kernel_name(kernels[way]), length->rows, length->cols);
        const int64_t *sectors = row.sectors.measured;
        length->way[way].requested =
            (double)(SECTOR_BYTES * (sectors[DIRECTION_READ] + sectors[DIRECTION_WRITE])) /
            4.0 / SWEEP_ELEMENTS;
        length->way[way].of_dram =
            (row.dram_read_bytes + row.dram_write_bytes) / 4.0 / SWEEP_ELEMENTS;
        length->way[way].us = row.median_us;
    }
    return STATUS_OK;
}

enum status softmax_sweep_read(struct softmax_sweep *s, struct error *error)
{
    int count = 0;
    memset(s, 0, sizeof *s);
    for (int cols = SWEEP_FIRST; cols <= SWEEP_LAST; cols *= 2) {
        struct softmax_length *length = &s->length[count++];
        length->cols = cols;
        length->rows = SWEEP_ELEMENTS / cols;
        if (read_length(s, length, error))
            return error->status;
    }
    CHECK(count == SWEEP_LENGTHS, "%d lengths", count);
    return STATUS_OK;
}

double softmax_sweep_error(const struct softmax_sweep *s, int first, int last, int loads)
{
    double worst = 0;
    for (int n = 0; n < SWEEP_LENGTHS; n++) {
        for (int way = 0; way < SOFTMAX_WAYS; way++) {
            const double want = 1 + (loads ? loads : softmax_loads((enum softmax_way)way));
            if (s->length[n].cols >= first && s->length[n].cols <= last)
                worst = fmax(worst, fabs(s->length[n].way[way].of_dram / want - 1));
        }
    }
    return worst;
}

int softmax_sweep_uncached(const struct softmax_sweep *s)
{
    int first = 0;
    for (int n = SWEEP_LENGTHS - 1; n >= 0; n--) {
        if (s->length[n].way[SOFTMAX_SAFE].of_dram < 0.95 * 4)
            break;
        first = s->length[n].cols;
    }
    return first;
}

int softmax_fills_l2(const struct machine *m)
{
    const int64_t rows = (int64_t)m->sms * (m->threads_per_sm / 256);
    return (int)(m->l2_bytes / (rows * (int64_t)sizeof(float)));
}

enum status softmax_sweep_write(FILE *csv, struct error *error)
{
    static struct softmax_sweep s;
    if (softmax_sweep_read(&s, error))
        return error->status;
    fprintf(csv, "kernel,cols,rows,predicted_accesses,requested_accesses,dram_accesses,us,"
                 "fills_l2\n");
    for (int n = 0; n < SWEEP_LENGTHS; n++)
        for (int way = 0; way < SOFTMAX_WAYS; way++)
            fprintf(csv, "%s,%d,%d,%d,%.4f,%.4f,%.2f,%d\n",
                    softmax_way_name((enum softmax_way)way), s.length[n].cols, s.length[n].rows,
                    softmax_loads((enum softmax_way)way) + 1, s.length[n].way[way].requested,
                    s.length[n].way[way].of_dram, s.length[n].way[way].us,
                    softmax_fills_l2(machine_find("H200")));
    return STATUS_OK;
}
