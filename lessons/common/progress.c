#include "common/progress.h"

#include <stdio.h>
#include <unistd.h>

static void show(void *context, const char *launch, int64_t done, int64_t total)
{
    (void)context;
    fprintf(stderr, "\r%-20s %3d%% of %lld thread blocks", launch,
            (int)(100.0 * (double)done / (double)total), (long long)total);
}

void progress_show(struct simulation *s)
{
    if (isatty(STDERR_FILENO))
        s->progress = show;
}

void progress_on_cpu(const char *kernel)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%.40s on this CPU ...", kernel);
}

void progress_end(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%60s\r", "");
}
