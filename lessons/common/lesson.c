#include "common/lesson.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/report.h"

enum status lesson_check(const struct options *options, struct error *error)
{
    for (int i = 0; i <= ALGORITHM_COUNT; i++) {
        struct simulation s = options->simulation;
        s.algorithm = i < ALGORITHM_COUNT ? (enum algorithm)i : ALGORITHM_STANDARD;
        s.attention.tiled_gemm = i == ALGORITHM_COUNT;
        if (attention_count(&s, error))
            return error->status;
    }
    return STATUS_OK;
}

/* The problem: of attention, or the extents that the lesson has options for. */
static void add_options(cJSON *json, const struct usage *usage, const struct options *o)
{
    const struct {
        enum option_id id;
        int value;
    } extents[] = {{OPTION_SEQLEN, o->simulation.attention.seqlen_q},
                   {OPTION_ROWS, o->rows},
                   {OPTION_COLS, o->cols},
                   {OPTION_DEPTH, o->depth},
                   {OPTION_TILE, o->tile}};
    if (usage->options & OPTION_BIT(OPTION_HEAD_DIM)) {
        report_add_options(json, &o->simulation);
        return;
    }
    cJSON *object = cJSON_AddObjectToObject(json, "options");
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
        if (usage->options & OPTION_BIT(extents[i].id))
            report_add_integer(object, option_name(extents[i].id), extents[i].value);
    cJSON_AddStringToObject(object, "machine", o->simulation.machine->name);
}

void lesson_begin(struct lesson *l, const struct usage *usage, const struct options *options,
                  const char *question)
{
    *l = (struct lesson){.usage = usage, .options = options};
    if (options->json) {
        l->json = cJSON_CreateObject();
        cJSON_AddStringToObject(l->json, "lesson", usage->program);
        cJSON_AddStringToObject(l->json, "question", question);
        add_options(l->json, usage, options);
        cJSON_AddArrayToObject(l->json, "claims");
    }
    lesson_say(l, "%s\n\n%s\n", usage->summary, question);
}

void lesson_section(struct lesson *l, const char *heading)
{
    lesson_say(l, "\n%s\n\n", heading);
}

void lesson_say(struct lesson *l, const char *format, ...)
{
    va_list args;
    if (l->json)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

/* Counts the claim, prints its verdict, and gives its JSON object (NULL without --json). */
static cJSON *verdict(struct lesson *l, const char *claim, bool holds)
{
    l->claims++;
    l->failed += !holds;
    lesson_say(l, "%s  %s\n", holds ? "PASS" : "FAIL", claim);
    if (!l->json)
        return NULL;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_GetObjectItem(l->json, "claims"), object);
    cJSON_AddStringToObject(object, "claim", claim);
    cJSON_AddBoolToObject(object, "holds", holds);
    return object;
}

static void add_count(cJSON *object, const char *key, int64_t value)
{
    if (object)
        report_add_integer(object, key, value);
}

static void add_number(cJSON *object, const char *key, double value)
{
    if (object)
        cJSON_AddNumberToObject(object, key, value);
}

void lesson_claim_count(struct lesson *l, const char *claim, const char *unit,
                        int64_t predicted, int64_t simulated)
{
    char a[32], b[32];
    cJSON *object = verdict(l, claim, predicted == simulated);
    lesson_say(l, "      predicted %s  simulated %s  %s\n", report_grouped(a, predicted),
               report_grouped(b, simulated), unit);
    add_count(object, "predicted", predicted);
    add_count(object, "simulated", simulated);
}

void lesson_claim_same(struct lesson *l, const char *claim, const char *unit, const char *side,
                       int64_t simulated, int64_t measured)
{
    char a[32], b[32];
    cJSON *object = verdict(l, claim, simulated == measured);
    lesson_say(l, "      simulated %s  %s %s  %s\n", report_grouped(a, simulated), side,
               report_grouped(b, measured), unit);
    add_count(object, "simulated", simulated);
    add_count(object, "measured", measured);
}

void lesson_claim_sides(struct lesson *l, const char *claim, const char *unit,
                        const struct side *left, const struct side *right)
{
    char a[32], b[32];
    cJSON *object = verdict(l, claim, left->count == right->count);
    lesson_say(l, "      %s %s  %s %s  %s\n", left->name, report_grouped(a, left->count),
               right->name, report_grouped(b, right->count), unit);
    add_count(object, left->name, left->count);
    add_count(object, right->name, right->count);
}

void lesson_claim_measured(struct lesson *l, const char *claim, int64_t predicted,
                           int64_t simulated, int64_t measured)
{
    char a[32], b[32], c[32], line[128];
    snprintf(line, sizeof line, "%-28s %14s %14s %14s", claim, report_grouped(a, predicted),
             report_grouped(b, simulated), report_grouped(c, measured));
    cJSON *object =
        verdict(l, l->json ? claim : line, predicted == simulated && simulated == measured);
    add_count(object, "predicted", predicted);
    add_count(object, "simulated", simulated);
    add_count(object, "measured", measured);
}

void lesson_claim_printed(struct lesson *l, const char *claim, const char *source,
                          const char *printed, const char *simulated)
{
    cJSON *object = verdict(l, claim, strcmp(printed, simulated) == 0);
    lesson_say(l, "      %s %s  simulated %s\n", source, printed, simulated);
    if (object) {
        cJSON_AddStringToObject(object, "printed", printed);
        cJSON_AddStringToObject(object, "simulated", simulated);
    }
}

void lesson_claim_ratio(struct lesson *l, const char *claim, double predicted, double simulated)
{
    /* Both are quotients of exact integers: a few roundings of a double apart, no more. */
    const bool holds = fabs(predicted - simulated) <= 1e-12 * fabs(predicted);
    cJSON *object = verdict(l, claim, holds);
    lesson_say(l, "      predicted %.4f  simulated %.4f\n", predicted, simulated);
    add_number(object, "predicted", predicted);
    add_number(object, "simulated", simulated);
}

void lesson_claim_error(struct lesson *l, const char *claim, double bound, double error)
{
    cJSON *object = verdict(l, claim, error <= bound);
    lesson_say(l, "      largest error %.2e  allowed %.2e\n", error, bound);
    add_number(object, "allowed", bound);
    add_number(object, "error", error);
}

void lesson_claim_judged(struct lesson *l, const char *claim, bool holds, const char *format,
                         ...)
{
    char numbers[160];
    va_list args;
    va_start(args, format);
    vsnprintf(numbers, sizeof numbers, format, args);
    va_end(args);
    cJSON *object = verdict(l, claim, holds);
    lesson_say(l, "      %s\n", numbers);
    if (object)
        cJSON_AddStringToObject(object, "numbers", numbers);
}

void lesson_claim_most(struct lesson *l, const char *claim, const char *unit, double most,
                       double found)
{
    cJSON *object = verdict(l, claim, found <= most);
    lesson_say(l, "      at most %.4g  found %.4g  %s\n", most, found, unit);
    add_number(object, "most", most);
    add_number(object, "found", found);
}

int lesson_abandon(struct lesson *l, const struct error *error)
{
    cJSON_Delete(l->json);
    return usage_error(l->usage, error);
}

int lesson_end(struct lesson *l, const char *next)
{
    lesson_section(l, "What to try next");
    lesson_say(l, "%s\n%d of %d claims hold.\n", next, l->claims - l->failed, l->claims);
    if (l->json) {
        cJSON_AddBoolToObject(l->json, "pass", l->failed == 0);
        report_write_json(l->json);
    }
    return exit_status(l->usage, l->failed == 0 ? EXIT_OK : EXIT_CLAIM_FAILED);
}
