/* flashlab counters: the hardware counters that are read, for whoever asks a profiler for them.
 */
#include <stdio.h>

#include "common/options.h"
#include "cuda/counter_names.h"
#include "flashlab.h"

static const struct usage usage = {
    .program = "flashlab counters",
    .summary = "Lists the hardware counters that are read on a GPU, and the profilers' names.",
    .options = 0,
};

int flashlab_counters(int argc, char **argv)
{
    struct options o;
    options_init(&o);
    const enum options_result result = options_parse(&o, &usage, argc, argv);
    if (result != OPTIONS_RUN)
        return options_exit_status(result);
    for (int k = 0; k < COUNTER_COUNT; k++)
        printf("%-25s %s\n", counter_name((enum counter)k), counter_metric((enum counter)k));
    return exit_status(&usage, EXIT_OK);
}
