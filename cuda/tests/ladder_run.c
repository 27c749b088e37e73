#include "ladder_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"

static const char *const layout_names[LAYOUT_COUNT] = {"heads first", "rows first",
                                                       "heads first with gaps"};
static const char *const array_names[RUN_ARRAYS] = {"Q", "K", "V", "taken", "O", "LSE"};

const char *ladder_run_text(const struct ladder_run *run)
{
    static char text[512];
    snprintf(text, sizeof text, "%s, %s, %s", ladder_name(run->step), layout_names[run->layout],
             attention_text(&run->p.a));
    return text;
}

bool ladder_run_is_possible(enum ladder_step step)
{
    static struct device_info gpu;
    static bool said[LADDER_STEPS];
    struct error error;
    /* Without a GPU the launch says why. */
    if ((gpu.sms == 0 && device_query(&gpu, &error)) ||
        ladder_check_gpu(step, gpu.name, gpu.compute_major, gpu.compute_minor, &error) ==
            STATUS_OK)
        return true;
    if (!said[step])
        printf("skipped: %s\n", error.text);
    said[step] = true;
    return false;
}

/* Sets the strides; returns the elements from the first to past the last. */
static size_t lay_out(struct ladder_tensor *t, enum layout layout, int batch, int heads,
                      int seqlen, int head_dim)
{
    const int64_t gap = layout == LAYOUT_GAPS ? 8 : 0;
    t->row = layout == LAYOUT_ROWS_FIRST ? (int64_t)heads * head_dim : head_dim + gap;
    t->head = layout == LAYOUT_ROWS_FIRST ? head_dim : seqlen * t->row + gap;
    t->batch = layout == LAYOUT_ROWS_FIRST ? seqlen * t->row : heads * t->head + gap;
    return (size_t)((batch - 1) * t->batch + (heads - 1) * t->head + (seqlen - 1) * t->row +
                    head_dim);
}

/* Calls visit for every row of the tensor, with its elements in the guarded host array and its
 * number in the dense order (batch, heads, seqlen). */
typedef void row_visitor(unsigned char *row, size_t number, void *context);

static void visit_rows(const struct guarded *array, const struct ladder_tensor *t,
                       const struct attention *a, int heads, int seqlen, row_visitor *visit,
                       void *context)
{
    size_t number = 0;
    for (int b = 0; b < a->batch; b++)
        for (int h = 0; h < heads; h++)
            for (int row = 0; row < seqlen; row++) {
                const int64_t at = b * t->batch + h * t->head + row * t->row;
                visit(array->host + GUARD_BYTES + 2 * at, number++, context);
            }
}

struct conversion {
    const struct attention *a;
    float *x; /* dense */
};

static void encode_row(unsigned char *row, size_t number, void *context)
{
    const struct conversion *c = context;
    const size_t d = (size_t)c->a->head_dim;
    dtype_encode(row, c->a->dtype, c->x + number * d, d);
}

static void decode_row(unsigned char *row, size_t number, void *context)
{
    const struct conversion *c = context;
    const size_t d = (size_t)c->a->head_dim;
    dtype_decode(c->x + number * d, c->a->dtype, row, d);
}

static void clear_row(unsigned char *row, size_t number, void *context)
{
    const struct conversion *c = context;
    (void)number;
    memset(row, 0xff, 2 * (size_t)c->a->head_dim);
}

static enum status guarded_open(struct guarded *array, const char *name, size_t bytes,
                                struct error *error)
{
    const size_t all = bytes + 2 * GUARD_BYTES;
    array->bytes = bytes;
    array->host = allocate(all, 1);
    memset(array->host, 0xff, all);
    return device_alloc((void **)&array->device, name, all, error);
}

static enum status guarded_upload(struct guarded *array, struct error *error)
{
    return device_upload(array->device, array->host, array->bytes + 2 * GUARD_BYTES, error);
}

static enum status open_tensor(struct ladder_run *run, int which, struct ladder_tensor *t,
                               int heads, int seqlen, float *x, struct error *error)
{
    const struct attention *a = &run->p.a;
    struct conversion conversion = {a, x};
    struct guarded *array = &run->array[which];
    const size_t elements = lay_out(t, run->layout, a->batch, heads, seqlen, a->head_dim);
    if (guarded_open(array, array_names[which], 2 * elements, error))
        return error->status;
    t->at = array->device + GUARD_BYTES;
    if (x)
        visit_rows(array, t, a, heads, seqlen, encode_row, &conversion);
    return guarded_upload(array, error);
}

