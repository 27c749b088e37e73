#include "common/machine_levels.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

double machine_sram_bytes_per_second(const struct machine *m)
{
    return m->warps_per_sm > 0 ? m->sms * 32.0 * 4.0 * m->clock_hz : 0;
}

double machine_register_bytes_per_second(const struct machine *m)
{
    return m->fp32_flops / 2.0 * 16.0;
}

/* "228 KB", "60 MB", "141 GB": on-chip sizes are powers of two, those of HBM decimal. */
static const char *size_text(char text[16], int64_t bytes, bool decimal)
{
    const double kilo = decimal ? 1e3 : 1024;
    if (bytes <= 0)
        snprintf(text, 16, "unknown");
    else if ((double)bytes < kilo * kilo)
        snprintf(text, 16, "%.4g KB", (double)bytes / kilo);
    else if ((double)bytes < kilo * kilo * kilo)
        snprintf(text, 16, "%.4g MB", (double)bytes / (kilo * kilo));
    else
        snprintf(text, 16, "%.4g GB", (double)bytes / (kilo * kilo * kilo));
    return text;
}

static const char *rate_text(char text[16], double bytes_per_second)
{
    if (bytes_per_second <= 0)
        snprintf(text, 16, "unknown");
    else
        snprintf(text, 16, "%.3g TB/s", bytes_per_second / 1e12);
    return text;
}

char *machine_levels_format(char buffer[MACHINE_LEVELS_SIZE], const struct machine *m)
{
    const struct {
        const char *name, *of;
        int64_t bytes, in_all;
        double rate;
        const char *why;
    } levels[] = {
        {"registers", "SM", m->register_bytes, m->sms * m->register_bytes,
         machine_register_bytes_per_second(m), "16 B a multiply-add"},
        {"SRAM", "SM", m->sram_bytes_per_sm, m->sms * m->sram_bytes_per_sm,
         machine_sram_bytes_per_second(m), "128 B a clock an SM"},
        {"L2", "GPU", m->l2_bytes, m->l2_bytes, 0, "no datasheet says"},
        {"HBM", "GPU", m->hbm_bytes, m->hbm_bytes, m->hbm_bytes_per_second, "datasheet"},
    };
    int used = snprintf(buffer, MACHINE_LEVELS_SIZE, "%-10s %-5s %10s %10s %12s   %s\n",
                        "level", "of a", "size", "in all", "moves", "by");
    for (int i = 0; i < 4; i++) {
        char x[3][16];
        const bool decimal = i == 3;
        used += snprintf(buffer + used, (size_t)(MACHINE_LEVELS_SIZE - used),
                         "%-10s %-5s %10s %10s %12s   %s\n", levels[i].name, levels[i].of,
                         size_text(x[0], levels[i].bytes, decimal),
                         size_text(x[1], levels[i].in_all, decimal),
                         rate_text(x[2], levels[i].rate), levels[i].why);
    }
    return buffer;
}

const struct machine *machine_of_gpu(const char *gpu)
{
    int count;
    const struct machine *table = machine_table(&count);
    for (int n = 0; n < count; n++) {
        const char *found = strstr(gpu, table[n].name);
        if (found && found[strlen(table[n].name)] == '\0')
            return &table[n];
    }
    return NULL;
}
