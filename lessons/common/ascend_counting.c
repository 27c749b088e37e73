#include "common/ascend_counting.h"

#include <stdio.h>

const struct ascend_design ascend_designs[DESIGN_COUNT] = {
    [DESIGN_910B] = {"910B", &ascend_910b2, false, false, 1, 1},
    [DESIGN_WIDE_TILE] = {"Bc doubled", &ascend_910b2, false, false, 1, 2},
    [DESIGN_TALL_TILE] = {"Br doubled", &ascend_910b2, false, false, 2, 1},
    [DESIGN_NARROW_SCORES] = {"S in", &ascend_910b2, false, true, 1, 1},
    [DESIGN_DIRECT] = {"direct ways", &ascend_910b2, true, false, 1, 1},
    [DESIGN_950] = {"950 Br doubled", &ascend_950, true, false, 2, 1},
};

char *ascend_design_name(char buffer[DESIGN_NAME_SIZE], const struct ascend_design *design,
                         enum dtype dtype)
{
    snprintf(buffer, DESIGN_NAME_SIZE, design->narrow_scores ? "%s %s" : "%s", design->name,
             dtype_name(dtype));
    return buffer;
}

void ascend_counting_prepare(struct ascend_counted *c, const struct ascend_design *design,
                             const struct attention *a)
{
    *c = (struct ascend_counted){.chip = *design->chip};
    c->chip.direct |= design->direct;
    c->run = (struct ascend_run){.attention = *a,
                                 .chip = &c->chip,
                                 .scores_dtype = design->narrow_scores ? a->dtype : DTYPE_F32};
    c->run.attention.block_q *= design->times_q;
    c->run.attention.block_k *= design->times_k;
}

enum status ascend_counting_run(struct ascend_counted *c, const struct ascend_design *design,
                                const struct attention *a, struct error *error)
{
    ascend_counting_prepare(c, design, a);
    if (ascend_count(&c->run, error))
        return error->status;
    c->simulated = io_ascend_of_launch(&c->run.gpu.launches[0]);
    c->predicted =
        io_ascend_predict(&c->run.attention, c->run.scores_dtype, c->run.chip->direct);
    c->equal = io_ascend_equal(&c->simulated, &c->predicted);
    return STATUS_OK;
}

enum status ascend_beside_gpu_run(struct ascend_beside_gpu *both, const struct attention *a,
                                  struct error *error)
{
    const struct simulation base = {.machine = machine_find("H200")};
    if (ascend_counting_run(&both->ascend, &ascend_designs[DESIGN_910B], a, error) ||
        counting_run(&both->gpu, &base, ALGORITHM_FLASH2, a, error))
        return error->status;
    return STATUS_OK;
}

int64_t ascend_gm_bytes(const struct io_ascend *io)
{
    return counting_matrix_bytes(&io->account) + counting_tensor_bytes(&io->account, "Oij");
}

int64_t ascend_workspace_bytes(const struct ascend_counted *c)
{
    const struct attention *a = &c->run.attention;
    const int64_t scores = (int64_t)a->block_q * a->block_k;
    const int64_t product = (int64_t)a->block_q * a->head_dim_v;
    if (c->chip.direct)
        return 0;
    return c->run.gpu.launches[0].grid.x * (int64_t)ASCEND_SLOTS *
           (scores * (dtype_bytes(c->run.scores_dtype) + dtype_bytes(a->dtype)) +
            product * dtype_bytes(DTYPE_F32));
}
