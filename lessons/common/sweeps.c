#include "common/sweeps.h"

#include <inttypes.h>

#include "common/counting.h"
#include "models/io.h"

const struct figure2_point figure2_points[FIGURE2_POINTS] = {
    {64, "6.577"},
    {128, "3.355"},
    {256, "1.745"},
    {512, "0.940"},
};

struct simulation sweeps_figure2(int block_k)
{
    return (struct simulation){.algorithm = ALGORITHM_FLASH1,
                               .machine = machine_find("A100-40GB"),
                               .attention = {.batch = 64,
                                             .heads_q = 16,
                                             .heads_kv = 16,
                                             .seqlen_q = 1024,
                                             .seqlen_k = 1024,
                                             .head_dim = 64,
                                             .head_dim_v = 64,
                                             .scale = 0.125f,
                                             .dtype = DTYPE_F16,
                                             .block_q = 64,
                                             .block_k = block_k}};
}

static void write_row(FILE *csv, const char *sweep, const struct counted *c,
                      const char *paper_gb)
{
    const struct attention *a = &c->simulation.attention;
    fprintf(csv, "%s,%s,%s,%s,%d,%d,%d,%d,%d,%d,%" PRId64 ",%" PRId64, sweep,
            algorithm_name(c->simulation.algorithm), c->simulation.machine->name,
            dtype_name(a->dtype), a->batch, a->heads_q, a->seqlen_q, a->head_dim, a->block_q,
            a->block_k, counting_matrix_bytes(&c->simulated), io_compulsory_bytes(a));
    fprintf(csv, ",%s\n", paper_gb);
}

static enum status sweep_seqlen(FILE *csv, const struct simulation *base, struct error *error)
{
    for (int algorithm = 0; algorithm < ALGORITHM_COUNT; algorithm++) {
        for (int seqlen = 64; seqlen <= 65536; seqlen *= 2) {
            const struct attention a = counting_with_seqlen(&base->attention, seqlen);
            struct counted c;
            if (counting_run(&c, base, (enum algorithm)algorithm, &a, error))
                return error->status;
            write_row(csv, "seqlen", &c, "NaN");
        }
    }
    return STATUS_OK;
}

/* The paper's number for that block size; NaN, which gnuplot leaves out, if it has none. */
static const char *printed_gb(int block_k)
{
    for (int i = 0; i < FIGURE2_POINTS; i++)
        if (figure2_points[i].block_k == block_k)
            return figure2_points[i].printed;
    return "NaN";
}

static enum status sweep_block(FILE *csv, struct error *error)
{
    static const enum algorithm algorithms[] = {ALGORITHM_FLASH1, ALGORITHM_FLASH2};
    for (int i = 0; i < 2; i++) {
        for (int block = 16; block <= 512; block *= 2) {
            struct simulation s = sweeps_figure2(block);
            struct counted c;
            /* What is reused is the outer loop's tile: Bc in flash1, Br in flash2. */
            if (algorithms[i] == ALGORITHM_FLASH2) {
                s.attention.block_q = block;
                s.attention.block_k = 64;
            }
            if (counting_run(&c, &s, algorithms[i], &s.attention, error)) {
                if (error->status == STATUS_ON_CHIP_FULL)
                    continue; /* the figure shows what fits */
                return error->status;
            }
            write_row(csv, "block", &c, i == 0 ? printed_gb(block) : "NaN");
        }
    }
    return STATUS_OK;
}

enum status sweeps_write(FILE *csv, const struct options *o, struct error *error)
{
    fprintf(csv, "sweep,algorithm,machine,dtype,batch,heads,seqlen,head_dim,block_q,block_k,"
                 "matrix_bytes,compulsory_bytes,paper_gb\n");
    if (sweep_seqlen(csv, &o->simulation, error) || sweep_block(csv, error))
        return error->status;
    return STATUS_OK;
}
