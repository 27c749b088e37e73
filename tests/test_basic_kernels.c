/* Vector addition, matrix products and softmaxes: results against float64, counts against the
 * closed forms and against sectors counted one address at a time; and the steps of all kernels
 * against those of their CUDA twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core_fixture.h"
#include "core/trace.h"
#include "kernels/attention_forward.h"
#include "kernels/basic_kernels.h"
#include "models/io_basic.h"

enum kind { ADD, NAIVE, SHARED, TILED, SOFTMAX_NAIVE, SAFE, ONLINE, KIND_COUNT };

/* C = rows x depth times depth x cols; softmaxes rows x cols; vectors cols. */
struct shape {
    int rows, cols, depth, tile;
};

/* A kernel's tensors: two inputs (softmaxes have one) and the output. */
struct tensors {
    struct hbm_tensor in[2], out;
};

static void make_tensors(struct tensors *t, struct gpu *gpu, enum kind kind,
                         const struct shape *s)
{
    *t = (struct tensors){0};
    switch (kind) {
    case ADD:
        t->in[0] = new_tensor(gpu, "a", DTYPE_F32, 1, 1, s->cols);
        t->in[1] = new_tensor(gpu, "b", DTYPE_F32, 1, 1, s->cols);
        t->out = new_tensor(gpu, "c", DTYPE_F32, 1, 1, s->cols);
        break;
    case NAIVE:
    case SHARED:
    case TILED:
        t->in[0] = new_tensor(gpu, "A", DTYPE_F32, 1, s->rows, s->depth);
        t->in[1] = new_tensor(gpu, "B", DTYPE_F32, 1, s->depth, s->cols);
        t->out = new_tensor(gpu, "C", DTYPE_F32, 1, s->rows, s->cols);
        break;
    default:
        t->in[0] = new_tensor(gpu, "X", DTYPE_F32, 1, s->rows, s->cols);
        t->out = new_tensor(gpu, "Y", DTYPE_F32, 1, s->rows, s->cols);
    }
}

static void free_tensors(struct tensors *t)
{
    hbm_free(&t->in[0]);
    hbm_free(&t->in[1]);
    hbm_free(&t->out);
}

/* The largest tile of matmul_shared that is not larger: 1, 2, 4, ... 32. */
static int warp_tile(int tile)
{
    int fits = 1;
    while (fits < WARP_LANES && 2 * fits <= tile)
        fits *= 2;
    return fits;
}

static void run_kernel(struct gpu *gpu, struct tensors *t, enum kind kind,
                       const struct shape *s)
{
    struct error error;
    const enum status statuses[] = {
        kind == ADD ? vector_add(gpu, &t->out, &t->in[0], &t->in[1], &error) : STATUS_OK,
        kind == NAIVE ? matmul_naive(gpu, &t->out, &t->in[0], &t->in[1], &error) : STATUS_OK,
        kind == SHARED
            ? matmul_shared(gpu, &t->out, &t->in[0], &t->in[1], warp_tile(s->tile), &error)
            : STATUS_OK,
        kind == TILED ? matmul_tiled(gpu, &t->out, &t->in[0], &t->in[1], s->tile, &error)
                      : STATUS_OK,
        kind == SOFTMAX_NAIVE ? softmax_naive(gpu, &t->out, &t->in[0], &error) : STATUS_OK,
        kind == SAFE ? softmax_safe(gpu, &t->out, &t->in[0], &error) : STATUS_OK,
        kind == ONLINE ? softmax_online(gpu, &t->out, &t->in[0], &error) : STATUS_OK,
    };
    if (statuses[kind] != STATUS_OK)
        fail_msg("%s", error.text);
}

static struct account predict(enum kind kind, const struct shape *s)
{
    const struct io_matmul matmul = {s->rows, s->cols, s->depth};
    switch (kind) {
    case ADD:
        return io_vector_add(s->cols);
    case NAIVE:
        return io_matmul_naive(&matmul);
    case SHARED:
        return io_matmul_shared(&matmul, warp_tile(s->tile));
    case TILED:
        return io_matmul_tiled(&matmul, s->tile);
    case SOFTMAX_NAIVE:
        return io_softmax_naive(s->rows, s->cols);
    case SAFE:
        return io_softmax_safe(s->rows, s->cols);
    default:
        return io_softmax_online(s->rows, s->cols);
    }
}

static struct shape random_shape(struct rng *rng, int most)
{
    return (struct shape){random_int(rng, 1, most), random_int(rng, 1, most),
                          random_int(rng, 1, most), random_int(rng, 1, 70)};
}

/* Element i of the output in float64; *magnitude: the sum of the absolute values of its terms,
 * to which its rounding errors are relative. */