enum status ladder_run_open(struct ladder_run *run, struct error *error)
{
    const struct attention *a = &run->p.a;
    struct guarded *lse = &run->array[RUN_LSE], *taken = &run->array[RUN_TAKEN];
    if (open_tensor(run, RUN_Q, &run->t.Q, a->heads_q, a->seqlen_q, run->p.q, error) ||
        open_tensor(run, RUN_K, &run->t.K, a->heads_kv, a->seqlen_k, run->p.k, error) ||
        open_tensor(run, RUN_V, &run->t.V, a->heads_kv, a->seqlen_k, run->p.v, error) ||
        open_tensor(run, RUN_O, &run->t.O, a->heads_q, a->seqlen_q, NULL, error) ||
        guarded_open(lse, "LSE", count_lse(a) * sizeof(float), error) ||
        guarded_open(taken, "taken", 2 * sizeof(uint32_t), error))
        return error->status;
    run->t.LSE = (float *)(lse->device + GUARD_BYTES);
    run->t.taken = (uint32_t *)(taken->device + GUARD_BYTES);
    memset(taken->host + GUARD_BYTES, 0, taken->bytes);
    return guarded_upload(taken, error);
}

void ladder_run_close(struct ladder_run *run)
{
    for (int i = 0; i < RUN_ARRAYS; i++) {
        free(run->array[i].host);
        device_free(run->array[i].device);
        run->array[i] = (struct guarded){0};
    }
}

enum status ladder_run_poison(struct ladder_run *run, struct error *error)
{
    for (int i = RUN_O; i <= RUN_LSE; i++) {
        memset(run->array[i].host, 0xff, run->array[i].bytes + 2 * GUARD_BYTES);
        if (guarded_upload(&run->array[i], error))
            return error->status;
    }
    return STATUS_OK;
}

enum status ladder_run_launch(void *context, struct error *error)
{
    const struct ladder_run *run = context;
    return ladder_launch(run->step, &run->p.a, &run->t, error);
}

enum status ladder_run_download(struct ladder_run *run, struct answer *answer,
                                struct error *error)
{
    const struct attention *a = &run->p.a;
    *answer = (struct answer){.o = allocate(count_o(a), sizeof *answer->o),
                              .lse = allocate(count_lse(a), sizeof *answer->lse)};
    struct conversion conversion = {a, answer->o};
    for (int i = RUN_O; i <= RUN_LSE; i++) {
        struct guarded *array = &run->array[i];
        if (device_download(array->host, array->device, array->bytes + 2 * GUARD_BYTES,
                            error)) {
            answer_free(answer);
            return error->status;
        }
    }
    visit_rows(&run->array[RUN_O], &run->t.O, a, a->heads_q, a->seqlen_q, decode_row,
               &conversion);
    memcpy(answer->lse, run->array[RUN_LSE].host + GUARD_BYTES, run->array[RUN_LSE].bytes);
    return STATUS_OK;
}

static bool input_changed(const struct guarded *array, struct error *error)
{
    const size_t bytes = array->bytes + 2 * GUARD_BYTES;
    unsigned char *now = allocate(bytes, 1);
    const bool changed = device_download(now, array->device, bytes, error) != STATUS_OK ||
                         memcmp(now, array->host, bytes) != 0;
    free(now);
    return changed;
}

/* The first byte outside the elements that is not 0xff, or bytes. */
static size_t first_written(const struct ladder_run *run, int which)
{
    const struct attention *a = &run->p.a;
    struct guarded copy = run->array[which];
    const size_t bytes = copy.bytes + 2 * GUARD_BYTES;
    struct conversion conversion = {a, NULL};
    copy.host = allocate(bytes, 1);
    memcpy(copy.host, run->array[which].host, bytes);
    if (which == RUN_O)
        visit_rows(&copy, &run->t.O, a, a->heads_q, a->seqlen_q, clear_row, &conversion);
    else
        memset(copy.host + GUARD_BYTES, 0xff, copy.bytes);
    size_t at = 0;
    while (at < bytes && copy.host[at] == 0xff)
        at++;
    free(copy.host);
    return at;
}

bool ladder_run_damage(const struct ladder_run *run, char *text, struct error *error)
{
    for (int i = RUN_Q; i <= RUN_TAKEN; i++)
        if (input_changed(&run->array[i], error)) {
            snprintf(text, 128, "input %s has changed", array_names[i]);
            return true;
        }
    for (int i = RUN_O; i <= RUN_LSE; i++) {
        const size_t at = first_written(run, i);
        if (at < run->array[i].bytes + 2 * GUARD_BYTES) {
            snprintf(text, 128, "byte %zu of %s, which is no element, was overwritten",
                     at - GUARD_BYTES, array_names[i]);
            return true;
        }
    }
    return false;
}
