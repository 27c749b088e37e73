/* lessons/common/gpu_recording: summaries of results, and files that come back as they were.
 *
 * Protects: any recording that is written is read again to the last bit, infinities, NaN, -0
 * and numbers of 2^53 included; every document that is not one is refused with a message that
 * says what and where; a summary shows one element that changed, moved or is not finite.
 */
#include "common/npy_files.h"

#include <float.h>
#include <math.h>

#include "common/core_fixture.h"
#include "common/gpu_recording.h"
#include "common/problem.h"

enum { RECORDINGS = 60, MOST_STEPS = 12, MOST_ROWS = 5 };

static float special_float(uint64_t *state)
{
    static const float special[] = {0.0f,    -0.0f,    INFINITY, -INFINITY, NAN,
                                    FLT_MAX, -FLT_MAX, 1e-45f,   1.0f / 3,  16777217.0f};
    const int i = random_between(state, 0, 2 * (int)LENGTH(special));
    return i < (int)LENGTH(special) ? special[i] : random_normal(state);
}

static double random_counter(uint64_t *state)
{
    switch (random_between(state, 0, 3)) {
    case 0:
        return -1;
    case 1:
        return 0;
    case 2:
        return 9007199254740992.0; /* 2^53 */
    default:
        return (double)(random_next(state) >> 11); /* of 53 bits */
    }
}

static struct result_summary random_summary(uint64_t *state, size_t count)
{
    float *values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = special_float(state);
    const struct result_summary summary = result_summarize(values, count);
    free(values);
    return summary;
}

static void add_random_steps(struct step_log *log, uint64_t *state)
{
    static const char *const names[] = {"load Qi", "", "Oi = diag(c) Oi + Pij Vj",
                                        "m' < 2 & 3"};
    for (int count = random_between(state, 0, MOST_STEPS); count > 0; count--) {
        float rows[3][MOST_ROWS];
        for (int i = 0; i < 3 * MOST_ROWS; i++)
            rows[i / MOST_ROWS][i % MOST_ROWS] = special_float(state);
        const struct step_record record = {.kernel = names[random_between(state, 0, 3)],
                                           .block = {INT32_MAX, random_between(state, 0, 9), 0},
                                           .i = random_between(state, -1, 5),
                                           .j = random_between(state, 0, 1) ? INT32_MAX : -1,
                                           .step = names[random_between(state, 0, 3)],
                                           .read_bytes = (int64_t)(random_next(state) >> 11),
                                           .written_bytes = INT64_C(1) << 53,
                                           .reduced_bytes = random_between(state, 0, 1000),
                                           .rows = random_between(state, 0, MOST_ROWS),
                                           .m = rows[0],
                                           .l = rows[1],
                                           .o_norm = rows[2]};
        step_log_add(log, &record);
    }
}

/* The number-th of a stream of recordings that has all algorithms, masks and dtypes. */
static void random_recording(struct gpu_recording *r, int number, uint64_t *state)
{
    *r = (struct gpu_recording){.algorithm = (enum algorithm)(number % ALGORITHM_COUNT),
                                .attention = random_attention(state, 20, 8),
                                .seed = random_next(state) >> 11};
    r->attention.mask = (enum mask)(number % MASK_COUNT);
    r->attention.dtype = (enum dtype)(number % DTYPE_COUNT);
    r->attention.scale = number == 7 ? FLT_MAX : r->attention.scale;
    r->attention.tiled_gemm = random_between(state, 0, 1);
    snprintf(r->date, sizeof r->date, "20%02d-11-30", number % 100);
    snprintf(r->command, sizeof r->command, "record \"a b\" C:\\x\t\xc3\xa9 %d", number);
    r->o = random_summary(state, count_o(&r->attention));
    r->lse = random_summary(state, count_lse(&r->attention));
    struct observation *seen = &r->seen;
    snprintf(seen->gpu, sizeof seen->gpu, "NVIDIA H%d", number);
    snprintf(seen->driver, sizeof seen->driver, "%d.159.04", number);
    seen->compute_major = random_between(state, 0, 12);
    seen->compute_minor = random_between(state, 0, 9);
    seen->cuda_version =
        1000 * random_between(state, 0, 20) + 10 * random_between(state, 0, 99);
    seen->launches = random_between(state, 0, MAX_OBSERVED_LAUNCHES);
    for (int i = 0; i < seen->launches; i++) {
        memset(seen->launch[i].kernel, 'a' + i, (size_t)random_between(state, 0, 47));
        for (int c = 0; c < COUNTER_COUNT; c++)
            seen->launch[i].of[c] = random_counter(state);
        seen->launch[i].of[COUNTER_DURATION_NS] = random_between(state, -8, 8000) / 8.0;
        if (seen->launch[i].of[COUNTER_DURATION_NS] < 0)
            seen->launch[i].of[COUNTER_DURATION_NS] = -1;
    }
    if (seen->launches == 0)
        memset(seen->uncounted, '"', sizeof seen->uncounted - 1);
    add_random_steps(&seen->steps, state);
}