static double expected(enum kind kind, const struct shape *s, const float *x, const float *y,
                       size_t i, double *magnitude)
{
    const size_t cols = (size_t)s->cols, depth = (size_t)s->depth, row = i / cols;
    double sum = 0, max = -INFINITY;
    *magnitude = 0;
    if (kind == ADD) {
        *magnitude = fabs((double)x[i]) + fabs((double)y[i]);
        return (double)x[i] + (double)y[i];
    }
    if (kind == NAIVE || kind == SHARED || kind == TILED) {
        for (size_t k = 0; k < depth; k++) {
            const double term = (double)x[row * depth + k] * (double)y[k * cols + i % cols];
            sum += term;
            *magnitude += fabs(term);
        }
        return sum;
    }
    for (size_t j = 0; j < cols; j++)
        max = fmax(max, (double)x[row * cols + j]);
    for (size_t j = 0; j < cols; j++)
        sum += exp((double)x[row * cols + j] - max);
    return *magnitude = exp((double)x[i] - max) / sum;
}

/* True if got is within roundings * 2^-24 of want, relative to magnitude. NaN is not. */
static bool near(double got, double want, double magnitude, double roundings)
{
    return fabs(got - want) <= roundings * 0x1p-24 * magnitude;
}

/* A sum of n terms, added in some order, errs by at most n roundings of its magnitude (Higham
 * 2002, section 4.2); the softmaxes add exp's 2 units, 1/l and a product. */
static void test_results(void **state)
{
    struct rng rng = {11};
    (void)state;
    for (int n = 0; n < 30; n++) {
        const struct shape s = random_shape(&rng, 70);
        for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
            struct gpu gpu;
            struct tensors t;
            gpu_init(&gpu, machine_default(), GPU_DATA);
            make_tensors(&t, &gpu, kind, &s);
            float *x = upload_random(&t.in[0], &rng);
            float *y = t.in[1].data ? upload_random(&t.in[1], &rng) : NULL;
            run_kernel(&gpu, &t, kind, &s);
            float *got = downloaded(&t.out);
            const double terms = kind == ADD             ? 1
                                 : kind >= SOFTMAX_NAIVE ? s.cols + 10
                                                         : s.depth;
            for (size_t i = 0; i < tensor_size(&t.out); i++) {
                double magnitude;
                const double want = expected(kind, &s, x, y, i, &magnitude);
                if (!near((double)got[i], want, magnitude, terms))
                    fail_msg("kernel %d, %d x %d x %d, tile %d: element %zu is %g, not %g",
                             kind, s.rows, s.cols, s.depth, s.tile, i, (double)got[i], want);
            }
            free(x);
            free(y);
            free(got);
            free_tensors(&t);
        }
    }
}

/* The judge above does not pass NaN, a constant, or a neighbour's value. */
static void test_the_judge(void **state)
{
    (void)state;
    assert_true(near(1.0, 1.0, 1.0, 1));
    assert_false(near(NAN, 1.0, 1.0, 100));
    assert_false(near(0.0, 1.0, 1.0, 100));
    assert_false(near(1.001, 1.0, 1.0, 100));
}

/* With data and without, on many shapes: tensor by tensor what the closed form says. */
static void test_counts(void **state)
{
    struct rng rng = {12};
    (void)state;
    for (int n = 0; n < 150; n++) {
        const struct shape s = random_shape(&rng, n < 20 ? 100 : n < 140 ? 20 : 2100);
        for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
            for (enum gpu_mode mode = n < 20 ? GPU_DATA : GPU_COUNTS; mode <= GPU_COUNTS;
                 mode++) {
                struct gpu gpu;
                struct tensors t;
                gpu_init(&gpu, machine_default(), mode);
                make_tensors(&t, &gpu, kind, &s);
                if (mode == GPU_DATA) {
                    free(upload_random(&t.in[0], &rng));
                    if (t.in[1].data)
                        free(upload_random(&t.in[1], &rng));
                }
                run_kernel(&gpu, &t, kind, &s);
                const struct account got = gpu_account(&gpu), want = predict(kind, &s);
                if (!account_equal(&got, &want))
                    fail_msg("kernel %d, %d x %d x %d, tile %d, mode %d", kind, s.rows, s.cols,
                             s.depth, s.tile, mode);
                free_tensors(&t);
            }
        }
    }
}

/* Sectors of 32 lanes that read row elements first .. first + lanes - 1, by their definition.
 */
static int64_t sectors_of_lanes(int64_t first, int lanes)
{
    return (first + lanes - 1) / 8 - first / 8 + 1;
}

