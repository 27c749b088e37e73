/* flashlab traffic: what an algorithm moves for a shape, counted and predicted. */
#include "common/options.h"
#include "common/progress.h"
#include "common/report.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab traffic",
    .summary =
        "Counts the HBM traffic of one attention forward pass, without data, and compares "
        "it\nwith the closed form.",
    .options = RUN_OPTIONS | OPTION_BIT(OPTION_DTYPE) | OPTION_BIT(OPTION_TILED_GEMM) |
               OPTION_BIT(OPTION_TMA) | OPTION_BIT(OPTION_MACHINE) | OPTION_BIT(OPTION_JSON),
};

int flashlab_traffic(int argc, char **argv)
{
    struct options o;
    struct error error = {0};
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    progress_show(&o.simulation);
    const enum status status = attention_count(&o.simulation, &error);
    progress_end();
    if (status)
        return usage_error(&usage, &error);
    return exit_status(&usage, report(&o.simulation, o.json) ? EXIT_OK : EXIT_CLAIM_FAILED);
}
