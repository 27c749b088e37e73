/* build/flashlab as a user runs it, with input that is right.
 *
 * Protects: attention on .npy files of 2, 3 and 4 axes, of every element type, in both orders,
 * gives the O and LSE that the formula gives, in files of the right shape; trace files parse,
 * and end at the counts that are printed; NaN in the input is computed with and reported; every
 * command has --help.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npy_files.h"
#include "common/tool.h"
#include "core/npy.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* fp32 sums of at most 40 products of magnitude up to 4, divided by sums of up to 40 terms:
 * errors stay near 1e-6. O itself is of order 1. */
static const double tolerance = 1e-5;

enum { ALL = 1 << 20 };

/* A problem: the axes, element sizes and orders of the files, the other options, and what the
 * options mean for the formula. */
static const struct problem_case {
    const char *options;
    int ndim;
    int batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v;
    const char *bytes; /* of an element of Q, K, V */
    const char *order; /* C or Fortran, of Q, K, V */
    double scale;      /* 0: 1 / sqrt(head_dim) */
    int first_visible; /* query i sees keys j <= i + first_visible */
} cases[] = {
    {"--algorithm flash2", 2, 1, 1, 1, 5, 7, 4, 4, "444", "CCC", 0, ALL},
    {"--algorithm flash1 --block-q 4 --block-k 2", 2, 1, 1, 1, 9, 9, 3, 3, "444", "FFF", 0,
     ALL},
    {"--algorithm naive", 3, 1, 3, 3, 6, 5, 8, 2, "842", "CFC", 0, ALL},
    {"--algorithm standard --scale 0.5", 3, 1, 2, 1, 33, 40, 5, 5, "228", "FCF", 0.5, ALL},
    {"--algorithm standard --tiled-gemm", 4, 2, 2, 2, 20, 17, 6, 6, "488", "FCC", 0, ALL},
    {"--algorithm flash2 --block-q 8 --block-k 3", 4, 2, 4, 2, 13, 11, 6, 5, "244", "FFF", 0,
     ALL},
    {"--algorithm flash2 --mask causal --block-k 4", 4, 2, 6, 3, 5, 9, 4, 4, "444", "CFC", 0,
     4},
    {"--algorithm flash1 --mask causal", 3, 1, 4, 1, 8, 3, 4, 4, "444", "CCF", 0, -5},
    {"--algorithm naive --mask causal-top-left --scale -1", 2, 1, 1, 1, 5, 9, 4, 4, "888",
     "CCC", -1, 0},
    {"--machine T4 --tma --mask causal", 4, 1, 2, 2, 9, 9, 8, 4, "444", "FFC", 0, 0},
};

/* The first sample of each file: three stretches of the sequence that do not overlap. */
enum { Q_AT = 0, K_AT = 100000, V_AT = 200000 };

static void write_input(const struct workplace *place, const struct problem_case *c, int which,
                        int heads, int rows, int cols)
{
    static const char *const names[] = {"q.npy", "k.npy", "v.npy"};
    static const uint64_t first[] = {Q_AT, K_AT, V_AT};
    const int axes[4] = {c->batch, heads, rows, cols};
    const char descr[] = {'<', 'f', c->bytes[which], '\0'};
    struct array_file file = {names[which], descr, c->order[which] == 'F',
                              c->ndim,      {0},   first[which]};
    memcpy(file.shape, axes + 4 - c->ndim, (size_t)c->ndim * sizeof axes[0]);
    write_array(place, &file);
}

static void write_inputs(const struct workplace *place, const struct problem_case *c)
{
    write_input(place, c, 0, c->heads_q, c->seqlen_q, c->head_dim);
    write_input(place, c, 1, c->heads_kv, c->seqlen_k, c->head_dim);
    write_input(place, c, 2, c->heads_kv, c->seqlen_k, c->head_dim_v);
}

