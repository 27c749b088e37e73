/* Prints what this GPU's counters say of each probe of tests/common/probes.h, and of each
 * transposition of tests/common/transpositions.h, as CSV: for tests/test_probes.c, which
 * predicts every number. A transposition's pattern is its kind, its a and b rows and columns.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/counters.h"
#include "probe_kernels.h"
#include "results.h"
#include "transposition_kernels.h"

enum { BATCH = 8 }; /* launches that are measured together */

/* Whole numbers of one launch, in the columns' order. */
static const enum counter columns[] = {
    COUNTER_LOAD_SECTORS,
    COUNTER_STORE_SECTORS,
    COUNTER_SHARED_LOAD_INSTRUCTIONS,
    COUNTER_SHARED_LOAD_WAVEFRONTS,
    COUNTER_SHARED_STORE_INSTRUCTIONS,
    COUNTER_SHARED_STORE_WAVEFRONTS,
    COUNTER_MATRIX_LOAD_INSTRUCTIONS,
    COUNTER_MATRIX_LOAD_WAVEFRONTS,
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* Measures the count launches of work(). */
static enum status measure_batch(struct counter_values values[BATCH], int count,
                                 struct counters *counters, device_work *work, void *context,
                                 struct error *error)
{
    int launches;
    if (counters_measure(values, BATCH, &launches, counters, work, context, error))
        return error->status;
    if (launches != count)
        return error_set(error, STATUS_BAD_ARGUMENT, "%d launches measured, not %d", launches,
                         count);
    return STATUS_OK;
}

static void print_row(const char *access, int bytes, int lanes, const char *pattern, int a,
                      int b, const struct counter_values *values)
{
    printf("%s,%d,%d,%s,%d,%d", access, bytes, lanes, pattern, a, b);
    for (int k = 0; k < COLUMNS; k++)
        printf(",%.0f", values->of[columns[k]]);
    printf("\n");
}

struct batch {
    const struct probe *probe;
    int count;
    void *memory;
};

static enum status launch_batch(void *context, struct error *error)
{
    const struct batch *batch = context;
    for (int i = 0; i < batch->count; i++)
        if (launch_probe(&batch->probe[i], batch->memory, error))
            return error->status;
    return STATUS_OK;
}

static enum status measure_probes(struct counters *counters, void *memory, struct error *error)
{
    static struct probe_list list;
    struct counter_values values[BATCH];
    probe_list_fill(&list);
    for (int first = 0; first < list.count; first += BATCH) {
        const int left = list.count - first;
        struct batch batch = {&list.probe[first], left < BATCH ? left : BATCH, memory};
        if (measure_batch(values, batch.count, counters, launch_batch, &batch, error))
            return error->status;
        for (int i = 0; i < batch.count; i++) {
            const struct probe *p = &batch.probe[i];
            print_row(probe_access_name(p->access), p->bytes, p->lanes,
                      probe_pattern_name(p->pattern), p->a, p->b, &values[i]);
        }
    }
    return STATUS_OK;
}

/* Matrices on the device and on the host. */
struct matrices {
    float *A, *B;
    float host_A[TRANSPOSITION_MOST], host_B[TRANSPOSITION_MOST];
};

enum { MATRIX_BYTES = TRANSPOSITION_MOST * (int)sizeof(float) };

static enum status open_matrices(struct matrices *m, struct error *error)
{
    for (int i = 0; i < TRANSPOSITION_MOST; i++)
        m->host_A[i] = (float)i;
    if (device_alloc((void **)&m->A, "A", MATRIX_BYTES, error) ||
        device_alloc((void **)&m->B, "B", MATRIX_BYTES, error) ||
        device_upload(m->A, m->host_A, MATRIX_BYTES, error))
        return error->status;
    return STATUS_OK;
}

/* A kernel whose counters are of use transposes. */
static enum status check_transposed(const struct transposition *t, struct matrices *m,
                                    struct error *error)
{
    if (launch_transposition(t, m->B, m->A, error) ||
        device_download(m->host_B, m->B, MATRIX_BYTES, error))
        return error->status;
    for (int r = 0; r < t->rows; r++)
        for (int c = 0; c < t->cols; c++)
            if (!(m->host_B[c * t->rows + r] == m->host_A[r * t->cols + c]))
                return error_set(error, STATUS_BAD_ARGUMENT,
                                 "%s of %d bytes, %d x %d: row %d, column %d is wrong",
                                 transposition_name(t->kind), t->bytes, t->rows, t->cols, r, c);
    return STATUS_OK;
}

struct transposition_batch {
    const struct transposition *first;
    int count;
    struct matrices *m;
};

static enum status launch_transpositions(void *context, struct error *error)
{
    const struct transposition_batch *batch = context;
    for (int i = 0; i < batch->count; i++)
        if (launch_transposition(&batch->first[i], batch->m->B, batch->m->A, error))
            return error->status;
    return STATUS_OK;
}

static enum status measure_transpositions(struct counters *counters, struct matrices *m,
                                          struct error *error)
{
    struct counter_values values[BATCH];
    int count;
    const struct transposition *list = transposition_list(&count);
    for (int i = 0; i < count; i++)
        if (check_transposed(&list[i], m, error))
            return error->status;
    for (int first = 0; first < count; first += BATCH) {
        const int left = count - first;
        struct transposition_batch batch = {&list[first], left < BATCH ? left : BATCH, m};
        if (measure_batch(values, batch.count, counters, launch_transpositions, &batch, error))
            return error->status;
        for (int i = 0; i < batch.count; i++) {
            const struct transposition *t = &batch.first[i];
            print_row("transposition", t->bytes, PROBE_LANES, transposition_name(t->kind),
                      t->rows, t->cols, &values[i]);
        }
    }
    return STATUS_OK;
}

static void print_header(void)
{
    printf("access,bytes,lanes,pattern,a,b");
    for (int k = 0; k < COLUMNS; k++)
        printf(",%s", counter_name(columns[k]));
    printf("\n");
}

int main(void)
{
    static struct matrices matrices;
    struct error error = {0};
    struct counters *counters = NULL;
    void *memory = NULL;
    if (!results_machine(stdout, "make gpu-probes", &error) &&
        !device_alloc(&memory, "the probes' memory", PROBE_SLOTS * 16, &error) &&
        !open_matrices(&matrices, &error) && !counters_open(&counters, &error)) {
        print_header();
        if (!measure_probes(counters, memory, &error))
            measure_transpositions(counters, &matrices, &error);
    }
    counters_close(counters);
    device_free(memory);
    device_free(matrices.A);
    device_free(matrices.B);
    if (error.status)
        fprintf(stderr, "gpu_probes: %s\n", error.text);
    return error.status ? EXIT_FAILURE : EXIT_SUCCESS;
}