/* None is NaN. */
static bool same_doubles(const double *a, const double *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i] != b[i] || signbit(a[i]) != signbit(b[i]))
            return false;
    return true;
}

static bool same_summary(const struct result_summary *a, const struct result_summary *b)
{
    return a->count == b->count && a->nonfinite == b->nonfinite &&
           same_doubles(&a->sum, &b->sum, 1) && same_doubles(&a->norm, &b->norm, 1) &&
           same_doubles(a->projection, b->projection, PROJECTIONS);
}

static bool same_step(const struct step_record *a, const struct step_record *b)
{
    bool same = strcmp(a->kernel, b->kernel) == 0 && strcmp(a->step, b->step) == 0 &&
                memcmp(a->block, b->block, sizeof a->block) == 0 && a->i == b->i &&
                a->j == b->j && a->read_bytes == b->read_bytes &&
                a->written_bytes == b->written_bytes && a->reduced_bytes == b->reduced_bytes &&
                a->rows == b->rows;
    for (int r = 0; same && r < a->rows; r++)
        same = same_bits(a->m[r], b->m[r]) && same_bits(a->l[r], b->l[r]) &&
               same_bits(a->o_norm[r], b->o_norm[r]);
    return same;
}

static bool same_attention(const struct attention *a, const struct attention *b)
{
    return a->batch == b->batch && a->heads_q == b->heads_q && a->heads_kv == b->heads_kv &&
           a->seqlen_q == b->seqlen_q && a->seqlen_k == b->seqlen_k &&
           a->head_dim == b->head_dim && a->head_dim_v == b->head_dim_v &&
           same_bits(a->scale, b->scale) && a->mask == b->mask && a->dtype == b->dtype &&
           a->block_q == b->block_q && a->block_k == b->block_k &&
           a->tiled_gemm == b->tiled_gemm;
}

static bool same_recording(const struct gpu_recording *a, const struct gpu_recording *b)
{
    const struct observation *x = &a->seen, *y = &b->seen;
    bool same = strcmp(a->date, b->date) == 0 && strcmp(a->command, b->command) == 0 &&
                a->algorithm == b->algorithm && same_attention(&a->attention, &b->attention) &&
                a->seed == b->seed && same_summary(&a->o, &b->o) &&
                same_summary(&a->lse, &b->lse) && strcmp(x->gpu, y->gpu) == 0 &&
                strcmp(x->driver, y->driver) == 0 && x->compute_major == y->compute_major &&
                x->compute_minor == y->compute_minor && x->cuda_version == y->cuda_version &&
                strcmp(x->uncounted, y->uncounted) == 0 && x->launches == y->launches &&
                x->steps.count == y->steps.count;
    for (int i = 0; same && i < x->launches; i++)
        same = strcmp(x->launch[i].kernel, y->launch[i].kernel) == 0 &&
               same_doubles(x->launch[i].of, y->launch[i].of, COUNTER_COUNT);
    for (int64_t i = 0; same && i < x->steps.count; i++)
        same = same_step(&x->steps.records[i], &y->steps.records[i]);
    return same;
}

static void write_recording(const char *path, const struct gpu_recording *recording)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(gpu_recording_write(recording, file));
    assert_int_equal(fclose(file), 0);
}

