#include "common/roofline_figure.h"

static const double LEAST = 0.05, MOST = 5000; /* FLOPs a byte */

void roofline_figure_header(FILE *csv)
{
    fprintf(csv, "panel,series,label,flop_per_byte,l2_flop_per_byte,tflops,measured_tflops\n");
}

static void ceiling_point(FILE *csv, const char *panel, const char *label, double intensity,
                          double flops)
{
    fprintf(csv, "%s,ceiling,%s,%.6g,NaN,%.6g,NaN\n", panel, label, intensity, flops / 1e12);
}

void roofline_figure_ceilings(FILE *csv, const struct machine *machine, enum roofline_unit unit)
{
    const char *panel = roofline_unit_name(unit);
    const double peak = roofline_peak(machine, unit);
    double first = MOST; /* where the compute ceiling begins */
    char label[64];
    for (int i = 0; i < ROOFLINE_LEVELS; i++) {
        const enum roofline_level level = (enum roofline_level)i;
        const double bandwidth = roofline_bandwidth(machine, level);
        const double ridge = roofline_ridge(machine, unit, level);
        if (bandwidth <= 0)
            continue;
        snprintf(label, sizeof label, "%s %.3g TB/s", roofline_level_name(level),
                 bandwidth / 1e12);
        ceiling_point(csv, panel, label, LEAST, LEAST * bandwidth);
        ceiling_point(csv, panel, label, ridge, peak);
        first = ridge < first ? ridge : first;
    }
    snprintf(label, sizeof label, "%s %s %.3g TFLOP/s", machine->name, panel, peak / 1e12);
    ceiling_point(csv, panel, label, first, peak);
    ceiling_point(csv, panel, label, MOST, peak);
}

void roofline_figure_kernel(FILE *csv, const char *label, const struct roofline_point *point,
                            double seconds, double measured)
{
    fprintf(csv, "%s,kernel,%s,%.6g,%.6g,%.6g,", roofline_unit_name(point->unit), label,
            roofline_intensity(point, ROOFLINE_HBM), roofline_intensity(point, ROOFLINE_L2),
            point->flops / seconds / 1e12);
    if (measured > 0)
        fprintf(csv, "%.6g\n", point->flops / measured / 1e12);
    else
        fprintf(csv, "NaN\n");
}
