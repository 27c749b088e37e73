/* `flashlab traffic --json` and `flashlab attention --json`: the format that programs read.
 *
 * Protects: every key of the format is there, integers are integers, the counts of the tensors
 * add up to the totals, "simulated" and "predicted" are the same and "equal" says so, the
 * options are those that were asked for, and both commands print the same of the same problem;
 * what --dram adds.
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

#include "common/tool.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const char *const amounts[] = {"read_bytes",   "written_bytes",   "reduced_bytes",
                                      "read_sectors", "written_sectors", "reduced_sectors"};

static const cJSON *item(const cJSON *object, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!found)
        fail_msg("no key \"%s\"", key);
    return found;
}

static double count(const cJSON *object, const char *key)
{
    const cJSON *number = item(object, key);
    if (!cJSON_IsNumber(number) || !(number->valuedouble >= 0) ||
        number->valuedouble != (double)(int64_t)number->valuedouble)
        fail_msg("\"%s\" is no count", key);
    return number->valuedouble;
}

static void check_account(const cJSON *account)
{
    const cJSON *tensors = item(account, "tensors"), *flops = item(account, "flops");
    assert_true(cJSON_GetArraySize(tensors) >= 5); /* Q, K, V, O, LSE */
    for (size_t k = 0; k < LENGTH(amounts); k++) {
        double sum = 0;
        const cJSON *tensor;
        cJSON_ArrayForEach(tensor, tensors) sum += count(tensor, amounts[k]);
        assert_true(sum == count(account, amounts[k]));
    }
    assert_true(count(account, "read_bytes") > 0 && count(account, "written_bytes") > 0);
    assert_true(count(item(tensors, "Q"), "read_bytes") > 0);
    assert_true(count(item(tensors, "O"), "written_bytes") > 0);
    assert_true(count(flops, "matrix") > 0 && count(flops, "exp") > 0);
    count(flops, "other");
}

/* Runs the command and gives its JSON, checked; cJSON_Delete() it. */
static cJSON *json_of(const struct workplace *place, const char *arguments)
{
    struct tool_run run;
    tool_run(&run, place, "%s --json", arguments);
    if (run.status != 0 || *run.err)
        fail_msg("%s: exit status %d: %s", arguments, run.status, run.err);
    const char *end;
    cJSON *json = cJSON_ParseWithOpts(run.out, &end, false);
    if (!json || strcmp(end, "\n") != 0)
        fail_msg("%s: not one JSON object and a newline: %s", arguments, run.out);
    tool_run_free(&run);
    check_account(item(json, "simulated"));
    check_account(item(json, "predicted"));
    assert_true(cJSON_Compare(item(json, "simulated"), item(json, "predicted"), true));
    assert_true(cJSON_IsTrue(item(json, "equal")));
    assert_true(cJSON_IsString(item(json, "algorithm")));
    assert_true(cJSON_IsObject(item(json, "options")));
    return json;
}

static const char *const algorithms[] = {"naive", "standard", "flash1", "flash2"};

static void test_traffic(void **state)
{
    for (size_t i = 0; i < LENGTH(algorithms); i++) {
        char arguments[400];
        snprintf(arguments, sizeof arguments,
                 "traffic --algorithm %s --batch 2 --heads-q 6 --heads-kv 3 --seqlen-q 130 "
                 "--seqlen-k 200 --head-dim 32 --head-dim-v 48 --dtype bf16 --mask causal "
                 "--scale 0.25 --block-q 32 --block-k 16 --machine a100-40gb",
                 algorithms[i]);
        cJSON *json = json_of(*state, arguments);
        const cJSON *o = item(json, "options");
        assert_string_equal(item(json, "algorithm")->valuestring, algorithms[i]);
        static const struct {
            const char *key;
            double value;
        } numbers[] = {
            {"batch", 2},      {"heads_q", 6},   {"heads_kv", 3},    {"seqlen_q", 130},
            {"seqlen_k", 200}, {"head_dim", 32}, {"head_dim_v", 48}, {"scale", 0.25},
            {"block_q", 32},   {"block_k", 16},
        };
        for (size_t n = 0; n < LENGTH(numbers); n++)
            assert_true(item(o, numbers[n].key)->valuedouble == numbers[n].value);
        assert_string_equal(item(o, "mask")->valuestring, "causal");
        assert_string_equal(item(o, "dtype")->valuestring, "bf16");
        assert_string_equal(item(o, "machine")->valuestring, "A100-40GB");
        assert_true(cJSON_IsFalse(item(o, "tma")) && cJSON_IsFalse(item(o, "tiled_gemm")));
        cJSON_Delete(json);
    }
}

