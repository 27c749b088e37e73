#include "cuda/cpu/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/attention.h"
#include "cuda/basic.h"

static const char *const names[CPU_KERNELS] = {
    [CPU_VECTOR_ADD] = "vector_add",
    [CPU_MATMUL_NAIVE] = "matmul_naive",
    [CPU_MATMUL_SHARED] = "matmul_shared",
    [CPU_MATMUL_TILED] = "matmul_tiled",
    [CPU_SOFTMAX_NAIVE] = "softmax_naive",
    [CPU_SOFTMAX_SAFE] = "softmax_safe",
    [CPU_SOFTMAX_ONLINE] = "softmax_online",
    [CPU_NAIVE_ATTENTION] = "naive_attention",
    [CPU_STANDARD_ATTENTION] = "standard_attention",
    [CPU_FLASH1_FORWARD] = "flash1_forward",
    [CPU_FLASH2_FORWARD] = "flash2_forward",
};

const char *cpu_kernel_name(enum cpu_kernel kernel)
{
    return names[kernel];
}

bool cpu_kernel_parse(enum cpu_kernel *kernel, const char *name)
{
    for (int i = 0; i < CPU_KERNELS; i++) {
        if (strcmp(names[i], name) == 0) {
            *kernel = (enum cpu_kernel)i;
            return true;
        }
    }
    return false;
}

static void add_array(struct cpu_run *run, const char *name, int64_t count, bool input)
{
    CHECK(run->arrays < CPU_RUN_ARRAYS, "%s: too many arrays", names[run->kernel]);
    run->array[run->arrays++] = (struct cpu_run_array){name, NULL, count, input};
}

static void add_attention_arrays(struct cpu_run *run)
{
    const struct attention *a = &run->a;
    const int64_t query_rows = (int64_t)attention_planes_q(a) * a->seqlen_q;
    const int64_t key_rows = (int64_t)attention_planes_kv(a) * a->seqlen_k;
    add_array(run, "Q", query_rows * a->head_dim, true);
    add_array(run, "K", key_rows * a->head_dim, true);
    add_array(run, "V", key_rows * a->head_dim_v, true);
    add_array(run, "O", query_rows * a->head_dim_v, false);
    if (run->kernel == CPU_FLASH1_FORWARD) {
        add_array(run, "l", query_rows, false);
        add_array(run, "m", query_rows, false);
    } else {
        add_array(run, "LSE", query_rows, false);
    }
    if (run->kernel == CPU_STANDARD_ATTENTION) {
        add_array(run, "S", query_rows * a->seqlen_k, false);
        add_array(run, "P", query_rows * a->seqlen_k, false);
    }
}

static void add_arrays(struct cpu_run *run)
{
    const int64_t rows = run->rows, cols = run->cols, depth = run->depth;
    switch (run->kernel) {
    case CPU_VECTOR_ADD:
        add_array(run, "a", cols, true);
        add_array(run, "b", cols, true);
        add_array(run, "c", cols, false);
        return;
    case CPU_MATMUL_NAIVE:
    case CPU_MATMUL_SHARED:
    case CPU_MATMUL_TILED:
        add_array(run, "A", rows * depth, true);
        add_array(run, "B", depth * cols, true);
        add_array(run, "C", rows * cols, false);
        return;
    case CPU_SOFTMAX_NAIVE:
    case CPU_SOFTMAX_SAFE:
    case CPU_SOFTMAX_ONLINE:
        add_array(run, "X", rows * cols, true);
        add_array(run, "Y", rows * cols, false);
        return;
    default:
        add_attention_arrays(run);
    }
}

/* Floats before and after each array, so that an index far out of one does not meet another. */
enum { GAP = 1 << 18 };

static enum status alloc_array(struct cpu_run_array *array, int pad, struct error *error)
{
    static const int64_t most = (INT64_C(1) << 32) / (int64_t)sizeof(float);
    const int64_t count = array->count + pad;
    if (count > most)
        return error_set(error, STATUS_BAD_ARGUMENT,
                         "%s has %" PRId64 " elements: on the CPU an array may have up to "
                         "%" PRId64 " (4 GB)",
                         array->name, array->count, most);
    float *memory = malloc(((size_t)count + 2 * GAP) * sizeof(float));
    if (!memory)
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "no host memory for %s of %" PRId64 " elements", array->name,
                         array->count);
    array->memory = memory + GAP;
    for (int64_t i = 0; i < count; i++)
        array->memory[i] = NAN;
    return STATUS_OK;
}

