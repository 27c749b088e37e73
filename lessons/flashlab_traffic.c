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
    .options = OPTION_BIT(OPTION_ALGORITHM) | OPTION_BIT(OPTION_BATCH) |
               OPTION_BIT(OPTION_HEADS_Q) | OPTION_BIT(OPTION_HEADS_KV) |
               OPTION_BIT(OPTION_SEQLEN) | OPTION_BIT(OPTION_SEQLEN_Q) |
               OPTION_BIT(OPTION_SEQLEN_K) | OPTION_BIT(OPTION_HEAD_DIM) |
               OPTION_BIT(OPTION_HEAD_DIM_V) | OPTION_BIT(OPTION_BLOCK_Q) |
               OPTION_BIT(OPTION_BLOCK_K) | OPTION_BIT(OPTION_DTYPE) | OPTION_BIT(OPTION_MASK) |
               OPTION_BIT(OPTION_SCALE) | OPTION_BIT(OPTION_TILED_GEMM) |
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
