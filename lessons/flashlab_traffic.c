/* flashlab traffic: what an algorithm moves for a shape, counted and predicted; and what of
 * that reaches DRAM, by the model of L2.
 */
#include "common/options.h"
#include "common/progress.h"
#include "common/report.h"
#include "flashlab.h"
#include "models/io.h"

static const struct usage usage = {
    .program = "flashlab traffic",
    .summary =
        "Counts the HBM traffic of one attention forward pass, without data, and compares "
        "it\nwith the closed form.",
    .options = RUN_OPTIONS | OPTION_BIT(OPTION_DTYPE) | OPTION_BIT(OPTION_TILED_GEMM) |
               OPTION_BIT(OPTION_TMA) | OPTION_BIT(OPTION_DRAM) | OPTION_BIT(OPTION_MACHINE) |
               OPTION_BIT(OPTION_JSON),
};

static enum status open_dram(struct l2_traffic *dram, const struct simulation *s,
                             struct error *error)
{
    if (simulation_check(s, error))
        return error->status;
    const struct account account = io_predict(s->algorithm, &s->attention, s->tma);
    const struct traffic total = account_total(&account);
    int64_t sectors = 0;
    for (int k = 0; k < DIRECTION_COUNT; k++)
        sectors += total.of[k].sectors;
    return l2_traffic_init(
        dram, &(struct l2_options){.machine = s->machine, .sample = l2_sample_of(sectors)},
        error);
}

/* dram watches the run; NULL: nothing does. */
static enum status count(struct simulation *s, struct l2_traffic *dram, struct error *error)
{
    s->observer = dram ? &dram->observer : NULL;
    progress_show(s);
    const enum status status = attention_count(s, error);
    progress_end();
    if (dram)
        l2_traffic_finish(dram);
    return status;
}

int flashlab_traffic(int argc, char **argv)
{
    struct options o;
    struct l2_traffic l2, *dram = NULL;
    struct error error = {0};
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    if (o.dram) {
        if (open_dram(&l2, &o.simulation, &error))
            return usage_error(&usage, &error);
        dram = &l2;
    }
    const enum status status = count(&o.simulation, dram, &error);
    const bool equal = status == STATUS_OK && report(&o.simulation, dram, o.json);
    if (dram)
        l2_traffic_free(dram);
    if (status)
        return usage_error(&usage, &error);
    return exit_status(&usage, equal ? EXIT_OK : EXIT_CLAIM_FAILED);
}
