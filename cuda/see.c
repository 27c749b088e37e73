#include "cuda/see.h"

#include <stdio.h>

#include "cuda/counters.h"

enum status see_device(struct observation *seen, struct error *error)
{
    struct device_info info;
    if (device_query(&info, error))
        return error->status;
    snprintf(seen->gpu, sizeof seen->gpu, "%.127s", info.name);
    snprintf(seen->driver, sizeof seen->driver, "%s", info.driver);
    seen->compute_major = info.compute_major;
    seen->compute_minor = info.compute_minor;
    seen->cuda_version = info.runtime_version;
    return STATUS_OK;
}

void see_counters(struct observation *seen, const char *const *kernels, device_work *work,
                  void *context)
{
    struct counter_values values[MAX_OBSERVED_LAUNCHES];
    struct counters *counters;
    struct error error;
    int launches = 0;
    if (counters_open(&counters, &error)) {
        snprintf(seen->uncounted, sizeof seen->uncounted, "%.511s", error.text);
        return;
    }
    if (counters_measure(values, MAX_OBSERVED_LAUNCHES, &launches, counters, work, context,
                         &error)) {
        snprintf(seen->uncounted, sizeof seen->uncounted, "%.511s", error.text);
        launches = 0;
    }
    counters_close(counters);
    seen->launches = launches;
    for (int n = 0; n < launches; n++) {
        CHECK(kernels[n], "launch %d has no name", n);
        snprintf(seen->launch[n].kernel, KERNEL_NAME_LENGTH, "%s", kernels[n]);
        for (int k = 0; k < COUNTER_COUNT; k++)
            seen->launch[n].of[k] = values[n].of[k];
    }
}
