#include "cuda/ladder/step.h"
#include "cuda/ladder/warpgroup.h"
#include "cuda/launch.h"

enum { BOX_COLUMNS = 64, OUTPUT_ROWS = 16 }; /* see tma.h, and struct tma_work */

typedef decltype(&cuTensorMapEncodeTiled) tensor_map_encoder;

/* Of the driver, asked for by name: programs are not linked with it. */
static enum status find_encoder(tensor_map_encoder *encode, struct error *error)
{
    enum { CUDA_12 = 12000 };
    cudaDriverEntryPointQueryResult found;
    CUDA_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)encode,
                                              CUDA_12, cudaEnableDefault, &found),
             error);
    if (found != cudaDriverEntryPointSuccess)
        return error_set(
            error, STATUS_BAD_ARGUMENT,
            "the driver has no cuTensorMapEncodeTiled: CUDA 12 or later is needed");
    return STATUS_OK;
}

struct tensor {
    const char *name;
    const struct ladder_tensor *t;
    int heads, seqlen, box_rows;
    CUtensorMap *map;
};

static enum status describe(tensor_map_encoder encode, const struct attention *a,
                            const struct tensor *x, struct error *error)
{
    enum { RANK = 5 };
    const cuuint64_t extents[RANK] = {BOX_COLUMNS, (cuuint64_t)x->seqlen,
                                      (cuuint64_t)(a->head_dim / BOX_COLUMNS),
                                      (cuuint64_t)x->heads, (cuuint64_t)a->batch};
    const cuuint64_t bytes[RANK - 1] = {(cuuint64_t)x->t->row * 2, BOX_COLUMNS * 2,
                                        (cuuint64_t)x->t->head * 2,
                                        (cuuint64_t)x->t->batch * 2};
    const cuuint32_t box[RANK] = {BOX_COLUMNS, (cuuint32_t)x->box_rows,
                                  (cuuint32_t)(a->head_dim / BOX_COLUMNS), 1, 1};
    const cuuint32_t every[RANK] = {1, 1, 1, 1, 1};
    const CUtensorMapDataType type = a->dtype == DTYPE_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                           : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const CUresult result =
        encode(x->map, type, RANK, x->t->at, extents, bytes, box, every,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result == CUDA_SUCCESS)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_ARGUMENT,
                     "%s at %p, strides %lld, %lld and %lld elements (batch, head, row): the "
                     "copy engine cannot take it (CUDA error %d)",
                     x->name, x->t->at, (long long)x->t->batch, (long long)x->t->head,
                     (long long)x->t->row, (int)result);
}

enum status tensor_maps(struct tma_work *work, struct error *error)
{
    const struct attention *a = &work->work.a;
    const struct ladder_tensors *t = &work->work.t;
    tensor_map_encoder encode = NULL;
    const struct tensor tensors[] = {
        {"Q", &t->Q, a->heads_q, a->seqlen_q, WARPGROUP_ROWS, &work->Q},
        {"K", &t->K, a->heads_kv, a->seqlen_k, a->block_k, &work->K},
        {"V", &t->V, a->heads_kv, a->seqlen_k, a->block_k, &work->V},
        {"O", &t->O, a->heads_q, a->seqlen_q, OUTPUT_ROWS, &work->O},
    };
    if (find_encoder(&encode, error))
        return error->status;
    for (const struct tensor &tensor : tensors)
        if (describe(encode, a, &tensor, error))
            return error->status;
    return STATUS_OK;
}
