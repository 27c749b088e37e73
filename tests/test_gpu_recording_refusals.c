/* lessons/common/gpu_recording: every file that gpu_recording_read() refuses, and what it says.
 */
#include "common/npy_files.h"

#include "common/core_fixture.h"
#include "common/gpu_recording.h"
#include "common/problem.h"

/* The valid document below, with the first from replaced by to, must be refused with says. */
struct refusal {
    const char *from, *to, *says;
};

static const struct refusal refusals[] = {
    {"\"flashlab_recording\": 1", "\"flashlab_recording\": 2",
     ": flashlab_recording: 2, 1 is needed"},
    {"\"flashlab_recording\": 1", "\"flashlab_recording\": \"1\"",
     "flashlab_recording: \"1\", 1"},
    {"\"flashlab_recording\"", "\"other\"", ": flashlab_recording: missing, 1 is needed"},
    {"2026-11-30", "2026-1-30", ": date: \"2026-1-30\", a date like \"2026-11-30\" is needed"},
    {"2026-11-30", "2026-11-3x", ": date: \"2026-11-3x\", a date"},
    {"\"date\": \"2026-11-30\"", "\"date\": 2026", ": date: 2026, a date"},
    {"\"command\": \"made by hand\"", "\"command\": null",
     ": command: null, a string of at most 255"},
    {"NVIDIA H200", "" /* too long, see below */, ": gpu: \"gggggggg"},
    {"\"driver\"", "\"Driver\"", ": driver: missing, a string of at most 31 bytes is needed"},
    {"\"9.0\"", "\"9\"", ": compute_capability: \"9\", a version like \"9.0\" is needed"},
    {"\"9.0\"", "\"9.0x\"", ": compute_capability: \"9.0x\", a version"},
    {"\"9.0\"", "\"-9.0\"", ": compute_capability: \"-9.0\", a version"},
    {"\"9.0\"", "\"\"", ": compute_capability: \"\", a version"},
    {"\"13.0\"", "13.0", ": cuda: 13, a version like"},
    {"\"13.0\"", "\"13.100\"", ": cuda: \"13.100\", a version like"},
    {"\"flash2\"", "\"flash3\"",
     ": algorithm: \"flash3\", naive, standard, flash1 or flash2 is needed"},
    {"\"flash2\"", "2", ": algorithm: 2, naive, "},
    {"\"flash2\"", "\"\\u001b[2J\"", ": algorithm: \"?[2J\", naive, "},
    {"\"options\": {", "\"options\": [], \"x\": {",
     ": options: an array of 0, an object is needed"},
    {"\"batch\": 1", "\"batch\": 0", ": options.batch: 0, a whole number from 1 to 1073741824"},
    {"\"batch\": 1", "\"batch\": 1.5", ": options.batch: 1.5, a whole number from 1"},
    {"\"batch\": 1", "\"batch\": 1e999", ": options.batch: inf, a whole number"},
    {"\"heads_q\": 4", "\"heads_q\": 3",
     ": options: --heads-q 3: must be a multiple of --heads-kv"},
    {"\"heads_q\": 4, ", "", ": options.heads_q: missing, a whole number"},
    {"\"seqlen_q\": 5", "\"seqlen_q\": \"5\"", ": options.seqlen_q: \"5\", a whole number"},
    {"\"seqlen_k\": 6", "\"seqlen_k\": true", ": options.seqlen_k: true, a whole number"},
    {"\"head_dim\": 8", "\"head_dim\": 65537",
     ": options.head_dim: 65537, a whole number from 1 to 65536"},
    {"\"head_dim_v\": 7", "\"head_dim_v\": -7", ": options.head_dim_v: -7, a whole"},
    {"\"scale\": 0.5", "\"scale\": 1e39",
     ": options.scale: 9.9999999999999994e+38, a number from"},
    {"\"scale\": 0.5", "\"scale\": \"inf\"", ": options.scale: \"inf\", a number from"},
    {"\"causal\"", "\"diagonal\"",
     ": options.mask: \"diagonal\", none, causal or causal-top-left"},
    {"\"f16\"", "\"fp16\"",
     ": options.dtype: \"fp16\", f32, f16, bf16, e4m3 or e5m2 is needed"},
    {"\"block_q\": 16", "\"block_q\": 0", ": options.block_q: 0, a whole number"},
    {"\"block_k\": 32", "\"block_k\": {}", ": options.block_k: an object, a whole number"},
    {"\"tiled_gemm\": false", "\"tiled_gemm\": 0", ": options.tiled_gemm: 0, true or false"},
    {"\"seed\": 9", "\"seed\": -9", ": seed: -9, a whole number from 0 to 9007199254740992"},
    {"\"seed\": 9", "\"seed\": 1e17", ": seed: 1e+17, a whole number"},
    {"\"results\"", "\"Results\"", ": results: missing, an object"},
    {"\"lse\": {", "\"lse\": 1, \"x\": {", ": results.lse: 1, an object is needed"},
    {"\"count\": 140", "\"count\": 141", ": results.o.count: 141, 140, what the shape has, is"},
    {"\"count\": 20", "\"count\": -1", ": results.lse.count: -1, a whole number from 0"},
    {"\"nonfinite\": 0", "\"nonfinite\": 141",
     ": results.o.nonfinite: 141, a whole number from 0 to 140"},
    {"\"sum\": 0", "\"sum\": \"nan\"", ": results.o.sum: \"nan\", a number from"},
    {"\"norm\": 0", "\"norm\": -0.5", ": results.o.norm: -0.5, a number from 0"},
    {"[0, 0, 0, 0]", "[0, 0, 0]",
     ": results.o.projections: an array of 3, an array of 4 numbers"},
    {"[0, 0, 0, 0]", "[0, 0, 0, null]",
     ": results.o.projections: an array of 4, an array of 4 n"},
    {"[0, 0, 0, 0]", "[0, 0, 0, -1e999]",
     ": results.o.projections: an array of 4, an array of 4"},
    {"\"launches\": [", "\"launches\": 1, \"x\": [", ": launches: 1, an array is needed"},
    {"\"launches\": [", "\"launches\": [1,", ": launches[0].kernel: missing, a string of"},
    {"\"launches\": [", "\"launches\": [1,2,3,4,5,6,7,",
     ": launches: an array of 9, an array of at most 8"},
    {"\"standard_softmax\"", "\"123456789-123456789-123456789-123456789-12345678\"",
     ": launches[0].kernel: \"123456789-123456789-123456789-123456789-12345678\", a string of "
     "at most 47"},
    {"\"standard_softmax\"", "\"stand\\\"ard\"",
     ": launches[0].kernel: \"stand\"ard\", a name of printable"},
    {"\"load_sectors\": 77", "\"load_sectors\": -7",
     ": launches[1].load_sectors: -7, a whole number from 0"},
    {"\"load_sectors\": 77", "\"load_sectors\": 7.5",
     ": launches[1].load_sectors: 7.5, a whole"},
    {"\"load_sectors\": 77", "\"load_sectors\": 1e16",
     ": launches[1].load_sectors: 10000000000000000, a"},
    {"\"load_sectors\": 77", "\"loads\": 77",
     ": launches[1].load_sectors: missing, a whole number"},
    {"\"shared_load_instructions\"", "\"shared_loads\"",
     ": launches[0].shared_load_instructions: missing, a whole number"},
    {"\"shared_store_instructions\"", "\"shared_stores\"",
     ": launches[0].shared_store_instructions: missing, a whole number"},
    {"\"shared_store_wavefronts\": 0", "\"Shared_store_wavefronts\": 0",
     ": launches[0].shared_store_wavefronts: missing, a whole number"},
    {"\"shared_load_wavefronts\": 0", "\"shared_load_wavefronts\": -2",
     ": launches[0].shared_load_wavefronts: -2, a whole number from 0"},
    {"\"shared_store_conflicts\"", "\"conflicts\"",
     ": launches[0].shared_store_conflicts: missing, a whole number"},
    {"\"tensor_instructions\"", "\"tensor\"",
     ": launches[0].tensor_instructions: missing, a whole number"},
    {"\"duration_ns\": 2.5", "\"duration_ns\": -2",
     ": launches[0].duration_ns: -2, a number from 0"},
    {"\"uncounted\": \"why\"", "\"uncounted\": 5",
     ": uncounted: 5, a string of at most 511 bytes"},
    {"\"steps\": [", "\"step\": [", ": steps: missing, an array is needed"},
    {"\"steps\": [", "\"steps\": [7,", ": steps[0].kernel: missing, a name"},
    {"\"kernel\":\"k\"", "\"kernel\":\"k\\\\\"",
     ": steps[1].kernel: \"k\\\", a name of printable ASCII"},
    {"\"block\":[1,2,3]", "\"block\":[1,2]",
     ": steps[1].block: an array of 2, an array of 3 whole"},
    {"\"block\":[1,2,3]", "\"block\":[1,2,-3]",
     ": steps[1].block: an array of 3, an array of 3"},
    {"\"block\":[1,2,3]", "\"block\":[1,2.5,3]",
     ": steps[1].block: an array of 3, an array of 3"},
    {"\"i\":4", "\"i\":-2", ": steps[1].i: -2, a whole number from -1 to 2147483647"},
    {"\"j\":5", "\"j\":2147483648", ": steps[1].j: 2147483648, a whole number"},
    {"\"step\":\"s\"", "\"step\":null", ": steps[1].step: null, a name"},
    {"\"read_bytes\":6", "\"read_bytes\":-6", ": steps[1].read_bytes: -6, a whole number"},
    {"\"written_bytes\":7", "\"written_bytes\":[]",
     ": steps[1].written_bytes: an array of 0, a whole"},
    {"\"reduced_bytes\":8", "\"bytes\":8", ": steps[1].reduced_bytes: missing, a whole number"},
    {"\"m\":[1,2]", "\"m\":[1]",
     ": steps[1].l: an array of 2, an array of as many numbers as m has"},
    {"\"m\":[1,2]", "\"M\":[1,2]", ": steps[1].m: missing, an array is needed"},
    {"\"l\":[3,4]", "\"l\":[3,4,5]",
     ": steps[1].l: an array of 3, an array of as many numbers"},
    {"\"l\":[3,4]", "\"l\":{\"a\":1,\"b\":2}", ": steps[1].l: an object, an array is needed"},
    {"\"l\":[3,4]", "\"l\":[3,\"4\"]", ": steps[1].l: \"4\", a number of fp32, \"inf\""},
    {"\"l\":[3,4]", "\"l\":[3,1e40]", ": steps[1].l: 1e+40, a number of fp32"},
    {",\"o_norm\":[5,6]", "", ": steps[1].o_norm: missing, an array is needed"},
};