static void test_recordings_come_back(void **state)
{
    const struct place *place = *state;
    uint64_t random = 1;
    for (int k = 0; k < RECORDINGS; k++) {
        struct gpu_recording written, read;
        struct error error = {0};
        random_recording(&written, k, &random);
        write_recording(place->path, &written);
        if (gpu_recording_read(&read, place->path, &error))
            fail_msg("recording %d: %s", k, error.text);
        if (!same_recording(&written, &read))
            fail_msg("recording %d is not what was written", k);
        assert_null(read.seen.o);
        gpu_recording_free(&written);
        gpu_recording_free(&read);
    }
}

/* Removes from each first up to the next last, or to the end. */
static void cut(char *text, const char *first, const char *last)
{
    char *from, *to;
    while ((from = strstr(text, first)) && (to = strstr(from, last)))
        memmove(from, to, strlen(to) + 1);
}

/* Reads a recording whose launches lack the lines from one that begins with from to one that
 * begins with to, which are those of the counters first to last. */
static void read_without(const struct place *place, const char *from, const char *to, int first,
                         int last)
{
    uint64_t random = 5;
    struct gpu_recording written, read;
    struct error error = {0};
    char *text = NULL;
    size_t size = 0;
    random_recording(&written, 1, &random);
    written.seen.launches = 2;
    *written.seen.uncounted = '\0';
    for (int c = 0; c < 2 * COUNTER_COUNT; c++)
        written.seen.launch[c / COUNTER_COUNT].of[c % COUNTER_COUNT] = c;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_true(gpu_recording_write(&written, stream));
    assert_int_equal(fclose(stream), 0);
    cut(strstr(text, "\"launches\""), from, to);
    write_bytes(place->path, text, strlen(text));
    if (gpu_recording_read(&read, place->path, &error))
        fail_msg("%s", error.text);
    assert_false(same_recording(&written, &read));
    for (int i = 0; i < 2; i++)
        for (int c = first; c <= last; c++)
            written.seen.launch[i].of[c] = -1;
    assert_true(same_recording(&written, &read));
    gpu_recording_free(&written);
    gpu_recording_free(&read);
    free(text);
}

/* Only of the launches that lack all of a group, and only these counters. */
static void test_counters_that_a_recording_may_lack(void **state)
{
    static const char shared[] = "\"shared_load_i", matrix[] = "\"matrix_load_i",
                      tensor[] = "\"tensor_instructions\"";
    read_without(*state, shared, matrix, COUNTER_SHARED_LOAD_INSTRUCTIONS,
                 COUNTER_SHARED_STORE_WAVEFRONTS);
    read_without(*state, matrix, tensor, COUNTER_MATRIX_LOAD_INSTRUCTIONS,
                 COUNTER_MATRIX_LOAD_WAVEFRONTS);
    read_without(*state, shared, tensor, COUNTER_SHARED_LOAD_INSTRUCTIONS,
                 COUNTER_MATRIX_LOAD_WAVEFRONTS);
}

/* Every launch and step has a line, and a stream that fails is noticed. */
static void test_lines_and_failing_streams(void **state)
{
    uint64_t random = 2;
    struct gpu_recording recording;
    char *text = NULL;
    size_t size = 0;
    (void)state;
    random_recording(&recording, 1, &random);
    recording.seen.launches = 3;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_true(gpu_recording_write(&recording, stream));
    assert_int_equal(fclose(stream), 0);
    int64_t lines = 0, kernels = 0;
    for (const char *line = text; line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *kernel = strstr(line, "\"kernel\":"), *end = strchr(line, '\n');
        kernels += kernel && end && kernel < end;
        lines++;
    }
    assert_int_equal(kernels, recording.seen.steps.count + 3);
    assert_true(lines > kernels + 15);
    free(text);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_false(gpu_recording_write(&recording, full));
    fclose(full);
    gpu_recording_free(&recording);
}

