#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/problem.h"
#include "cuda/basic.h"
#include "cuda/device.h"

static const struct {
    const char *name;
    int algorithm; /* -1: not attention */
} kernels[KERNEL_COUNT] = {
    [KERNEL_VECTOR_ADD] = {"vector_add", -1},
    [KERNEL_MATMUL_NAIVE] = {"matmul_naive", -1},
    [KERNEL_MATMUL_SHARED] = {"matmul_shared", -1},
    [KERNEL_MATMUL_TILED] = {"matmul_tiled", -1},
    [KERNEL_SOFTMAX_NAIVE] = {"softmax_naive", -1},
    [KERNEL_SOFTMAX_SAFE] = {"softmax_safe", -1},
    [KERNEL_SOFTMAX_ONLINE] = {"softmax_online", -1},
    [KERNEL_NAIVE] = {"naive_attention", ALGORITHM_NAIVE},
    [KERNEL_STANDARD] = {"standard_attention", ALGORITHM_STANDARD},
    [KERNEL_FLASH1] = {"flash1_forward", ALGORITHM_FLASH1},
    [KERNEL_FLASH2] = {"flash2_forward", ALGORITHM_FLASH2},
};

const char *kernel_name(enum kernel kernel)
{
    return kernels[kernel].name;
}

bool kernel_is_attention(enum kernel kernel)
{
    return kernels[kernel].algorithm >= 0;
}

bool kernel_is_matmul(enum kernel kernel)
{
    return kernel == KERNEL_MATMUL_NAIVE || kernel == KERNEL_MATMUL_SHARED ||
           kernel == KERNEL_MATMUL_TILED;
}

int kernel_most_tile(enum kernel kernel)
{
    return kernel == KERNEL_MATMUL_SHARED ? 32 : 64;
}

enum algorithm kernel_algorithm(enum kernel kernel)
{
    CHECK(kernel_is_attention(kernel), "%s is not attention", kernel_name(kernel));
    return (enum algorithm)kernels[kernel].algorithm;
}

const char *run_text(const struct run *run)
{
    static char text[512];
    if (kernel_is_attention(run->kernel))
        snprintf(text, sizeof text, "%s, %s", kernel_name(run->kernel),
                 attention_text(&run->a));
    else
        snprintf(text, sizeof text, "%s, rows %d, cols %d, depth %d, tile %d",
                 kernel_name(run->kernel), run->rows, run->cols, run->depth, run->tile);
    return text;
}

static void add_array(struct run *run, const char *name, enum role role, size_t count)
{
    CHECK(run->arrays < MAX_ARRAYS, "more than %d arrays", MAX_ARRAYS);
    run->array[run->arrays++] = (struct array){.name = name, .role = role, .count = count};
}

static void list_attention(struct run *run)
{
    struct attention *a = &run->a;
    a->dtype = DTYPE_F32;
    a->tiled_gemm = run->kernel == KERNEL_STANDARD;
    add_array(run, "Q", ROLE_INPUT, count_q(a));
    add_array(run, "K", ROLE_INPUT, count_k(a));
    add_array(run, "V", ROLE_INPUT, count_v(a));
    add_array(run, "O", ROLE_OUTPUT, count_o(a));
    if (run->kernel == KERNEL_FLASH1) {
        add_array(run, "l", ROLE_OUTPUT, count_lse(a));
        add_array(run, "m", ROLE_OUTPUT, count_lse(a));
        return;
    }
    add_array(run, "LSE", ROLE_OUTPUT, count_lse(a));
    if (run->kernel == KERNEL_STANDARD) {
        const size_t scores = count_lse(a) * (size_t)a->seqlen_k;
        add_array(run, "S", ROLE_OUTPUT, scores);
        add_array(run, "P", ROLE_OUTPUT, scores);
    }
}

static void list_arrays(struct run *run)
{
    const size_t rows = (size_t)run->rows, cols = (size_t)run->cols, depth = (size_t)run->depth;
    run->arrays = 0;
    switch (run->kernel) {
    case KERNEL_VECTOR_ADD:
        add_array(run, "a", ROLE_INPUT, cols);
        add_array(run, "b", ROLE_INPUT, cols);
        add_array(run, "c", ROLE_OUTPUT, cols);
        break;
    case KERNEL_MATMUL_NAIVE:
    case KERNEL_MATMUL_SHARED:
    case KERNEL_MATMUL_TILED:
        add_array(run, "A", ROLE_INPUT, rows * depth);
        add_array(run, "B", ROLE_INPUT, depth * cols);
        add_array(run, "C", ROLE_OUTPUT, rows * cols);
        break;
    case KERNEL_SOFTMAX_NAIVE:
    case KERNEL_SOFTMAX_SAFE:
    case KERNEL_SOFTMAX_ONLINE:
        add_array(run, "X", ROLE_INPUT, rows * cols);
        add_array(run, "Y", ROLE_OUTPUT, rows * cols);
        break;
    default:
        list_attention(run);
    }
}

/* The device array is 0xff throughout: sentinels and NaN. Random numbers for inputs. */
static enum status open_array(struct array *array, bool host, uint64_t *seed,
                              struct error *error)
{
    const size_t bytes = (array->count + 2 * SENTINELS) * sizeof(float);
    if (device_alloc((void **)&array->guarded, array->name, bytes, error))
        return error->status;
    const size_t chunk = host || array->count < (1 << 20) ? array->count : 1 << 20;
    float *numbers = malloc(chunk * sizeof *numbers);
    if (!numbers)
        return error_set(error, STATUS_OUT_OF_MEMORY, "no host memory for %s", array->name);
    for (size_t i = 0; i < chunk; i++)
        numbers[i] = random_normal(seed);
    enum status status = STATUS_OK;
    for (size_t at = 0; at < array->count && array->role == ROLE_INPUT && !status; at += chunk)
        status = device_upload(
            array->guarded + SENTINELS + at, numbers,
            (array->count - at < chunk ? array->count - at : chunk) * sizeof *numbers, error);
    if (host)
        array->host = numbers;
    else
        free(numbers);
    return status;
}