/* The document that the table edits; free() it. */
static char *valid_document(void)
{
    float m[] = {1, 2}, l[] = {3, 4}, norm[] = {5, 6};
    const struct step_record steps[] = {
        {"k0", {0, 0, 0}, 0, 0, "s0", 0, 0, 0, 0, NULL, NULL, NULL},
        {"k", {1, 2, 3}, 4, 5, "s", 6, 7, 8, 2, m, l, norm}};
    struct gpu_recording r = {
        .date = "2026-11-30",
        .command = "made by hand",
        .algorithm = ALGORITHM_FLASH2,
        .attention = {1, 4, 2, 5, 6, 8, 7, 0.5f, MASK_CAUSAL, DTYPE_F16, 16, 32, false},
        .seed = 9,
        .o = {.count = 140},
        .lse = {.count = 20},
        .seen = {.gpu = "NVIDIA H200",
                 .driver = "580",
                 .compute_major = 9,
                 .cuda_version = 13000,
                 .launches = 2,
                 .uncounted = "why"}};
    strcpy(r.seen.launch[0].kernel, "standard_softmax");
    strcpy(r.seen.launch[1].kernel, "standard_output");
    r.seen.launch[0].of[COUNTER_DURATION_NS] = 2.5;
    r.seen.launch[1].of[COUNTER_LOAD_SECTORS] = 77;
    for (size_t i = 0; i < LENGTH(steps); i++)
        step_log_add(&r.seen.steps, &steps[i]);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_true(gpu_recording_write(&r, stream));
    assert_int_equal(fclose(stream), 0);
    gpu_recording_free(&r);
    return text;
}

