/* The one shape of every lesson: question, prediction, experiment, verdicts, what to try next.
 *
 * Interface:
 *   struct lesson lesson;
 *   lesson_begin(&lesson, &usage, &options, "the question");
 *   lesson_say(&lesson, ...)                 prose and tables; silent with --json
 *   lesson_claim_count(&lesson, ...)         one verdict line a claim
 *   return lesson_end(&lesson, "what to try next");      the exit status
 *
 * A claim holds or fails; both numbers are printed. Output fits 80 columns.
 */
#ifndef FLASHLAB_LESSONS_LESSON_H
#define FLASHLAB_LESSONS_LESSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"

struct lesson {
    const struct usage *usage;
    const struct options *options;
    int claims, failed;
    cJSON *json; /* NULL without --json */
};

/* Refuses, before anything is printed, what a lesson would trip over half-way: tiles that do
 * not fit on chip. */
enum status lesson_check(const struct options *options, struct error *error);

void lesson_begin(struct lesson *l, const struct usage *usage, const struct options *options,
                  const char *question);

/* A heading: "2. Prediction". */
void lesson_section(struct lesson *l, const char *heading);

/* Text, as printf. */
void lesson_say(struct lesson *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Predicted and simulated whole numbers must be equal. */
void lesson_claim_count(struct lesson *l, const char *claim, const char *unit,
                        int64_t predicted, int64_t simulated);

/* So must simulated and measured ones. side: "measured", or where else they are from. */
void lesson_claim_same(struct lesson *l, const char *claim, const char *unit, const char *side,
                       int64_t simulated, int64_t measured);

/* Two whole numbers, each under its name, must be equal. */
struct side {
    const char *name; /* "predicted", "measured", "CPU" */
    int64_t count;
};
void lesson_claim_sides(struct lesson *l, const char *claim, const char *unit,
                        const struct side *left, const struct side *right);

/* Ratios of whole numbers, each computed in double: equal up to its rounding. */
void lesson_claim_ratio(struct lesson *l, const char *claim, double predicted,
                        double simulated);

/* Predicted, simulated and measured whole numbers must be equal. One line, a row of a table. */
void lesson_claim_measured(struct lesson *l, const char *claim, int64_t predicted,
                           int64_t simulated, int64_t measured);

/* A number that a source prints must be what the simulator gives, to the printed digits. */
void lesson_claim_printed(struct lesson *l, const char *claim, const char *source,
                          const char *printed, const char *simulated);

/* An error must not exceed a bound. NaN fails. */
void lesson_claim_error(struct lesson *l, const char *claim, double bound, double error);

/* What the lesson judges by a criterion that the claim states; format, as printf: the numbers
 * that it was judged by, at most 70 columns. */
void lesson_claim_judged(struct lesson *l, const char *claim, bool holds, const char *format,
                         ...) __attribute__((format(printf, 4, 5)));

/* A number, not negative, must not exceed a bound. NaN fails. */
void lesson_claim_most(struct lesson *l, const char *claim, const char *unit, double most,
                       double found);

/* For an error half-way: prints it, and gives the exit status. */
int lesson_abandon(struct lesson *l, const struct error *error);

/* Prints what to try next and the total; gives the exit status. */
int lesson_end(struct lesson *l, const char *next);

#endif