enum status run_open(struct run *run, uint64_t seed, struct error *error)
{
    uint64_t state = seed;
    list_arrays(run);
    for (int i = 0; i < run->arrays; i++) {
        if (open_array(&run->array[i], seed != 0, &state, error)) {
            run_close(run);
            return error->status;
        }
    }
    return STATUS_OK;
}

void run_close(struct run *run)
{
    for (int i = 0; i < run->arrays; i++) {
        free(run->array[i].host);
        device_free(run->array[i].guarded);
    }
    run->arrays = 0;
}

struct array *run_array(struct run *run, const char *name)
{
    for (int i = 0; i < run->arrays; i++)
        if (strcmp(run->array[i].name, name) == 0)
            return &run->array[i];
    CHECK(false, "%s has no array %s", kernel_name(run->kernel), name);
}

/* The device address of the array's first element; NULL if the kernel has no such array. */
static float *device_address(const struct run *run, const char *name)
{
    for (int i = 0; i < run->arrays; i++)
        if (strcmp(run->array[i].name, name) == 0)
            return run->array[i].guarded + SENTINELS;
    return NULL;
}

enum status run_launch(void *context, struct error *error)
{
    const struct run *run = context;
    const struct matmul_shape shape = {run->rows, run->cols, run->depth};
    float *first = run->array[0].guarded + SENTINELS,
          *second = run->array[1].guarded + SENTINELS;
    float *third = run->array[2].guarded ? run->array[2].guarded + SENTINELS : NULL;
    switch (run->kernel) {
    case KERNEL_VECTOR_ADD:
        return launch_vector_add(third, first, second, run->cols, run->stream, error);
    case KERNEL_MATMUL_NAIVE:
        return launch_matmul_naive(third, first, second, &shape, run->stream, error);
    case KERNEL_MATMUL_SHARED:
        return launch_matmul_shared(third, first, second, &shape, run->tile, run->stream,
                                    error);
    case KERNEL_MATMUL_TILED:
        return launch_matmul_tiled(third, first, second, &shape, run->tile, run->stream, error);
    case KERNEL_SOFTMAX_NAIVE:
        return launch_softmax_naive(second, first, run->rows, run->cols, run->stream, error);
    case KERNEL_SOFTMAX_SAFE:
        return launch_softmax_safe(second, first, run->rows, run->cols, run->stream, error);
    case KERNEL_SOFTMAX_ONLINE:
        return launch_softmax_online(second, first, run->rows, run->cols, run->stream, error);
    default:
        break;
    }
    const struct device_tensors t = {.Q = device_address(run, "Q"),
                                     .K = device_address(run, "K"),
                                     .V = device_address(run, "V"),
                                     .O = device_address(run, "O"),
                                     .S = device_address(run, "S"),
                                     .P = device_address(run, "P"),
                                     .l = device_address(run, "l"),
                                     .m = device_address(run, "m"),
                                     .LSE = device_address(run, "LSE"),
                                     .stream = run->stream};
    return attention_launchers[kernel_algorithm(run->kernel)](&run->a, &t, error);
}

enum status run_poison(struct run *run, struct error *error)
{
    for (int i = 0; i < run->arrays; i++) {
        const struct array *array = &run->array[i];
        const size_t bytes = array->count * sizeof(float);
        if (array->role != ROLE_OUTPUT)
            continue;
        memset(array->host, 0xff, bytes);
        if (device_upload(array->guarded + SENTINELS, array->host, bytes, error))
            return error->status;
    }
    return STATUS_OK;
}

enum status run_download(struct run *run, struct error *error)
{
    for (int i = 0; i < run->arrays; i++) {
        const struct array *array = &run->array[i];
        if (array->role == ROLE_OUTPUT &&
            device_download(array->host, array->guarded + SENTINELS,
                            array->count * sizeof(float), error))
            return error->status;
    }
    return STATUS_OK;
}

/* True if a sentinel is no longer 0xffffffff, or an input not what was uploaded. */
static bool array_damaged(const struct array *array, const float *now, char *text)
{
    static const unsigned char untouched[4] = {0xff, 0xff, 0xff, 0xff};
    for (size_t i = 0; i < SENTINELS; i++) {
        const float *after = now + SENTINELS + array->count;
        if (memcmp(&now[i], untouched, 4) != 0 || memcmp(&after[i], untouched, 4) != 0) {
            snprintf(text, 128, "sentinel %zu of %s was overwritten", i, array->name);
            return true;
        }
    }
    if (array->role == ROLE_INPUT &&
        memcmp(now + SENTINELS, array->host, array->count * sizeof(float)) != 0) {
        snprintf(text, 128, "input %s has changed", array->name);
        return true;
    }
    return false;
}

bool run_damage(const struct run *run, char *text, struct error *error)
{
    bool damaged = false;
    for (int i = 0; i < run->arrays && !damaged; i++) {
        const struct array *array = &run->array[i];
        const size_t bytes = (array->count + 2 * SENTINELS) * sizeof(float);
        float *now = allocate(array->count + 2 * SENTINELS, sizeof *now);
        if (device_download(now, array->guarded, bytes, error)) {
            snprintf(text, 128, "%.120s", error->text);
            damaged = true;
        } else {
            damaged = array_damaged(array, now, text);
        }
        free(now);
    }
    return damaged;
}