enum status cpu_run_open(struct cpu_run *run, struct error *error)
{
    run->arrays = 0;
    if (cpu_kernel_is_attention(run->kernel) && attention_check(&run->a, error))
        return error->status;
    add_arrays(run);
    for (int n = 0; n < run->arrays; n++) {
        if (alloc_array(&run->array[n], run->pad, error)) {
            cpu_run_close(run);
            return error->status;
        }
    }
    return STATUS_OK;
}

void cpu_run_close(struct cpu_run *run)
{
    for (int n = 0; n < run->arrays; n++)
        free(run->array[n].memory ? run->array[n].memory - GAP : NULL);
    run->arrays = 0;
    cpu_end();
}

float *cpu_run_data(const struct cpu_run *run, const char *name)
{
    for (int n = 0; n < run->arrays; n++)
        if (strcmp(run->array[n].name, name) == 0)
            return run->array[n].memory + run->pad;
    return NULL;
}

void cpu_run_lse(float *lse, const struct cpu_run *run)
{
    const float *done = cpu_run_data(run, "LSE");
    const float *m = cpu_run_data(run, "m"), *l = cpu_run_data(run, "l");
    const size_t rows = (size_t)attention_planes_q(&run->a) * (size_t)run->a.seqlen_q;
    for (size_t i = 0; i < rows; i++)
        lse[i] = done ? done[i] : l[i] == 0.0f ? -INFINITY : m[i] + logf(l[i]);
}

static enum status launch_attention(const struct cpu_run *run, struct error *error)
{
    static attention_launcher *const launchers[CPU_KERNELS] = {
        [CPU_NAIVE_ATTENTION] = launch_naive_attention,
        [CPU_STANDARD_ATTENTION] = launch_standard_attention,
        [CPU_FLASH1_FORWARD] = launch_flash1_forward,
        [CPU_FLASH2_FORWARD] = launch_flash2_forward,
    };
    const struct device_tensors t = {.Q = cpu_run_data(run, "Q"),
                                     .K = cpu_run_data(run, "K"),
                                     .V = cpu_run_data(run, "V"),
                                     .O = cpu_run_data(run, "O"),
                                     .LSE = cpu_run_data(run, "LSE"),
                                     .S = cpu_run_data(run, "S"),
                                     .P = cpu_run_data(run, "P"),
                                     .l = cpu_run_data(run, "l"),
                                     .m = cpu_run_data(run, "m")};
    return launchers[run->kernel](&run->a, &t, error);
}

static enum status launch(const struct cpu_run *run, struct error *error)
{
    const struct matmul_shape shape = {run->rows, run->cols, run->depth};
    const float *A = cpu_run_data(run, "A"), *B = cpu_run_data(run, "B");
    const float *X = cpu_run_data(run, "X");
    float *C = cpu_run_data(run, "C"), *Y = cpu_run_data(run, "Y");
    switch (run->kernel) {
    case CPU_VECTOR_ADD:
        return launch_vector_add(cpu_run_data(run, "c"), cpu_run_data(run, "a"),
                                 cpu_run_data(run, "b"), run->cols, NULL, error);
    case CPU_MATMUL_NAIVE:
        return launch_matmul_naive(C, A, B, &shape, NULL, error);
    case CPU_MATMUL_SHARED:
        return launch_matmul_shared(C, A, B, &shape, run->tile, NULL, error);
    case CPU_MATMUL_TILED:
        return launch_matmul_tiled(C, A, B, &shape, run->tile, NULL, error);
    case CPU_SOFTMAX_NAIVE:
        return launch_softmax_naive(Y, X, run->rows, run->cols, NULL, error);
    case CPU_SOFTMAX_SAFE:
        return launch_softmax_safe(Y, X, run->rows, run->cols, NULL, error);
    case CPU_SOFTMAX_ONLINE:
        return launch_softmax_online(Y, X, run->rows, run->cols, NULL, error);
    default:
        return launch_attention(run, error);
    }
}

static bool is_named(const char *name, const char *other)
{
    return other && strcmp(name, other) == 0;
}

enum status cpu_run_launch(const struct cpu_run *run, const struct cpu_options *options,
                           struct error *error)
{
    cpu_begin(options);
    for (int n = 0; n < run->arrays; n++) {
        const struct cpu_run_array *array = &run->array[n];
        const int64_t count = array->count + run->pad - is_named(array->name, run->shortened);
        const bool filled = array->input && !is_named(array->name, run->unwritten);
        cpu_array(array->name, array->memory, count * (int64_t)sizeof(float),
                  filled ? CPU_FILLED : CPU_UNWRITTEN);
    }
    return launch(run, error);
}
