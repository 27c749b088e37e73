/* flashlab compare and record, on a machine without a GPU: recordings made on an H200, and the
 * kernels' source on the CPU.
 *
 * Protects: every committed recording is what the simulator does, to the sector and step by
 * step (the results of the CUDA kernels are held to the simulator's even where there is no
 * GPU), and so is what the CUDA source does on the CPU; a recording damaged in one place fails
 * with exit status 1 and the place; and whatever is wrong with a recording or the command line
 * ends with exit status 2 and nothing written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const char *const recordings[] = {"traffic_naive",  "traffic_standard", "traffic_flash1",
                                         "traffic_flash2", "steps_standard",   "steps_flash1",
                                         "steps_flash2",   "vit_naive",        "vit_standard",
                                         "vit_flash1",     "vit_flash2"};

static void copy_recording(const struct workplace *place, const char *name)
{
    char command[2048];
    snprintf(command, sizeof command, "cp lessons/recordings/%s.json '%s'", name,
             workplace_path(place, "recording.json"));
    assert_int_equal(system(command), 0);
}

/* Replaces the first old text behind the first mark in the copied recording. */
static void damage(const struct workplace *place, const char *mark, const char *old,
                   const char *new)
{
    const char *path = workplace_path(place, "recording.json");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    static char text[1 << 20];
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    char *at = strstr(text, mark);
    at = at ? strstr(at, old) : NULL;
    if (!at)
        fail_msg("no %s behind %s", old, mark);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    assert_int_equal(fclose(file), 0);
}

static void test_every_recording_is_what_the_simulator_does(void **state)
{
    const struct workplace *place = *state;
    for (size_t i = 0; i < LENGTH(recordings); i++) {
        struct tool_run run;
        copy_recording(place, recordings[i]);
        tool_run(&run, place, "compare --recording recording.json --json");
        cJSON *json = cJSON_Parse(run.out);
        if (run.status != 0 || !json)
            fail_msg("%s: exit status %d: %s%s", recordings[i], run.status, run.out, run.err);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "equal")));
        assert_non_null(cJSON_GetObjectItem(json, "measured"));
        const bool steps = strncmp(recordings[i], "steps", 5) == 0;
        const double compared =
            cJSON_GetNumberValue(cJSON_GetObjectItem(json, "steps_compared"));
        assert_true(steps ? compared > 50 : compared == 0);
        cJSON_Delete(json);
        tool_run_free(&run);
    }
}

static void assert_80_columns(const char *text)
{
    for (const char *line = text; *line; line += *line == '\n') {
        const size_t length = strcspn(line, "\n");
        if (length > 80)
            fail_msg("%zu columns: %.*s", length, (int)length, line);
        line += length;
    }
}

static void test_the_source_on_the_cpu_is_what_the_simulator_does(void **state)
{
    static const struct {
        const char *arguments;
        int launches, steps;
    } cases[] = {
        {"--cpu --algorithm naive --seqlen 50", 1, 0},
        {"--cpu --algorithm standard --seqlen 100 --heads-q 2 --heads-kv 1 --steps", 3, 20},
        {"--algorithm flash1 --seqlen 100 --mask causal --block-q 16 --steps", 1, 20},
        {"--algorithm flash2 --steps", 1, 72}, /* N = 256 */
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct tool_run run;
        tool_run(&run, *state, "compare %s --json", cases[i].arguments);
        cJSON *json = cJSON_Parse(run.out);
        if (run.status != 0 || !json)
            fail_msg("%s: exit status %d: %s%s", cases[i].arguments, run.status, run.out,
                     run.err);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "equal")));
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "on_cpu")));
        assert_null(cJSON_GetObjectItem(json, "gpu"));
        assert_non_null(cJSON_GetObjectItem(json, "measured"));
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "launches")),
                         cases[i].launches);
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(json, "steps_compared")) >=
                    cases[i].steps);
        cJSON_Delete(json);
        tool_run_free(&run);
    }
}