/* One row of O (o[head_dim_v]) and its log-sum-exp, as the formula says. */
static double formula_row(double *o, const struct problem_case *c, int plane, int i)
{
    const double scale = c->scale != 0 ? c->scale : 1 / sqrt(c->head_dim);
    const int kv = plane / (c->heads_q / c->heads_kv);
    double sum = 0;
    memset(o, 0, (size_t)c->head_dim_v * sizeof *o);
    for (int j = 0; j < c->seqlen_k && j <= i + c->first_visible; j++) {
        double score = 0;
        for (int d = 0; d < c->head_dim; d++)
            score += sample(Q_AT + (uint64_t)((plane * c->seqlen_q + i) * c->head_dim + d)) *
                     sample(K_AT + (uint64_t)((kv * c->seqlen_k + j) * c->head_dim + d));
        const double weight = exp(scale * score); /* |scale score| <= 32: no overflow */
        sum += weight;
        for (int d = 0; d < c->head_dim_v; d++)
            o[d] +=
                weight * sample(V_AT + (uint64_t)((kv * c->seqlen_k + j) * c->head_dim_v + d));
    }
    for (int d = 0; sum > 0 && d < c->head_dim_v; d++)
        o[d] /= sum;
    return log(sum); /* -inf for a row that sees no key */
}

static void assert_close(double got, double want, const struct problem_case *c,
                         const char *what, int plane, int row)
{
    if (got != want && !(fabs(got - want) <= tolerance))
        fail_msg("%s: %s of plane %d, row %d is %.9g, not %.9g", c->options, what, plane, row,
                 got, want);
}

static void read_output(struct npy *array, const struct workplace *place, const char *name,
                        const struct problem_case *c, int ndim, const int *shape)
{
    struct error error;
    *array = (struct npy){0};
    if (npy_read(array, workplace_path(place, name), &error) != STATUS_OK)
        fail_msg("%s: %s", c->options, error.text);
    assert_int_equal(array->ndim, ndim);
    for (int d = 0; d < ndim; d++)
        assert_int_equal(array->shape[d], shape[d]);
}

static void check_outputs(const struct workplace *place, const struct problem_case *c)
{
    const int axes[4] = {c->batch, c->heads_q, c->seqlen_q, c->head_dim_v};
    const int *shape = axes + 4 - c->ndim;
    double row[16];
    struct npy o, lse;
    read_output(&o, place, "out/o.npy", c, c->ndim, shape);
    read_output(&lse, place, "out/lse.npy", c, c->ndim - 1, shape);
    for (int plane = 0; plane < c->batch * c->heads_q; plane++)
        for (int i = 0; i < c->seqlen_q; i++) {
            const int at = plane * c->seqlen_q + i;
            const double want = formula_row(row, c, plane, i);
            assert_close((double)lse.data[at], want, c, "LSE", plane, i);
            for (int d = 0; d < c->head_dim_v; d++)
                assert_close((double)o.data[at * c->head_dim_v + d], row[d], c, "O", plane, i);
        }
    npy_free(&o);
    npy_free(&lse);
}

static void test_values(void **state)
{
    const struct workplace *place = *state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct tool_run run;
        write_inputs(place, &cases[i]);
        tool_run(&run, place, "attention --q q.npy --k k.npy --v v.npy --out out %s",
                 cases[i].options);
        if (run.status != 0 || *run.err)
            fail_msg("%s: exit status %d: %s", cases[i].options, run.status, run.err);
        assert_non_null(strstr(run.out, "PASS "));
        assert_non_null(strstr(run.out, "wrote out/o.npy and out/lse.npy"));
        check_outputs(place, &cases[i]);
        tool_run_free(&run);
    }
    char *listing = workplace_listing(place);
    assert_string_equal(listing, "k.npy\nout/\nout/lse.npy\nout/o.npy\nq.npy\nv.npy\n");
    free(listing);
}