/* The text with the first from, which it must have, replaced; free() it. */
static char *edited(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        fail_msg("the document has no %s", from);
    char *out = allocate(strlen(text) + strlen(to) + 1, 1);
    memcpy(out, text, (size_t)(at - text));
    strcpy(out + (at - text), to);
    strcat(out, at + strlen(from));
    return out;
}

static void expect_refused(const char *path, const char *says)
{
    struct gpu_recording recording, empty;
    struct error error = {0};
    memset(&recording, 0xff, sizeof recording);
    memset(&empty, 0, sizeof empty);
    if (gpu_recording_read(&recording, path, &error) != STATUS_BAD_FILE)
        fail_msg("not refused, expected \"%s\"", says);
    assert_int_equal(error.status, STATUS_BAD_FILE);
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text, says))
        fail_msg("\"%s\" does not begin with the path and have \"%s\"", error.text, says);
    for (const char *c = error.text; *c; c++)
        assert_true(*c >= ' ' && *c <= '~');
    assert_memory_equal(&recording, &empty, sizeof empty);
}

static void test_refused_documents(void **state)
{
    const struct place *place = *state;
    char *text = valid_document(), long_name[200] = "";
    struct gpu_recording recording;
    struct error error;
    write_bytes(place->path, text, strlen(text));
    assert_int_equal(gpu_recording_read(&recording, place->path, &error), STATUS_OK);
    assert_int_equal(recording.seen.steps.count, 2);
    gpu_recording_free(&recording);
    memset(long_name, 'g', 128);
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        const struct refusal *r = &refusals[i];
        const bool gpu = strcmp(r->from, "NVIDIA H200") == 0;
        char *wrong = edited(text, r->from, gpu ? long_name : r->to);
        write_bytes(place->path, wrong, strlen(wrong));
        expect_refused(place->path, r->says);
        free(wrong);
    }
    free(text);
}