/* Nobody takes it for a GPU's. */
static void test_text_of_the_cpu(void **state)
{
    struct tool_run run;
    tool_run(&run, *state, "compare --seqlen 100 --steps");
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.out, "the CUDA source, executed on this CPU"));
    assert_non_null(strstr(run.out, "PASS traffic: predicted = simulated = CPU"));
    assert_non_null(strstr(run.out, "flash2_forward: bank conflicts of shared memory: "));
    assert_non_null(strstr(run.out, "PASS steps: "));
    assert_null(strstr(run.out, "GPU"));
    assert_null(strstr(run.out, "measured"));
    assert_80_columns(run.out);
    tool_run_free(&run);
}

static void test_text_and_steps(void **state)
{
    const struct workplace *place = *state;
    struct tool_run run;
    copy_recording(place, "steps_flash2");
    tool_run(&run, place, "compare --recording recording.json --steps");
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.out, "NVIDIA H200"));
    assert_non_null(strstr(run.out, "PASS traffic: predicted = simulated = measured"));
    assert_non_null(strstr(run.out, "PASS steps: "));
    assert_non_null(strstr(run.out, "PASS results: "));
    assert_non_null(strstr(run.out, "Oi = diag(c) Oi + Pij Vj"));
    assert_non_null(strstr(run.out, "row 0  m "));
    assert_80_columns(run.out);
    tool_run_free(&run);
}

/* Standard attention has m and l in one launch, O in another. */
static void test_text_of_what_a_step_does_not_know(void **state)
{
    const struct workplace *place = *state;
    struct tool_run run;
    copy_recording(place, "steps_standard");
    tool_run(&run, place, "compare --recording recording.json --steps");
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.out, "|O|        -        -\n"));
    assert_non_null(
        strstr(run.out, "row 0  m         -         -  l         -         -  |O|"));
    assert_null(strstr(run.out, "nan"));
    tool_run_free(&run);
}

/* In the list with the profilers' names, and from a recording into --json. */
static void test_counters_of_shared_memory(void **state)
{
    static const struct {
        const char *name, *metric;
    } counters[] = {
        {"shared_load_instructions", "smsp__sass_inst_executed_op_shared_ld.sum"},
        {"shared_load_wavefronts",
         "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
        {"shared_store_instructions", "smsp__sass_inst_executed_op_shared_st.sum"},
        {"shared_store_wavefronts",
         "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
    };
    const struct workplace *place = *state;
    struct tool_run list, run;
    char line[160], added[256] = "";
    tool_run(&list, place, "counters");
    copy_recording(place, "traffic_flash2");
    for (size_t k = 0; k < LENGTH(counters); k++) {
        snprintf(line, sizeof line, "\n%-25s %s\n", counters[k].name, counters[k].metric);
        if (!strstr(list.out, line))
            fail_msg("no line%sin %s", line, list.out);
        snprintf(line, sizeof line, "\"%s\": %zu, ", counters[k].name, 11 + k);
        strcat(added, line);
    }
    strcat(added, "\"load_sectors\""); /* in front: the first of a key twice counts */
    damage(place, "\"launches\"", "\"load_sectors\"", added);
    tool_run(&run, place, "compare --recording recording.json --json");
    cJSON *json = cJSON_Parse(run.out);
    const cJSON *launch = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "launches"), 0);
    const cJSON *shown = cJSON_GetObjectItem(launch, "counters");
    for (size_t k = 0; k < LENGTH(counters); k++)
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(shown, counters[k].name)) ==
                    (double)(11 + k));
    cJSON_Delete(json);
    tool_run_free(&list);
    tool_run_free(&run);
}

