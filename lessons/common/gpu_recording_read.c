/* Recordings: reading. The first thing wrong is kept and everything after it is skipped: every
 * read_...() gives a value that can be used, so callers look at the end whether all went well.
 */
#include "common/gpu_recording.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_file.h"

enum { MOST_BYTES = 16 << 20 };

/* The most that a JSON number holds exactly. */
static const double MOST_WHOLE = 9007199254740992.0;
/* FLT_MAX as nine digits write it; as a float it is FLT_MAX again. */
static const double MOST_FLOAT = 3.40282347e+38;

struct reader {
    const char *path;
    char where[32]; /* in front of keys in messages: "launches[1]." */
    bool failed;
    struct error *error;
};

/* "rec.json: launches[1].load_sectors: -7, a whole number from 0 is needed". found NULL: the
 * key is not there. */
static void refuse(struct reader *r, const char *key, const cJSON *found, const char *needed)
{
    char text[QUOTED_LENGTH] = "missing";
    if (r->failed)
        return;
    r->failed = true;
    if (cJSON_IsString(found))
        text_quote(text, found->valuestring);
    else if (cJSON_IsNumber(found))
        snprintf(text, sizeof text, "%.17g", found->valuedouble);
    else if (cJSON_IsArray(found))
        snprintf(text, sizeof text, "an array of %d", cJSON_GetArraySize(found));
    else if (found)
        strcpy(text, cJSON_IsObject(found) ? "an object"
                     : cJSON_IsNull(found) ? "null"
                     : cJSON_IsTrue(found) ? "true"
                                           : "false");
    error_format(r->error, STATUS_BAD_FILE, "%s: %s%s: %s, %s is needed", r->path, r->where,
                 key, text, needed);
}