/* A document that ends early is no JSON, wherever it ends. */
static void test_every_truncation(void **state)
{
    const struct place *place = *state;
    char *text = valid_document();
    const size_t length = strlen(text) - 2; /* "}\n" */
    for (size_t size = 0; size <= length; size++) {
        write_bytes(place->path, text, size);
        expect_refused(place->path, size ? "this is not JSON" : "the file is empty");
    }
    free(text);
}

static void test_files_that_are_no_documents(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{\n\"a\": 1,\n\"b\": ?}", ": line 3: this is not JSON"},
        {"{} {}", ": line 1: this is not JSON"},
        {"[]", ": flashlab_recording: missing, 1 is needed"},
        {"7", ": flashlab_recording: missing, 1 is needed"},
        {"\x93NUMPY", ": line 1: this is not JSON"},
    };
    const struct place *place = *state;
    expect_refused(place->path, ": No such file or directory");
    expect_refused(place->folder, ": cannot read: Is a directory");
    expect_refused("/dev/zero", ": more than 16777216 bytes");
    expect_refused("/dev/null", ": the file is empty");
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        write_bytes(place->path, wrong[i].text, strlen(wrong[i].text));
        expect_refused(place->path, wrong[i].says);
    }
    write_bytes(place->path, "{}\0{}", 5);
    expect_refused(place->path, ": byte 2 is NUL: not a text file");
    char *text = valid_document();
    const size_t most = 16 << 20, length = strlen(text);
    char *large = allocate(most + 1, 1);
    memset(large, ' ', most + 1);
    strcpy(large, text);
    large[length] = ' ';
    write_bytes(place->path, large, most + 1);
    expect_refused(place->path, ": more than 16777216 bytes, the most allowed");
    write_bytes(place->path, large, most);
    struct gpu_recording recording;
    struct error error;
    assert_int_equal(gpu_recording_read(&recording, place->path, &error), STATUS_OK);
    gpu_recording_free(&recording);
    free(large);
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        TEST(test_refused_documents),
        TEST(test_every_truncation),
        TEST(test_files_that_are_no_documents),
    };
#undef TEST
    return cmocka_run_group_tests_name("gpu_recording_refusals", tests, NULL, NULL);
}