/* Adds the numbers of the last record of every block, and checks each record on the way. */
static void sum_trace(char *text, double total[3])
{
    static const char *const keys[] = {"read_bytes", "written_bytes", "reduced_bytes"};
    double last[3] = {0};
    char block[64] = "";
    int records = 0;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
        cJSON *record = cJSON_Parse(line);
        if (!record)
            fail_msg("line %d does not parse: %s", records + 1, line);
        char *now = cJSON_PrintUnformatted(cJSON_GetObjectItem(record, "block"));
        const cJSON *m = cJSON_GetObjectItem(record, "m");
        assert_non_null(now);
        assert_true(cJSON_IsString(cJSON_GetObjectItem(record, "kernel")));
        assert_true(cJSON_IsString(cJSON_GetObjectItem(record, "step")));
        assert_true(cJSON_IsNumber(cJSON_GetObjectItem(record, "i")));
        assert_true(cJSON_IsNumber(cJSON_GetObjectItem(record, "j")));
        if (m) {
            const int rows = cJSON_GetArraySize(m);
            assert_true(rows > 0);
            assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "l")), rows);
            assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "o_norm")), rows);
        }
        for (int k = 0; k < 3; k++) {
            const cJSON *number = cJSON_GetObjectItem(record, keys[k]);
            assert_true(cJSON_IsNumber(number));
            if (strcmp(block, now) == 0) {
                assert_true(number->valuedouble >= last[k]); /* counts never fall */
                total[k] -= last[k];
            }
            total[k] += last[k] = number->valuedouble;
        }
        snprintf(block, sizeof block, "%s", now);
        free(now);
        cJSON_Delete(record);
        records++;
    }
    assert_true(records > 3);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const size_t size = (size_t)ftell(file);
    char *text = calloc(size + 1, 1);
    assert_non_null(text);
    rewind(file);
    assert_int_equal(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

/* All cases with flash kernels: the other algorithms' launches share block numbers. */
static void test_trace(void **state)
{
    const struct workplace *place = *state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct tool_run run;
        double total[3] = {0};
        if (strstr(cases[i].options, "naive") || strstr(cases[i].options, "standard"))
            continue;
        write_inputs(place, &cases[i]);
        tool_run(&run, place,
                 "attention --q q.npy --k k.npy --v v.npy --out out --trace t.jsonl --json %s",
                 cases[i].options);
        assert_int_equal(run.status, 0);
        char *text = read_file(workplace_path(place, "t.jsonl"));
        sum_trace(text, total);
        cJSON *json = cJSON_Parse(run.out);
        assert_non_null(json);
        const cJSON *simulated = cJSON_GetObjectItem(json, "simulated");
        assert_true(total[0] == cJSON_GetObjectItem(simulated, "read_bytes")->valuedouble);
        assert_true(total[1] == cJSON_GetObjectItem(simulated, "written_bytes")->valuedouble);
        assert_true(total[2] == cJSON_GetObjectItem(simulated, "reduced_bytes")->valuedouble);
        cJSON_Delete(json);
        free(text);
        tool_run_free(&run);
    }
}

/* A NaN in row 1 of Q makes row 1 of O NaN, no other; and stderr says so. */
static void test_nan_input(void **state)
{
    const struct workplace *place = *state;
    static const float q[2][2] = {{1, 2}, {NAN, 1}};
    struct image image =
        image_of(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", q, sizeof q);
    struct tool_run run;
    struct npy o;
    struct error error;
    write_bytes(workplace_path(place, "q.npy"), image.bytes, image.size);
    write_array(place, &(struct array_file){"k.npy", "<f4", false, 2, {3, 2}, 5});
    write_array(place, &(struct array_file){"v.npy", "<f4", false, 2, {3, 2}, 50});
    tool_run(&run, place, "attention --q q.npy --k k.npy --v v.npy --out out");
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.err, "NaN or infinite elements: Q 1, K 0, V 0, O 2"));
    assert_int_equal(npy_read(&o, workplace_path(place, "out/o.npy"), &error), STATUS_OK);
    assert_true(isfinite(o.data[0]) && isfinite(o.data[1]));
    assert_true(isnan(o.data[2]) && isnan(o.data[3]));
    npy_free(&o);
    tool_run_free(&run);
    free(image.bytes);
}

static void test_help(void **state)
{
    static const struct {
        const char *arguments, *says;
    } helps[] = {
        {"--help", "attention"},
        {"help", "machines"},
        {"attention --help", "--q F.npy"},
        {"traffic --help", "--seqlen-k N"},
        {"machines --help", "--json"},
        {"traffic --block-q 5 --help", "exit status"},
        {"machines", "A100-40GB"},
        {"machines --json", "\"RTX-4090\""},
        {"traffic --seqlen 64", "PASS "},
        {"occupancy", "8 blocks an SM, 64 of 64 warps: occupancy 100.0 %, limited by warps"},
        {"occupancy --registers 128", "2 blocks an SM, 16 of 64 warps: occupancy 25.0 %, "},
        {"occupancy --shared 232449", "0 blocks an SM: one does not fit, for want of shared"},
        {"occupancy --threads 32 --machine T4 --json", "\"limited_by\":\t\"blocks\""},
    };
    for (size_t i = 0; i < LENGTH(helps); i++) {
        struct tool_run run;
        tool_run(&run, *state, "%s", helps[i].arguments);
        if (run.status != 0 || *run.err || !strstr(run.out, helps[i].says))
            fail_msg("%s: exit status %d\n%s%s", helps[i].arguments, run.status, run.out,
                     run.err);
        tool_run_free(&run);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_values),
        TEST(test_trace),
        TEST(test_nan_input),
        TEST(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
