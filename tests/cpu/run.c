#include "cpu/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/problem.h"
#include "cuda/basic.h"

static void add_array(struct run *run, const char *name, size_t count, bool filled,
                      uint64_t *seed)
{
    struct array *array = &run->array[run->arrays++];
    *array = (struct array){name, allocate(count + (size_t)run->pad, sizeof(float)),
                            (int64_t)count, filled};
    for (size_t i = 0; i < count; i++)
        array->memory[(size_t)run->pad + i] = filled ? random_normal(seed) : NAN;
}

void run_open(struct run *run)
{
    const size_t rows = (size_t)run->rows, cols = (size_t)run->cols, depth = (size_t)run->depth;
    uint64_t seed = 1;
    switch (run->kernel) {
    case ADD:
        add_array(run, "a", cols, true, &seed);
        add_array(run, "b", cols, true, &seed);
        add_array(run, "c", cols, false, &seed);
        return;
    case MATMUL:
    case TILED:
        add_array(run, "A", rows * depth, true, &seed);
        for (size_t i = 0; i < rows * depth; i++) /* sums are about 1, as is their tolerance */
            run->array[0].memory[(size_t)run->pad + i] /= sqrtf((float)depth);
        add_array(run, "B", depth * cols, true, &seed);
        add_array(run, "C", rows * cols, false, &seed);
        return;
    case SAFE:
    case ONLINE:
        add_array(run, "X", rows * cols, true, &seed);
        add_array(run, "Y", rows * cols, false, &seed);
        return;
    default:
        break;
    }
    const size_t query_rows = count_lse(&run->a);
    add_array(run, "Q", count_q(&run->a), true, &seed);
    add_array(run, "K", count_k(&run->a), true, &seed);
    add_array(run, "V", count_v(&run->a), true, &seed);
    add_array(run, "O", count_o(&run->a), false, &seed);
    add_array(run, run->kernel == FLASH1 ? "m" : "LSE", query_rows, false, &seed);
    if (run->kernel == FLASH1)
        add_array(run, "l", query_rows, false, &seed);
    if (run->kernel == STANDARD) {
        add_array(run, "S", query_rows * (size_t)run->a.seqlen_k, false, &seed);
        add_array(run, "P", query_rows * (size_t)run->a.seqlen_k, false, &seed);
    }
}

void run_close(struct run *run)
{
    for (int n = 0; n < run->arrays; n++)
        free(run->array[n].memory);
    run->arrays = 0;
    cpu_end();
}

float *data_of(const struct run *run, const char *name)
{
    for (int n = 0; n < run->arrays; n++)
        if (strcmp(run->array[n].name, name) == 0)
            return run->array[n].memory + run->pad;
    return NULL;
}

static bool is_named(const char *name, const char *other)
{
    return other && strcmp(name, other) == 0;
}

static enum status run_launch(const struct run *run, struct error *error)
{
    static attention_launcher *const launchers[KERNELS] = {
        [NAIVE] = launch_naive_attention,
        [STANDARD] = launch_standard_attention,
        [FLASH1] = launch_flash1_forward,
        [FLASH2] = launch_flash2_forward,
    };
    float *first = run->array[0].memory + run->pad, *second = run->array[1].memory + run->pad;
    float *third = run->array[2].memory + run->pad;
    const struct matmul_shape shape = {run->rows, run->cols, run->depth};
    switch (run->kernel) {
    case ADD:
        return launch_vector_add(third, first, second, run->cols, NULL, error);
    case MATMUL:
        return launch_matmul_naive(third, first, second, &shape, NULL, error);
    case TILED:
        return launch_matmul_tiled(third, first, second, &shape, run->tile, NULL, error);
    case SAFE:
        return launch_softmax_safe(second, first, run->rows, run->cols, NULL, error);
    case ONLINE:
        return launch_softmax_online(second, first, run->rows, run->cols, NULL, error);
    default:
        break;
    }
    const struct device_tensors t = {.Q = data_of(run, "Q"),
                                     .K = data_of(run, "K"),
                                     .V = data_of(run, "V"),
                                     .O = data_of(run, "O"),
                                     .LSE = data_of(run, "LSE"),
                                     .S = data_of(run, "S"),
                                     .P = data_of(run, "P"),
                                     .l = data_of(run, "l"),
                                     .m = data_of(run, "m")};
    return launchers[run->kernel](&run->a, &t, error);
}

/* Launches the kernel; what it did, its launches added up. */
struct cpu_launch_counts run_observe(const struct run *run)
{
    struct cpu_launch_counts sum = {.kernel = ""};
    struct error error;
    cpu_begin();
    for (int n = 0; n < run->arrays; n++) {
        const struct array *array = &run->array[n];
        const int64_t bytes = (array->count + run->pad) * (int64_t)sizeof(float);
        const bool filled = array->filled && !is_named(array->name, run->unwritten);
        cpu_array(array->name, array->memory,
                  is_named(array->name, run->shortened) ? bytes - 4 : bytes,
                  filled ? CPU_FILLED : CPU_UNWRITTEN);
    }
    if (run_launch(run, &error))
        fail_msg("%s", error.text);
    const struct cpu_counts *counts = cpu_counts();
    for (int n = 0; n < counts->launches; n++) {
        for (int way = 0; way < CPU_WAYS; way++) {
            sum.accesses[way] += counts->launch[n].accesses[way];
            sum.requests[way] += counts->launch[n].requests[way];
            sum.bytes[way] += counts->launch[n].bytes[way];
            sum.sectors[way] += counts->launch[n].sectors[way];
        }
    }
    return sum;
}