/* Options that were not given follow others, or are the documented defaults. */
static void test_defaults(void **state)
{
    cJSON *json = json_of(*state, "traffic --seqlen-q 100 --heads-q 4 --head-dim 16 --tma");
    const cJSON *o = item(json, "options");
    assert_string_equal(item(json, "algorithm")->valuestring, "flash2");
    assert_true(count(o, "seqlen_k") == 100 && count(o, "heads_kv") == 4);
    assert_true(count(o, "head_dim_v") == 16 && item(o, "scale")->valuedouble == 0.25);
    assert_true(count(o, "batch") == 1 && count(o, "block_q") == 64);
    assert_string_equal(item(o, "machine")->valuestring, "H200");
    assert_true(cJSON_IsTrue(item(o, "tma")));
    cJSON_Delete(json);
}

/* 4 heads of 512 rows of 64 floats: Q, K and V are read once from DRAM, and O and LSE stay in
 * L2. Without --dram nothing is said of it. */
static void test_dram(void **state)
{
    const double tensor = 4 * 512 * 64 * 4, lse = 4 * 512 * 4;
    cJSON *json = json_of(*state, "traffic --dram --heads-q 4 --seqlen 512");
    const cJSON *launches = item(json, "dram"), *launch = cJSON_GetArrayItem(launches, 0);
    assert_int_equal(cJSON_GetArraySize(launches), 1);
    assert_string_equal(item(launch, "launch")->valuestring, "flash2_forward");
    assert_true(count(launch, "read_bytes") == 3 * tensor);
    assert_true(count(launch, "written_bytes") == 0);
    assert_true(count(launch, "dirty_bytes") == tensor + lse);
    const double hits = item(launch, "l2_hit_rate")->valuedouble;
    const double asked = count(item(json, "simulated"), "read_bytes");
    assert_true(fabs((1 - hits) * asked - 3 * tensor) < 1); /* the rest came from DRAM */
    cJSON_Delete(json);
    json = json_of(*state, "traffic --dram --tma --algorithm standard --seqlen 128");
    assert_int_equal(cJSON_GetArraySize(item(json, "dram")), 3);
    cJSON_Delete(json);
    json = json_of(*state, "traffic --seqlen 128");
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "dram"));
    cJSON_Delete(json);
}

static void test_attention_says_what_traffic_says(void **state)
{
    const struct workplace *place = *state;
    write_array(place, &(struct array_file){"q.npy", "<f4", false, 3, {4, 70, 24}, 1});
    write_array(place, &(struct array_file){"k.npy", "<f4", true, 3, {2, 50, 24}, 1000});
    write_array(place, &(struct array_file){"v.npy", "<f4", false, 3, {2, 50, 40}, 3000});
    for (size_t i = 0; i < LENGTH(algorithms); i++) {
        char arguments[400];
        snprintf(arguments, sizeof arguments,
                 "attention --algorithm %s --q q.npy --k k.npy --v v.npy --out out --dtype f16 "
                 "--mask causal-top-left --block-q 16",
                 algorithms[i]);
        cJSON *attention = json_of(place, arguments);
        snprintf(arguments, sizeof arguments,
                 "traffic --algorithm %s --heads-q 4 --heads-kv 2 --seqlen-q 70 --seqlen-k 50 "
                 "--head-dim 24 --head-dim-v 40 --dtype f16 --mask causal-top-left "
                 "--block-q 16",
                 algorithms[i]);
        cJSON *traffic = json_of(place, arguments);
        assert_true(cJSON_Compare(attention, traffic, true));
        cJSON_Delete(attention);
        cJSON_Delete(traffic);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, workplace_make, workplace_remove)
    const struct CMUnitTest tests[] = {
        TEST(test_traffic),
        TEST(test_defaults),
        TEST(test_dram),
        TEST(test_attention_says_what_traffic_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
