#include "cuda/ladder/ladder.h"

#include <stddef.h>

enum { ALIGN_BYTES = 16, ALIGN_ELEMENTS = 8, OLDEST_MAJOR = 8 };

static const char *const names[LADDER_STEPS] = {
    [LADDER_MMA] = "01_mma",
    [LADDER_LDMATRIX] = "02_ldmatrix",
    [LADDER_CP_ASYNC] = "03_cp_async",
    [LADDER_REGISTERS] = "04_registers",
    [LADDER_TWO_TILES] = "05_two_tiles",
    [LADDER_TMA] = "06_tma",
    [LADDER_WGMMA] = "07_wgmma",
    [LADDER_PRODUCER] = "08_producer",
    [LADDER_PING_PONG] = "09_ping_pong",
    [LADDER_OVERLAP] = "10_overlap",
    [LADDER_PERSISTENT] = "11_persistent",
    [LADDER_EXP2] = "12_exp2",
    [LADDER_RESCALE] = "13_rescale",
};

const int ladder_step_count = LADDER_STEPS;

const char *ladder_name(enum ladder_step step)
{
    return names[step];
}

static enum status check_problem(const char *name, const struct attention *a,
                                 struct error *error)
{
    if (a->dtype != DTYPE_F16 && a->dtype != DTYPE_BF16)
        return error_set(
            error, STATUS_BAD_ARGUMENT,
            "--dtype %s: %s computes in f16 and bf16; flash2 of cuda/kernels in f32",
            dtype_name(a->dtype), name);
    if (a->head_dim != 64 && a->head_dim != 128 && a->head_dim != 256)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--head-dim %d: %s is compiled for 64, 128 and 256", a->head_dim,
                         name);
    if (a->head_dim_v != a->head_dim)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--head-dim-v %d: %s needs that of Q and K, %d", a->head_dim_v, name,
                         a->head_dim);
    if (a->mask != MASK_NONE && a->mask != MASK_CAUSAL)
        return error_set(error, STATUS_BAD_ARGUMENT, "--mask %s: %s can do none and causal",
                         mask_name(a->mask), name);
    return STATUS_OK;
}

static enum status check_tensor(const char *name, const char *tensor,
                                const struct ladder_tensor *t, struct error *error)
{
    const struct {
        const char *name;
        int64_t elements;
    } strides[] = {{"batch", t->batch}, {"head", t->head}, {"row", t->row}};
    if (!t->at || (uintptr_t)t->at % ALIGN_BYTES != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the address of %s is %p: it must be a multiple of %d, not 0",
                         name, tensor, t->at, ALIGN_BYTES);
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++)
        if (strides[i].elements < 0 || strides[i].elements % ALIGN_ELEMENTS != 0)
            return error_set(
                error, STATUS_BAD_ARGUMENT,
                "%s: the %s stride of %s is %lld elements: it must be a multiple of "
                "%d, at least 0",
                name, strides[i].name, tensor, (long long)strides[i].elements, ALIGN_ELEMENTS);
    return STATUS_OK;
}

enum status ladder_check(enum ladder_step step, const struct attention *a,
                         const struct ladder_tensors *t, struct error *error)
{
    const char *name = names[step];
    struct attention tiled = *a;
    ladder_tile(&tiled.block_q, &tiled.block_k, step, a->head_dim);
    if (check_problem(name, a, error) || attention_check(&tiled, error) ||
        check_tensor(name, "Q", &t->Q, error) || check_tensor(name, "K", &t->K, error) ||
        check_tensor(name, "V", &t->V, error) || check_tensor(name, "O", &t->O, error))
        return error->status;
    if (!t->LSE || (uintptr_t)t->LSE % sizeof(float) != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the address of LSE is %p: it must be a multiple of 4, not 0",
                         name, (void *)t->LSE);
    if (step >= LADDER_PERSISTENT && (!t->taken || (uintptr_t)t->taken % sizeof *t->taken != 0))
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the address of taken is %p: it must be a multiple of 4, not 0",
                         name, (void *)t->taken);
    return STATUS_OK;
}

enum status ladder_check_gpu(enum ladder_step step, const char *gpu, int major, int minor,
                             struct error *error)
{
    if (major >= OLDEST_MAJOR)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "%s has compute capability %d.%d: %s needs %d.0 or later; flash2 of "
                     "cuda/kernels works there, in f32",
                     gpu, major, minor, names[step], OLDEST_MAJOR);
}