static void test_damage_is_found(void **state)
{
    static const struct {
        const char *recording, *mark, *old, *new, *says[4];
    } cases[] = {
        {"traffic_flash2",
         "\"load_sectors\"",
         "\"load_sectors\": ",
         "\"load_sectors\": 1",
         {"FAIL traffic", "NOT EQUAL"}},
        {"traffic_standard",
         "standard_softmax",
         "\"store_sectors\": ",
         "\"store_sectors\": 1",
         {"FAIL traffic", "NOT EQUAL", "PASS results"}},
        {"traffic_flash2",
         "\"sum\"",
         "\"sum\": ",
         "\"sum\": 1",
         {"PASS traffic", "FAIL results"}},
        {"steps_flash2",
         "\"j\":1,\"step\":\"Oi = diag(c) Oi",
         "\"m\":[",
         "\"m\":[7",
         {"FAIL steps", "i 0, j 1", "row 0", "PASS results"}},
        {"steps_flash2",
         "\"i\":2,\"j\":3,\"step\":\"online softmax\"",
         "\"read_bytes\":",
         "\"read_bytes\":1",
         {"FAIL steps", "i 2, j 3", "bytes read", "online softmax"}},
    };
    const struct workplace *place = *state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct tool_run run;
        copy_recording(place, cases[i].recording);
        damage(place, cases[i].mark, cases[i].old, cases[i].new);
        tool_run(&run, place, "compare --recording recording.json");
        if (run.status != 1)
            fail_msg("case %zu: exit status %d: %s%s", i, run.status, run.out, run.err);
        for (int k = 0; k < 4 && cases[i].says[k]; k++)
            if (!strstr(run.out, cases[i].says[k]))
                fail_msg("case %zu does not say '%s': %s", i, cases[i].says[k], run.out);
        tool_run_free(&run);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *arguments, *says[3];
    } cases[] = {
        {"compare --gpu --cpu", {"--gpu and --cpu", "choose one"}},
        {"compare --cpu --ncu none.csv", {"--ncu none.csv", "--gpu only"}},
        {"compare --ncu none.csv", {"--ncu none.csv", "--gpu only"}},
        {"compare --cpu --block-q 128", {"--cpu", "--block-q 128", "1 to 64"}},
        {"compare --cpu --head-dim 4096", {"do not fit on chip"}},
        {"compare --recording none.json", {"--recording none.json", "No such file"}},
        {"compare --recording recording.json --seqlen 128", {"come from the file", "--steps"}},
        {"compare --recording recording.json --gpu", {"come from the file"}},
        {"compare --recording recording.json --cpu", {"come from the file"}},
        {"compare --recording recording.json --steps", {"--steps", "has no steps"}},
        {"compare --gpu --seed -1", {"--seed -1", "a whole number of 1 to 13 digits"}},
        {"compare --gpu --ncu none.csv", {"--ncu none.csv", "No such file"}},
        {"compare --gpu --head-dim 4096", {"do not fit on chip"}},
        {"record --algorithm flash2", {"--recording FILE: must be given"}},
        {"record --cpu --recording cpu.json", {"--cpu", "made on a GPU"}},
        {"record --algorithm flash2 --tma", {"--tma", "unknown option"}},
    };
    const struct workplace *place = *state;
    copy_recording(place, "traffic_flash2");
    char *before = workplace_listing(place);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct tool_run run;
        tool_run(&run, place, "%s", cases[i].arguments);
        if (run.status != 2 || *run.out)
            fail_msg("%s: exit status %d: %s", cases[i].arguments, run.status, run.out);
        for (int k = 0; k < 3 && cases[i].says[k]; k++)
            if (!strstr(run.err, cases[i].says[k]))
                fail_msg("%s does not say '%s': %s", cases[i].arguments, cases[i].says[k],
                         run.err);
        tool_run_free(&run);
    }
    char *after = workplace_listing(place);
    assert_string_equal(before, after);
    free(before), free(after);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_every_recording_is_what_the_simulator_does),
        TEST(test_the_source_on_the_cpu_is_what_the_simulator_does),
        TEST(test_text_of_the_cpu),
        TEST(test_text_and_steps),
        TEST(test_text_of_what_a_step_does_not_know),
        TEST(test_counters_of_shared_memory),
        TEST(test_damage_is_found),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests_name("tool compare", tests, NULL, NULL);
}
