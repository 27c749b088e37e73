#include "vit/vit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "kernels/basic_kernels.h"
#include "vit/image.h"

#define DATA FLASHLAB_ROOT "/lessons/data/"

enum {
    OF_PATCHES = VIT_PATCHES * VIT_WIDTH,
    OF_SQUARE = VIT_SIDE * VIT_SIDE * 3,
    EYE = 5 * VIT_GRID + 4,                          /* the cat's */
    MIDDLE = VIT_GRID / 2 * VIT_GRID + VIT_GRID / 2, /* of any other picture */
};

/* C (rows, cols) <- A (rows, depth) B (depth, cols) on the simulated GPU. Without arrays it
 * only counts. */
static enum status multiply(float *C, struct account *account, const struct machine *machine,
                            const float *A, const float *B, int rows, int cols, int depth,
                            struct error *error)
{
    struct hbm_tensor a = {0}, b = {0}, c = {0};
    struct gpu gpu;
    gpu_init(&gpu, machine, C ? GPU_DATA : GPU_COUNTS);
    const bool failed = hbm_alloc_input(&a, &gpu, "A", DTYPE_F32, 1, rows, depth, A, error) ||
                        hbm_alloc_input(&b, &gpu, "B", DTYPE_F32, 1, depth, cols, B, error) ||
                        hbm_alloc(&c, &gpu, "C", DTYPE_F32, 1, rows, cols, error) ||
                        matmul_tiled(&gpu, &c, &a, &b, PROJECTION_TILE, error);
    if (!failed && C)
        hbm_download(C, &c);
    *account = gpu_account(&gpu);
    hbm_free(&a);
    hbm_free(&b);
    hbm_free(&c);
    return failed ? error->status : STATUS_OK;
}

enum status vit_count_projection(struct account *account, const struct machine *machine, int N,
                                 struct error *error)
{
    return multiply(NULL, account, machine, NULL, NULL, N, 3 * VIT_WIDTH, VIT_WIDTH, error);
}

static enum status read_picture(struct vit *vit, const char *path, struct error *error)
{
    struct image image;
    if (image_read(&image, path, error)) {
        error_prefix(error, "--image ");
        return error->status;
    }
    vit->width = image.width;
    vit->height = image.height;
    const enum status status = image_square(vit->square, &image, VIT_SIDE, error);
    image_free(&image);
    return status;
}

/* A whole number from 0 to most - 1 at *text, which moves behind it; -1 if there is none. */
static int parse_place(const char **text, int most)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -1;
    const long value = strtol(*text, &end, 10);
    *text = end;
    return value < most ? (int)value : -1;
}

static enum status parse_patch(int *patch, const char *text, struct error *error)
{
    const char *at = text;
    if (strchr(text, ',')) {
        const int row = parse_place(&at, VIT_GRID);
        const int column = row >= 0 && *at++ == ',' ? parse_place(&at, VIT_GRID) : -1;
        *patch = column >= 0 ? row * VIT_GRID + column : -1;
    } else {
        *patch = parse_place(&at, VIT_PATCHES);
    }
    if (*patch >= 0 && *at == '\0')
        return STATUS_OK;
    return error_set(
        error, STATUS_BAD_ARGUMENT,
        "--patch %.100s: must be row,column, each from 0 to %d, or a number from 0 "
        "to %d",
        text, VIT_GRID - 1, VIT_PATCHES - 1);
}

/* Reads Q or K of the trained model; a message begins with its option. */
static enum status read_trained(struct npy *array, const char *option, const char *path,
                                struct error *error)
{
    if (npy_read(array, path, error))
        error_prefix(error, option);
    else if (array->ndim != 4 || array->shape[0] != 1 || array->shape[1] < 1 ||
             array->shape[1] > 64 || array->shape[2] != 1 + VIT_PATCHES ||
             array->shape[3] < 1 || array->shape[3] > 256 || array->nonfinite > 0)
        return error_set(
            error, STATUS_BAD_FILE,
            "%s%s: must be finite, of shape (1, heads, %d, d): the class token and "
            "%d patches; at most 64 heads, d at most 256",
            option, path, 1 + VIT_PATCHES, VIT_PATCHES);
    else
        return STATUS_OK;
    return error->status;
}

static enum status open_trained(struct vit *vit, const struct options *o, struct error *error)
{
    const char *q = o->q, *k = o->k;
    if (!q != !k)
        return error_set(error, STATUS_BAD_ARGUMENT, "--%s: needs --%s too", q ? "q" : "k",
                         q ? "k" : "q");
    if (!q && o->image)
        return STATUS_OK;
    if (read_trained(&vit->trained_q, "--q ", q ? q : DATA "vit_q.npy", error) ||
        read_trained(&vit->trained_k, "--k ", k ? k : DATA "vit_k.npy", error))
        return error->status;
    if (memcmp(vit->trained_q.shape, vit->trained_k.shape, 4 * sizeof(int64_t)) != 0)
        return error_set(error, STATUS_BAD_FILE, "--q and --k: must have the same shape");
    return STATUS_OK;
}

static float *floats(size_t count)
{
    return malloc(count * sizeof(float));
}

/* patches -> X -> Q, K, V. work (D, 3 D): the weights of one product after the other; qkv (N,
 * 3 D). */