static void test_the_comparison_can_fail(void **state)
{
    uint64_t random = 3;
    struct gpu_recording a, b;
    float m[] = {NAN, 0.0f}, l[] = {1, 2}, norm[] = {3, INFINITY};
    struct step_record step = {"k", {1, 2, 3}, 4, 5, "s", 6, 7, 8, 2, m, l, norm};
    (void)state;
    random_recording(&a, 5, &random);
    random_recording(&b, 6, &random);
    assert_true(same_recording(&a, &a));
    assert_false(same_recording(&a, &b));
    gpu_recording_free(&b);
    b = a;
    b.seed++;
    assert_false(same_recording(&a, &b));
    b = a;
    b.attention.scale = nextafterf(a.attention.scale, 9.0f);
    assert_false(same_recording(&a, &b));
    b = a;
    b.o.projection[PROJECTIONS - 1] = nextafter(a.o.projection[PROJECTIONS - 1], 1e300);
    assert_false(same_recording(&a, &b));
    b = a;
    b.lse.sum = a.lse.sum == 0 ? 1 : -a.lse.sum;
    assert_false(same_recording(&a, &b));
    b = a;
    b.seen.launches = 1;
    assert_false(same_recording(&a, &b));
    step_log_add(&a.seen.steps, &step);
    const struct step_record *kept = &a.seen.steps.records[a.seen.steps.count - 1];
    assert_true(same_step(kept, &step));
    m[1] = -0.0f;
    assert_false(same_step(kept, &step));
    gpu_recording_free(&a);
}

static void test_summary_of_known_values(void **state)
{
    (void)state;
    const float values[] = {3.0f, -4.0f, NAN, INFINITY, 0.0f};
    const struct result_summary s = result_summarize(values, LENGTH(values));
    assert_int_equal(s.count, 5);
    assert_int_equal(s.nonfinite, 2);
    assert_true(s.sum == -1.0 && s.norm == 5.0);
    /* The signs are part of the format: recordings would not agree with other ones. */
    const double expected[PROJECTIONS] = {3993, -3993, -4007, -1993};
    for (int k = 0; k < PROJECTIONS; k++)
        assert_true(s.projection[k] == expected[k]);
    const struct result_summary none = result_summarize(NULL, 0);
    assert_true(none.count == 0 && none.sum == 0.0 && none.norm == 0.0);
}

/* Whether some projection of both differs by at least this. */
static bool projections_differ(const struct result_summary *a, const struct result_summary *b,
                               double least)
{
    for (int k = 0; k < PROJECTIONS; k++)
        if (fabs(a->projection[k] - b->projection[k]) >= least)
            return true;
    return false;
}

/* A changed element shows in each projection. Two elements of one sign can be swapped in a
 * projection, so in all of them one time in 2^PROJECTIONS; a NaN that moves likewise. */
static void test_summaries_show_changes(void **state)
{
    enum { COUNT = 1000, TRIES = 2000 };
    uint64_t random = 4;
    float values[COUNT];
    int swaps_unseen = 0, moves_unseen = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = random_normal(&random);
    const struct result_summary before = result_summarize(values, COUNT);
    for (int k = 0; k < TRIES; k++) {
        const int i = k % COUNT, j = (i + random_between(&random, 1, COUNT - 1)) % COUNT;
        const float x = values[i], y = values[j];
        values[i] = x + 1;
        const struct result_summary changed = result_summarize(values, COUNT);
        for (int p = 0; p < PROJECTIONS; p++)
            assert_true(fabs(changed.projection[p] - before.projection[p]) > 0.99);
        assert_true(changed.sum > before.sum + 0.99);
        values[i] = y;
        values[j] = x;
        const struct result_summary swapped = result_summarize(values, COUNT);
        swaps_unseen +=
            !projections_differ(&swapped, &before, 1.9 * fabs((double)x - (double)y));
        values[j] = y;
        values[i] = k % 2 ? NAN : -INFINITY;
        const struct result_summary here = result_summarize(values, COUNT);
        assert_int_equal(here.nonfinite, 1);
        values[j] = values[i];
        values[i] = y;
        const struct result_summary there = result_summarize(values, COUNT);
        moves_unseen += !projections_differ(&here, &there, 1000);
        values[i] = x;
        values[j] = y;
    }
    assert_in_range(swaps_unseen, TRIES / 32, TRIES / 10);
    assert_in_range(moves_unseen, TRIES / 32, TRIES / 10);
    assert_false(projections_differ(&before, &before, 1e-300));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(test_recordings_come_back),
        TEST(test_counters_that_a_recording_may_lack),
        cmocka_unit_test(test_lines_and_failing_streams),
        cmocka_unit_test(test_the_comparison_can_fail),
        cmocka_unit_test(test_summary_of_known_values),
        cmocka_unit_test(test_summaries_show_changes),
    };
#undef TEST
    return cmocka_run_group_tests_name("gpu_recording", tests, NULL, NULL);
}
