/* Recordings: summaries and writing. Reading is in gpu_recording_read.c. */
#include "common/gpu_recording.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* splitmix64: the same numbers on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* What a projection has in place of an element that is not finite, so that one which moves, or
 * becomes another such, changes it: much more than rounding does. */
static double projected(float value)
{
    if (isfinite(value))
        return (double)value;
    return isnan(value) ? 1000.0 : value > 0 ? 3000.0 : -2000.0;
}

/* Products of floats are exact in double and the order is fixed: no machine differs. */
struct result_summary result_summarize(const float *values, size_t count)
{
    struct result_summary s = {.count = (int64_t)count};
    uint64_t state[PROJECTIONS], signs[PROJECTIONS] = {0};
    for (int k = 0; k < PROJECTIONS; k++)
        state[k] = (uint64_t)k + 1;
    for (size_t i = 0; i < count; i++) {
        const double value = projected(values[i]);
        if (isfinite(values[i])) {
            s.sum += value;
            s.norm += value * value;
        } else {
            s.nonfinite++;
        }
        for (int k = 0; k < PROJECTIONS; k++) {
            if (i % 64 == 0)
                signs[k] = next_random(&state[k]);
            s.projection[k] += signs[k] >> i % 64 & 1 ? -value : value;
        }
    }
    s.norm = sqrt(s.norm);
    return s;
}

/* A string with its quotes and escapes. */
static void write_string(FILE *out, const char *text)
{
    cJSON *string = cJSON_CreateString(text);
    char *quoted = string ? cJSON_PrintUnformatted(string) : NULL;
    CHECK(quoted, "no memory to print JSON");
    fputs(quoted, out);
    free(quoted);
    cJSON_Delete(string);
}

/* "key": "text", on a line of its own. */
static void write_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\": ", key);
    write_string(out, text);
    fputs(",\n", out);
}

static void write_options(FILE *out, const struct attention *a)
{
    fprintf(out, "\"options\": {\"batch\": %d, \"heads_q\": %d, \"heads_kv\": %d, ", a->batch,
            a->heads_q, a->heads_kv);
    fprintf(out, "\"seqlen_q\": %d, \"seqlen_k\": %d, \"head_dim\": %d, \"head_dim_v\": %d,\n",
            a->seqlen_q, a->seqlen_k, a->head_dim, a->head_dim_v);
    fprintf(out, "  \"scale\": %.9g, \"mask\": \"%s\", \"dtype\": \"%s\", ", (double)a->scale,
            mask_name(a->mask), dtype_name(a->dtype));
    fprintf(out, "\"block_q\": %d, \"block_k\": %d, \"tiled_gemm\": %s},\n", a->block_q,
            a->block_k, a->tiled_gemm ? "true" : "false");
}

static void write_summary(FILE *out, const char *key, const struct result_summary *s)
{
    fprintf(out,
            "  \"%s\": {\"count\": %" PRId64 ", \"nonfinite\": %" PRId64
            ", \"sum\": %.17g, \"norm\": %.17g,\n    \"projections\": [",
            key, s->count, s->nonfinite, s->sum, s->norm);
    for (int k = 0; k < PROJECTIONS; k++)
        fprintf(out, "%s%.17g", k > 0 ? ", " : "", s->projection[k]);
    fputs("]}", out);
}

static void write_launches(FILE *out, const struct observation *seen)
{
    fputs("\"launches\": [", out);
    for (int i = 0; i < seen->launches; i++) {
        fprintf(out, "%s\n  {\"kernel\": ", i > 0 ? "," : "");
        write_string(out, seen->launch[i].kernel);
        for (int c = 0; c < COUNTER_COUNT; c++)
            fprintf(out, ", \"%s\": %.17g", counter_name((enum counter)c),
                    seen->launch[i].of[c]);
        fputc('}', out);
    }
    fputs("\n],\n", out);
}

bool gpu_recording_write(const struct gpu_recording *recording, FILE *out)
{
    const struct observation *seen = &recording->seen;
    CHECK(recording->seed <= UINT64_C(1) << 53, "seed %" PRIu64 ": JSON numbers end at 2^53",
          recording->seed);
    fputs("{\n\"flashlab_recording\": 1,\n", out);
    write_text(out, "date", recording->date);
    write_text(out, "command", recording->command);
    write_text(out, "gpu", seen->gpu);
    write_text(out, "driver", seen->driver);
    fprintf(out, "\"compute_capability\": \"%d.%d\",\n", seen->compute_major,
            seen->compute_minor);
    fprintf(out, "\"cuda\": \"%d.%d\",\n", seen->cuda_version / 1000,
            seen->cuda_version % 1000 / 10);
    write_text(out, "algorithm", algorithm_name(recording->algorithm));
    write_options(out, &recording->attention);
    fprintf(out, "\"seed\": %" PRIu64 ",\n\"results\": {\n", recording->seed);
    write_summary(out, "o", &recording->o);
    fputs(",\n", out);
    write_summary(out, "lse", &recording->lse);
    fputs("\n},\n", out);
    write_launches(out, seen);
    if (*seen->uncounted)
        write_text(out, "uncounted", seen->uncounted);
    fputs("\"steps\": [\n", out);
    for (int64_t i = 0; i < seen->steps.count; i++) {
        /* In front, for each record ends its line. */
        fputc(i > 0 ? ',' : ' ', out);
        trace_write_json(out, &seen->steps.records[i]);
    }
    fputs("]\n}\n", out);
    return fflush(out) == 0 && !ferror(out);
}

void gpu_recording_free(struct gpu_recording *recording)
{
    observation_free(&recording->seen);
    *recording = (struct gpu_recording){0};
}