/* Both styles of vector addition: the same result, the same bytes and sectors. */
static void test_vector_add_in_two_styles(void **state)
{
    static const int counts[] = {1, 7, 8, 31, 33, 1000, 1023, 1024, 1025, 4099, 100003};
    struct rng rng = {14};
    (void)state;
    for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
        const struct shape s = {1, counts[n], 1, 1};
        const struct account want = predict(ADD, &s);
        struct gpu gpu[2];
        struct tensors t[2];
        struct error error;
        float *y[2];
        for (int style = 0; style < 2; style++) {
            gpu_init(&gpu[style], machine_default(), GPU_DATA);
            make_tensors(&t[style], &gpu[style], ADD, &s);
        }
        for (int input = 0; input < 2; input++) {
            float *x = upload_random(&t[0].in[input], &rng);
            hbm_upload(&t[1].in[input], x);
            free(x);
        }
        assert_int_equal(vector_add(&gpu[0], &t[0].out, &t[0].in[0], &t[0].in[1], &error), 0);
        assert_int_equal(vector_add_tiles(&gpu[1], &t[1].out, &t[1].in[0], &t[1].in[1], &error),
                         0);
        for (int style = 0; style < 2; style++) {
            const struct account got = gpu_account(&gpu[style]);
            assert_true(account_equal(&got, &want));
            y[style] = downloaded(&t[style].out);
        }
        assert_memory_equal(y[0], y[1], (size_t)s.cols * sizeof(float));
        for (int style = 0; style < 2; style++) {
            free(y[style]);
            free_tensors(&t[style]);
        }
    }
}

/* The naive product, counted on paper: for each warp and k one sector of A and the lanes' of B.
 * The numbers of a hardware run: 256^3 gave 2,621,440 and 8,192; 2^20 + 5 elements added gave
 * 262,146 and 131,073. */
static void test_sectors_on_paper(void **state)
{
    const struct io_matmul cube = {256, 256, 256}, odd = {3, 45, 7};
    const struct account big = io_matmul_naive(&cube), small = io_matmul_naive(&odd);
    const struct account sum = io_vector_add((1 << 20) + 5);
    int64_t load = 0, store = 0;
    (void)state;
    for (int row = 0; row < odd.rows; row++) {
        for (int col = 0; col < odd.cols; col += 32) {
            const int lanes = odd.cols - col < 32 ? odd.cols - col : 32;
            for (int k = 0; k < odd.depth; k++)
                load += 1 + sectors_of_lanes((int64_t)k * odd.cols + col, lanes);
            store += sectors_of_lanes((int64_t)row * odd.cols + col, lanes);
        }
    }
    assert_int_equal(account_total(&small).of[DIRECTION_READ].sectors, load);
    assert_int_equal(account_total(&small).of[DIRECTION_WRITE].sectors, store);
    assert_int_equal(account_total(&big).of[DIRECTION_READ].sectors, 2621440);
    assert_int_equal(account_total(&big).of[DIRECTION_WRITE].sectors, 8192);
    assert_int_equal(account_total(&sum).of[DIRECTION_READ].sectors, 262146);
    assert_int_equal(account_total(&sum).of[DIRECTION_WRITE].sectors, 131073);
}

/* A row of -inf gives zeros; NaN spreads over its row and no further. */
static void test_softmax_of_special_values(void **state)
{
    enum { ROWS = 3, COLS = 70 };
    float x[ROWS * COLS];
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = i < COLS ? -INFINITY : (float)(i % COLS) * 0.1f;
    x[2 * COLS + 33] = NAN;
    for (enum kind kind = SAFE; kind <= ONLINE; kind++) {
        const struct shape s = {ROWS, COLS, 1, 1};
        struct gpu gpu;
        struct tensors t;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        make_tensors(&t, &gpu, kind, &s);
        hbm_upload(&t.in[0], x);
        run_kernel(&gpu, &t, kind, &s);
        float *y = downloaded(&t.out);
        for (int i = 0; i < ROWS * COLS; i++) {
            const bool right = i < COLS       ? y[i] == 0.0f
                               : i < 2 * COLS ? y[i] > 0.0f
                                              : isnan(y[i]);
            if (!right)
                fail_msg("kernel %d: element %d is %g", kind, i, (double)y[i]);
        }
        free(y);
        free_tensors(&t);
    }
}