static const cJSON *find(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const cJSON *read_object(struct reader *r, const cJSON *object, const char *key)
{
    const cJSON *item = find(object, key);
    if (!cJSON_IsObject(item))
        refuse(r, key, item, "an object");
    return item;
}

static const cJSON *read_array(struct reader *r, const cJSON *object, const char *key)
{
    const cJSON *item = find(object, key);
    if (!cJSON_IsArray(item))
        refuse(r, key, item, "an array");
    return item;
}

static double read_number(struct reader *r, const cJSON *object, const char *key, double low,
                          double high, bool whole)
{
    char needed[96];
    const cJSON *item = find(object, key);
    const double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (value >= low && value <= high && (!whole || value == floor(value)))
        return value;
    snprintf(needed, sizeof needed, "a %snumber from %.16g to %.16g", whole ? "whole " : "",
             low, high);
    refuse(r, key, item, needed);
    return low;
}

static int64_t read_whole(struct reader *r, const cJSON *object, const char *key, double low)
{
    return (int64_t)read_number(r, object, key, low, MOST_WHOLE, true);
}

static int read_int(struct reader *r, const cJSON *object, const char *key, int low, int high)
{
    return (int)read_number(r, object, key, low, high, true);
}

/* Whatever the key's string; empty if there is none. */
static const char *read_string(struct reader *r, const cJSON *object, const char *key,
                               const char *needed)
{
    const cJSON *item = find(object, key);
    if (cJSON_IsString(item))
        return item->valuestring;
    refuse(r, key, item, needed);
    return "";
}

/* Copies a string that has to fit. */
static void read_text(struct reader *r, const cJSON *object, const char *key, char *to,
                      size_t size)
{
    char needed[64];
    snprintf(needed, sizeof needed, "a string of at most %zu bytes", size - 1);
    const char *text = read_string(r, object, key, needed);
    if (strlen(text) < size)
        strcpy(to, text);
    else
        refuse(r, key, find(object, key), needed);
}

/* A name of a kernel or step: one that needs no escapes, for trace_write_json() writes none. */
static const char *read_name(struct reader *r, const cJSON *object, const char *key)
{
    static const char needed[] = "a name of printable ASCII without \" and \\";
    const char *name = read_string(r, object, key, needed);
    for (const char *c = name; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            refuse(r, key, find(object, key), needed);
    return name;
}

/* "9.0": two whole numbers as they are written, the second of at most most. */
static void read_version(struct reader *r, const cJSON *object, const char *key, int *major,
                         int *minor, int most)
{
    static const char needed[] = "a version like \"9.0\"";
    char again[32] = "";
    const char *text = read_string(r, object, key, needed);
    if (sscanf(text, "%4d.%2d", major, minor) == 2)
        snprintf(again, sizeof again, "%d.%d", *major, *minor);
    if (strcmp(text, again) != 0 || !*again || *major < 0 || *minor < 0 || *minor > most)
        refuse(r, key, find(object, key), needed);
}

static void read_date(struct reader *r, const cJSON *object, struct gpu_recording *recording)
{
    static const char needed[] = "a date like \"2026-11-30\"", pattern[] = "dddd-dd-dd";
    const char *text = read_string(r, object, "date", needed);
    bool good = strlen(text) == sizeof pattern - 1;
    for (size_t i = 0; good && i < sizeof pattern - 1; i++)
        good = pattern[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == pattern[i];
    if (good)
        strcpy(recording->date, text);
    else
        refuse(r, "date", find(object, "date"), needed);
}

static void read_problem(struct reader *r, const cJSON *json, struct gpu_recording *recording)
{
    struct attention *a = &recording->attention;
    static const char algorithms[] = "naive, standard, flash1 or flash2",
                      masks[] = "none, causal or causal-top-left",
                      dtypes[] = "f32, f16, bf16, e4m3 or e5m2";
    if (!algorithm_parse(&recording->algorithm, read_string(r, json, "algorithm", algorithms)))
        refuse(r, "algorithm", find(json, "algorithm"), algorithms);
    const cJSON *o = read_object(r, json, "options");
    strcpy(r->where, "options.");
    a->batch = read_int(r, o, "batch", 1, ATTENTION_MOST);
    a->heads_q = read_int(r, o, "heads_q", 1, ATTENTION_MOST);
    a->heads_kv = read_int(r, o, "heads_kv", 1, ATTENTION_MOST);
    a->seqlen_q = read_int(r, o, "seqlen_q", 1, ATTENTION_MOST);
    a->seqlen_k = read_int(r, o, "seqlen_k", 1, ATTENTION_MOST);
    a->head_dim = read_int(r, o, "head_dim", 1, ATTENTION_MOST_IN_TILE);
    a->head_dim_v = read_int(r, o, "head_dim_v", 1, ATTENTION_MOST_IN_TILE);
    a->block_q = read_int(r, o, "block_q", 1, ATTENTION_MOST_IN_TILE);
    a->block_k = read_int(r, o, "block_k", 1, ATTENTION_MOST_IN_TILE);
    a->scale = (float)read_number(r, o, "scale", -MOST_FLOAT, MOST_FLOAT, false);
    if (!mask_parse(&a->mask, read_string(r, o, "mask", masks)))
        refuse(r, "mask", find(o, "mask"), masks);
    if (!dtype_parse(&a->dtype, read_string(r, o, "dtype", dtypes)))
        refuse(r, "dtype", find(o, "dtype"), dtypes);
    if (!cJSON_IsBool(find(o, "tiled_gemm")))
        refuse(r, "tiled_gemm", find(o, "tiled_gemm"), "true or false");
    a->tiled_gemm = cJSON_IsTrue(find(o, "tiled_gemm"));
    struct error wrong;
    if (!r->failed && attention_check(a, &wrong)) {
        r->failed = true;
        error_format(r->error, STATUS_BAD_FILE, "%s: options: %s", r->path, wrong.text);
    }
    *r->where = '\0';
}

/* count: the elements that the problem's result has. */
static void read_summary(struct reader *r, const cJSON *results, const char *key,
                         struct result_summary *s, int64_t count)
{
    const cJSON *item = read_object(r, results, key);
    const double most = DBL_MAX;
    char needed[64];
    snprintf(r->where, sizeof r->where, "results.%s.", key);
    s->count = read_whole(r, item, "count", 0);
    snprintf(needed, sizeof needed, "%lld, what the shape has,", (long long)count);
    if (s->count != count)
        refuse(r, "count", find(item, "count"), needed);
    s->nonfinite = (int64_t)read_number(r, item, "nonfinite", 0, (double)s->count, true);
    s->sum = read_number(r, item, "sum", -most, most, false);
    s->norm = read_number(r, item, "norm", 0, most, false);
    const cJSON *projections = read_array(r, item, "projections");
    bool good = cJSON_GetArraySize(projections) == PROJECTIONS;
    for (int k = 0; good && k < PROJECTIONS; k++) {
        const cJSON *value = cJSON_GetArrayItem(projections, k);
        good = cJSON_IsNumber(value) && isfinite(value->valuedouble);
        s->projection[k] = good ? value->valuedouble : 0.0;
    }
    snprintf(needed, sizeof needed, "an array of %d numbers", PROJECTIONS);
    if (!good)
        refuse(r, "projections", projections, needed);
    strcpy(r->where, "results.");
}

static void read_results(struct reader *r, const cJSON *json, struct gpu_recording *recording)
{
    const cJSON *results = read_object(r, json, "results");
    const struct attention *a = &recording->attention;
    if (r->failed) /* the shape may not be one */
        return;
    const int64_t rows = (int64_t)attention_planes_q(a) * a->seqlen_q;
    strcpy(r->where, "results.");
    read_summary(r, results, "o", &recording->o, rows * a->head_dim_v);
    read_summary(r, results, "lse", &recording->lse, rows);
    *r->where = '\0';
}

/* Recordings may lack all counters of a group, made when they were not yet read; one alone is
 * misspelt. */
static bool may_lack(const cJSON *launch, int counter)
{
    static const struct {
        enum counter first, last;
    } groups[] = {{COUNTER_SHARED_LOAD_INSTRUCTIONS, COUNTER_SHARED_STORE_WAVEFRONTS},
                  {COUNTER_MATRIX_LOAD_INSTRUCTIONS, COUNTER_MATRIX_LOAD_WAVEFRONTS}};
    bool lacking = false;
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        const int first = groups[g].first, last = groups[g].last;
        bool none = counter >= first && counter <= last;
        for (int c = first; none && c <= last; c++)
            none = !find(launch, counter_name((enum counter)c));
        lacking = lacking || none;
    }
    return lacking;
}

static void read_launch(struct reader *r, const cJSON *item, struct observed_launch *launch)
{
    read_text(r, item, "kernel", launch->kernel, sizeof launch->kernel);
    read_name(r, item, "kernel");
    for (int c = 0; c < COUNTER_COUNT; c++) {
        const char *key = counter_name((enum counter)c);
        const cJSON *value = find(item, key);
        if (may_lack(item, c) || (cJSON_IsNumber(value) && value->valuedouble == -1))
            launch->of[c] = -1; /* not counted */
        else
            launch->of[c] = read_number(r, item, key, 0, MOST_WHOLE, c != COUNTER_DURATION_NS);
    }
}

static void read_launches(struct reader *r, const cJSON *json, struct observation *seen)
{
    const cJSON *launches = read_array(r, json, "launches"), *item;
    char needed[64];
    snprintf(needed, sizeof needed, "an array of at most %d launches", MAX_OBSERVED_LAUNCHES);
    if (cJSON_GetArraySize(launches) > MAX_OBSERVED_LAUNCHES)
        refuse(r, "launches", launches, needed);
    if (r->failed)
        return;
    cJSON_ArrayForEach(item, launches)
    {
        snprintf(r->where, sizeof r->where, "launches[%d].", seen->launches);
        read_launch(r, item, &seen->launch[seen->launches++]);
    }
    *r->where = '\0';
}

/* One of m, l and o_norm into values[rows]. */
static void read_rows(struct reader *r, const cJSON *step, const char *key, float *values,
                      int rows)
{
    const cJSON *array = read_array(r, step, key), *item;
    int i = 0;
    if (cJSON_GetArraySize(array) != rows) {
        refuse(r, key, array, "an array of as many numbers as m has");
        return;
    }
    cJSON_ArrayForEach(item, array)
    {
        const char *text = cJSON_IsString(item) ? item->valuestring : "";
        const bool number = cJSON_IsNumber(item) && fabs(item->valuedouble) <= MOST_FLOAT;
        if (!number && strcmp(text, "inf") != 0 && strcmp(text, "-inf") != 0 &&
            strcmp(text, "nan") != 0)
            refuse(r, key, item, "a number of fp32, \"inf\", \"-inf\" or \"nan\"");
        values[i++] = number         ? (float)item->valuedouble
                      : *text == 'n' ? NAN
                      : *text == '-' ? -INFINITY
                                     : INFINITY;
    }
}

static void read_step(struct reader *r, const cJSON *item, struct step_log *steps)
{
    struct step_record record = {.kernel = read_name(r, item, "kernel"),
                                 .i = read_int(r, item, "i", -1, INT_MAX),
                                 .j = read_int(r, item, "j", -1, INT_MAX),
                                 .step = read_name(r, item, "step"),
                                 .read_bytes = read_whole(r, item, "read_bytes", 0),
                                 .written_bytes = read_whole(r, item, "written_bytes", 0),
                                 .reduced_bytes = read_whole(r, item, "reduced_bytes", 0)};
    const cJSON *block = read_array(r, item, "block");
    bool good = cJSON_GetArraySize(block) == 3;
    for (int k = 0; good && k < 3; k++) {
        const cJSON *value = cJSON_GetArrayItem(block, k);
        good = cJSON_IsNumber(value) && value->valuedouble == value->valueint &&
               value->valueint >= 0;
        record.block[k] = value->valueint;
    }
    if (!good)
        refuse(r, "block", block, "an array of 3 whole numbers from 0");
    float *rows = NULL;
    if (find(item, "m") || find(item, "l") || find(item, "o_norm")) {
        record.rows = cJSON_GetArraySize(find(item, "m"));
        rows = calloc(3, ((size_t)record.rows + 1) * sizeof *rows);
        CHECK(rows, "no host memory for the rows of a step");
        record.m = rows;
        record.l = rows + record.rows;
        record.o_norm = record.l + record.rows;
        read_rows(r, item, "m", record.m, record.rows);
        read_rows(r, item, "l", record.l, record.rows);
        read_rows(r, item, "o_norm", record.o_norm, record.rows);
    }
    if (!r->failed)
        step_log_add(steps, &record);
    free(rows);
}

static void read_steps(struct reader *r, const cJSON *json, struct step_log *steps)
{
    const cJSON *array = read_array(r, json, "steps"), *item;
    if (r->failed)
        return;
    cJSON_ArrayForEach(item, array)
    {
        snprintf(r->where, sizeof r->where, "steps[%lld].", (long long)steps->count);
        read_step(r, item, steps);
        if (r->failed)
            return;
    }
    *r->where = '\0';
}

static void read_recording(struct reader *r, const cJSON *json, struct gpu_recording *recording)
{
    struct observation *seen = &recording->seen;
    const cJSON *version = find(json, "flashlab_recording");
    int major = 0, minor = 0;
    if (!cJSON_IsNumber(version) || version->valuedouble != 1)
        refuse(r, "flashlab_recording", version, "1");
    read_date(r, json, recording);
    read_text(r, json, "command", recording->command, sizeof recording->command);
    read_text(r, json, "gpu", seen->gpu, sizeof seen->gpu);
    read_text(r, json, "driver", seen->driver, sizeof seen->driver);
    read_version(r, json, "compute_capability", &seen->compute_major, &seen->compute_minor, 99);
    read_version(r, json, "cuda", &major, &minor, 99);
    seen->cuda_version = 1000 * major + 10 * minor;
    read_problem(r, json, recording);
    recording->seed = (uint64_t)read_whole(r, json, "seed", 0);
    read_results(r, json, recording);
    read_launches(r, json, seen);
    if (find(json, "uncounted"))
        read_text(r, json, "uncounted", seen->uncounted, sizeof seen->uncounted);
    read_steps(r, json, &seen->steps);
}

enum status gpu_recording_read(struct gpu_recording *recording, const char *path,
                               struct error *error)
{
    char *text;
    const char *end = NULL;
    *recording = (struct gpu_recording){0};
    if (text_file_read(&text, path, MOST_BYTES, error))
        return error->status;
    struct reader r = {.path = path, .error = error};
    cJSON *json = cJSON_ParseWithOpts(text, &end, 1);
    if (json) {
        read_recording(&r, json, recording);
    } else {
        int line = 1;
        for (const char *c = text; c < end; c++)
            line += *c == '\n';
        r.failed = true;
        error_format(error, STATUS_BAD_FILE, "%s: line %d: this is not JSON", path, line);
    }
    cJSON_Delete(json);
    free(text);
    if (!r.failed)
        return STATUS_OK;
    gpu_recording_free(recording);
    return error->status;
}