static enum status project(struct vit *vit, const struct machine *machine, float *work,
                           float *qkv, struct error *error)
{
    patches_cut(vit->patches, vit->square);
    patches_embedding(work);
    if (multiply(vit->x, &vit->embedding, machine, vit->patches, work, VIT_PATCHES, VIT_WIDTH,
                 VIT_WIDTH, error))
        return error->status;
    patches_add_positions(vit->x);
    patches_projection(work);
    if (multiply(qkv, &vit->projection, machine, vit->x, work, VIT_PATCHES, 3 * VIT_WIDTH,
                 VIT_WIDTH, error))
        return error->status;
    patches_split_heads(vit->q, qkv, 0);
    patches_split_heads(vit->k, qkv, 1);
    patches_split_heads(vit->v, qkv, 2);
    patches_normalise(vit->q);
    patches_normalise(vit->k);
    return STATUS_OK;
}

static enum status make(struct vit *vit, const struct options *o, struct error *error)
{
    float *work = floats((size_t)3 * VIT_WIDTH * VIT_WIDTH),
          *qkv = floats((size_t)3 * OF_PATCHES);
    enum status status = STATUS_OK;
    vit->square = floats(OF_SQUARE);
    vit->patches = floats(OF_PATCHES);
    vit->x = floats(OF_PATCHES);
    vit->q = floats(OF_PATCHES);
    vit->k = floats(OF_PATCHES);
    vit->v = floats(OF_PATCHES);
    if (!work || !qkv || !vit->square || !vit->patches || !vit->x || !vit->q || !vit->k ||
        !vit->v)
        status = error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for Q, K and V");
    else if (read_picture(vit, o->image ? o->image : DATA "cat.png", error) ||
             project(vit, o->simulation.machine, work, qkv, error))
        status = error->status;
    free(work);
    free(qkv);
    return status;
}

enum status vit_open(struct vit *vit, const struct options *o, struct error *error)
{
    *vit = (struct vit){.picture = o->image ? o->image : "lessons/data/cat.png",
                        .patch = o->image ? MIDDLE : EYE};
    if ((o->patch && parse_patch(&vit->patch, o->patch, error)) ||
        open_trained(vit, o, error) || make(vit, o, error)) {
        vit_close(vit);
        return error->status;
    }
    return STATUS_OK;
}

void vit_close(struct vit *vit)
{
    float *const owned[] = {vit->square, vit->patches, vit->x, vit->q, vit->k, vit->v};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    npy_free(&vit->trained_q);
    npy_free(&vit->trained_k);
}

bool vit_is_trained(const struct vit *vit)
{
    return vit->trained_q.data != NULL;
}

struct heads vit_heads(const struct vit *vit)
{
    return (struct heads){VIT_HEADS, VIT_PATCHES, VIT_HEAD_DIM, 1 / sqrt(VIT_HEAD_DIM),
                          vit->q,    vit->k};
}

struct heads vit_trained_heads(const struct vit *vit)
{
    const int64_t *shape = vit->trained_q.shape;
    return (struct heads){(int)shape[1],       (int)shape[2],
                          (int)shape[3],       1 / sqrt((double)shape[3]),
                          vit->trained_q.data, vit->trained_k.data};
}

struct simulation vit_simulation(const struct simulation *base, enum algorithm algorithm,
                                 const struct heads *h)
{
    struct simulation s = {
        .algorithm = algorithm, .attention = base->attention, .machine = base->machine};
    s.attention.batch = 1;
    s.attention.heads_q = s.attention.heads_kv = h->heads;
    s.attention.seqlen_q = s.attention.seqlen_k = h->tokens;
    s.attention.head_dim = s.attention.head_dim_v = h->head_dim;
    s.attention.scale = (float)h->scale;
    return s;
}

enum status vit_forward(struct simulation *s, const struct heads *h, const float *v, float *o,
                        float *lse, struct error *error)
{
    return attention_simulate(s, h->q, h->k, v, o, lse, error);
}

enum status vit_lse(const struct simulation *base, const struct heads *h, float *lse,
                    struct error *error)
{
    struct simulation s = vit_simulation(base, ALGORITHM_FLASH2, h);
    float *o = floats((size_t)h->heads * (size_t)h->tokens * (size_t)h->head_dim);
    s.attention.dtype = DTYPE_F32;
    /* LSE does not depend on V: K is of its shape. */
    const enum status status =
        o ? vit_forward(&s, h, h->k, o, lse, error)
          : error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for O");
    free(o);
    return status;
}

/* mean (tokens), and head[i] (tokens) for the first heads. */
static enum status map_of(double *mean, double head[VIT_SHOWN_HEADS][1 + VIT_PATCHES],
                          const struct simulation *base, const struct heads *h, int token,
                          struct error *error)
{
    float *lse = floats((size_t)h->heads * (size_t)h->tokens);
    const enum status status =
        lse ? vit_lse(base, h, lse, error)
            : error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for LSE");
    if (!status) {
        attention_map_mean(mean, h, token, lse);
        for (int i = 0; i < VIT_SHOWN_HEADS && i < h->heads; i++)
            attention_map_row(head[i], h, i, token, lse);
    }
    free(lse);
    return status;
}

enum status vit_map(struct vit_maps *maps, const struct simulation *base, const struct vit *vit,
                    struct error *error)
{
    const struct heads h = vit_heads(vit);
    if (map_of(maps->alike, maps->head, base, &h, vit->patch, error))
        return error->status;
    if (!vit_is_trained(vit))
        return STATUS_OK;
    const struct heads trained = vit_trained_heads(vit);
    return map_of(maps->trained, maps->head, base, &trained, 1 + vit->patch, error);
}
