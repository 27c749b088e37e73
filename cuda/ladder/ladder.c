#include "cuda/ladder/ladder.h"

#include <stddef.h>

enum { ALIGN_BYTES = 16, ALIGN_ELEMENTS = 8, OLDEST_MAJOR = 8, HOPPER_MAJOR = 9 };

/* CUDA Driver API, cuTensorMapEncodeTiled: strides are less than 2^40 bytes. */
static const int64_t copy_engine_elements = (int64_t)1 << 39;

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
    [LADDER_QUERIES] = "14_queries",
};

const int ladder_step_count = LADDER_STEPS;

const char *ladder_name(enum ladder_step step)
{
    return names[step];
}

bool ladder_needs_hopper(enum ladder_step step)
{
    return step > LADDER_TWO_TILES;
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

static enum status check_stride(enum ladder_step step, const char *tensor, const char *stride,
                                int64_t elements, struct error *error)
{
    if (elements < 0 || elements % ALIGN_ELEMENTS != 0)
        return error_set(
            error, STATUS_BAD_ARGUMENT,
            "%s: the %s stride of %s is %lld elements: it must be a multiple of %d, at least 0",
            names[step], stride, tensor, (long long)elements, ALIGN_ELEMENTS);
    if (ladder_needs_hopper(step) && elements >= copy_engine_elements)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the %s stride of %s is %lld elements: the copy engine takes less "
                         "than %lld; %s takes any",
                         names[step], stride, tensor, (long long)elements,
                         (long long)copy_engine_elements, names[LADDER_TWO_TILES]);
    return STATUS_OK;
}

static enum status check_tensor(enum ladder_step step, const char *tensor,
                                const struct ladder_tensor *t, struct error *error)
{
    if (!t->at || (uintptr_t)t->at % ALIGN_BYTES != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the address of %s is %p: it must be a multiple of %d, not 0",
                         names[step], tensor, t->at, ALIGN_BYTES);
    if (check_stride(step, tensor, "batch", t->batch, error) ||
        check_stride(step, tensor, "head", t->head, error) ||
        check_stride(step, tensor, "row", t->row, error))
        return error->status;
    return STATUS_OK;
}

/* Persistent blocks count tiles of queries, of at least 64, in ints. */
static enum status check_persistent(const char *name, const struct attention *a,
                                    const struct ladder_tensors *t, struct error *error)
{
    enum { LEAST_ROWS = 64, MOST_TILES = 1 << 30 };
    const int64_t planes = (int64_t)a->batch * a->heads_q;
    const int64_t tiles = ((int64_t)a->seqlen_q + LEAST_ROWS - 1) / LEAST_ROWS;
    if (!t->taken || (uintptr_t)t->taken % sizeof *t->taken != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the address of taken is %p: it must be a multiple of 4, not 0",
                         name, (void *)t->taken);
    if (planes > MOST_TILES / tiles)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "--batch %d, --heads-q %d, --seqlen-q %d: batch * heads * (seqlen / "
                         "%d) may be %d at most for %s",
                         a->batch, a->heads_q, a->seqlen_q, LEAST_ROWS, MOST_TILES, name);
    return STATUS_OK;
}

enum status ladder_check(enum ladder_step step, const struct attention *a,
                         const struct ladder_tensors *t, struct error *error)
{
    const char *name = names[step];
    struct attention tiled = *a;
    tiled.block_q = tiled.block_k = 1; /* the step brings its own, which fit */
    if (check_problem(name, a, error) || attention_check(&tiled, error) ||
        check_tensor(step, "Q", &t->Q, error) || check_tensor(step, "K", &t->K, error) ||
        check_tensor(step, "V", &t->V, error) || check_tensor(step, "O", &t->O, error))
        return error->status;
    if (!t->LSE || (uintptr_t)t->LSE % sizeof(float) != 0)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s: the address of LSE is %p: it must be a multiple of 4, not 0",
                         name, (void *)t->LSE);
    if (step >= LADDER_PERSISTENT && check_persistent(name, a, t, error))
        return error->status;
    return STATUS_OK;
}

enum status ladder_check_gpu(enum ladder_step step, const char *gpu, int major, int minor,
                             struct error *error)
{
    if (major < OLDEST_MAJOR)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s has compute capability %d.%d: %s needs %s; flash2 of cuda/kernels "
                         "works there, in f32",
                         gpu, major, minor, names[step],
                         ladder_needs_hopper(step) ? "9.0" : "8.0 or later");
    if (ladder_needs_hopper(step) && (major != HOPPER_MAJOR || minor != 0))
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s has compute capability %d.%d: %s needs 9.0; %s works there", gpu,
                         major, minor, names[step], names[LADDER_TWO_TILES]);
    return STATUS_OK;
}