/* What the lesson on softmax shows: without the maximum, exp overflows, or every exp is 0. */
static void test_naive_softmax_overflows(void **state)
{
    enum { ROWS = 4, COLS = 40 };
    static const float scores[ROWS] = {88.0f, 89.0f, -103.0f, -104.0f};
    float x[ROWS * COLS];
    struct gpu gpu;
    struct tensors t;
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = scores[i / COLS] - (i / COLS == 0 && i % COLS > 0 ? 10.0f : 0.0f);
    gpu_init(&gpu, machine_default(), GPU_DATA);
    make_tensors(&t, &gpu, SOFTMAX_NAIVE, &(struct shape){ROWS, COLS, 1, 1});
    hbm_upload(&t.in[0], x);
    run_kernel(&gpu, &t, SOFTMAX_NAIVE, NULL);
    float *y = downloaded(&t.out);
    assert_true(y[0] > 0.99f && y[0] <= 1.0f);
    for (int i = COLS; i < ROWS * COLS; i++)
        assert_true(i / COLS == 2 ? y[i] == 1.0f / COLS : isnan(y[i]));
    free(y);
    free_tensors(&t);
}

enum { MAX_STEPS = 24, STEP_LENGTH = 64 };

struct steps {
    int count;
    char name[MAX_STEPS][STEP_LENGTH];
};

static void add_step(struct steps *steps, const char *name, size_t length)
{
    for (int i = 0; i < steps->count; i++)
        if (strlen(steps->name[i]) == length && strncmp(steps->name[i], name, length) == 0)
            return;
    assert_true(steps->count < MAX_STEPS && length < STEP_LENGTH);
    memcpy(steps->name[steps->count++], name, length);
}

static void record_step(void *context, const struct step_record *record)
{
    add_step(context, record->step, strlen(record->step));
}

/* The names that stand in STEP("...", i, j), STEP_ROWS("...", ...) and the other marks of
 * cuda/steps.h in the file, in order. */
static void read_steps(struct steps *steps, const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: cannot be read", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    static const char mark[] = "STEP";
    for (const char *at = strstr(text, mark); at; at = strstr(at, mark)) {
        at += sizeof mark - 1;
        at += strspn(at, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (strncmp(at, "(\"", 2) == 0)
            add_step(steps, at + 2, strcspn(at + 2, "\""));
    }
}

static void assert_same_steps(const char *kernel, const struct steps *simulated)
{
    struct steps cuda = {0};
    char path[128];
    snprintf(path, sizeof path, "cuda/kernels/%s.cu", kernel);
    read_steps(&cuda, path);
    assert_true(cuda.count > 0);
    for (int i = 0; i < cuda.count || i < simulated->count; i++)
        if (strcmp(cuda.name[i], simulated->name[i]) != 0)
            fail_msg("%s, step %d: \"%s\" simulated, \"%s\" in CUDA", kernel, i,
                     simulated->name[i], cuda.name[i]);
}

static void test_steps_of_basic_kernels(void **state)
{
    static const char *const names[KIND_COUNT] = {
        "vector_add",    "matmul_naive", "matmul_shared",  "matmul_tiled",
        "softmax_naive", "softmax_safe", "softmax_online",
    };
    const struct shape s = {20, 20, 20, 16};
    struct rng rng = {13};
    (void)state;
    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        struct steps steps = {0};
        struct trace trace = {record_step, &steps};
        struct gpu gpu;
        struct tensors t;
        gpu_init(&gpu, machine_default(), GPU_DATA);
        gpu.trace = &trace;
        make_tensors(&t, &gpu, kind, &s);
        free(upload_random(&t.in[0], &rng));
        if (t.in[1].data)
            free(upload_random(&t.in[1], &rng));
        run_kernel(&gpu, &t, kind, &s);
        assert_same_steps(names[kind], &steps);
        free_tensors(&t);
    }
}

static void test_steps_of_attention(void **state)
{
    static const char *const names[ALGORITHM_COUNT] = {"naive_attention", "standard_attention",
                                                       "flash1_forward", "flash2_forward"};
    (void)state;
    for (int algorithm = 0; algorithm < ALGORITHM_COUNT; algorithm++) {
        struct steps steps = {0};
        struct trace trace = {record_step, &steps};
        struct simulation s = {.algorithm = algorithm,
                               .machine = machine_default(),
                               .trace = &trace,
                               .attention = {1, 1, 1, 20, 20, 8, 8, 0.3f, MASK_NONE, DTYPE_F32,
                                             16, 16, algorithm == ALGORITHM_STANDARD}};
        struct error error;
        if (attention_count(&s, &error))
            fail_msg("%s", error.text);
        assert_same_steps(names[algorithm], &steps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_vector_add_in_two_styles),
        cmocka_unit_test(test_sectors_on_paper),
        cmocka_unit_test(test_softmax_of_special_values),
        cmocka_unit_test(test_naive_softmax_overflows),
        cmocka_unit_test(test_steps_of_basic_kernels),
        cmocka_unit_test(test_steps_of_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
