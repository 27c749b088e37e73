#include "core/machine_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEEDED true, false
#define OPTIONAL false, false
#define OR_NONE false, true
#define MOST_COUNT 65536
#define MOST_MEMORY 1e15
#define MOST_ON_CHIP 0x1p30
#define MOST_LINE 65536
#define MOST_HERTZ 1e12
#define MOST_RATE 1e21
#define FIELD(name, type) #name, offsetof(struct machine, name), type

/* clang-format off */
const struct machine_figure_info machine_figures[FIGURE_COUNT] = {
    [FIGURE_SMS] = {"sms", KIND_COUNT, NEEDED, MOST_COUNT,
        FIELD(sms, TYPE_INT)},
    [FIGURE_CLOCK] = {"clock", KIND_HERTZ, OPTIONAL, MOST_HERTZ,
        FIELD(clock_hz, TYPE_DOUBLE)},
    [FIGURE_TENSOR_CLOCK] = {"tensor_clock", KIND_HERTZ, OPTIONAL, MOST_HERTZ,
        FIELD(tensor_clock_hz, TYPE_DOUBLE)},
    [FIGURE_HBM_SIZE] = {"hbm_size", KIND_BYTES, NEEDED, MOST_MEMORY,
        FIELD(hbm_bytes, TYPE_INT64)},
    [FIGURE_HBM_BANDWIDTH] = {"hbm_bandwidth", KIND_BYTES_PER_SECOND, NEEDED, MOST_RATE,
        FIELD(hbm_bytes_per_second, TYPE_DOUBLE)},
    [FIGURE_L2_SIZE] = {"l2_size", KIND_BYTES, NEEDED, MOST_MEMORY,
        FIELD(l2_bytes, TYPE_INT64)},
    [FIGURE_L2_LINE] = {"l2_line", KIND_BYTES, OPTIONAL, MOST_LINE,
        FIELD(l2_line_bytes, TYPE_INT)},
    [FIGURE_L2_SECTOR] = {"l2_sector", KIND_BYTES, OPTIONAL, MOST_LINE,
        FIELD(l2_sector_bytes, TYPE_INT)},
    [FIGURE_L2_PARTITIONS] = {"l2_partitions", KIND_COUNT, OPTIONAL, MOST_COUNT,
        FIELD(l2_partitions, TYPE_INT)},
    [FIGURE_L2_BANDWIDTH] = {"l2_bandwidth", KIND_BYTES_PER_SECOND, OPTIONAL, MOST_RATE,
        FIELD(l2_bytes_per_second, TYPE_DOUBLE)},
    [FIGURE_SRAM_PER_SM] = {"sram_per_sm", KIND_BYTES, NEEDED, MOST_ON_CHIP,
        FIELD(sram_bytes_per_sm, TYPE_INT64)},
    [FIGURE_SRAM_PER_BLOCK] = {"sram_per_block", KIND_BYTES, NEEDED, MOST_ON_CHIP,
        FIELD(sram_bytes_per_block, TYPE_INT64)},
    [FIGURE_REGISTERS_PER_SM] = {"registers_per_sm", KIND_BYTES, NEEDED, MOST_ON_CHIP,
        FIELD(register_bytes, TYPE_INT64)},
    [FIGURE_THREADS_PER_SM] = {"threads_per_sm", KIND_COUNT, OPTIONAL, MOST_COUNT,
        FIELD(threads_per_sm, TYPE_INT)},
    [FIGURE_WARPS_PER_SM] = {"warps_per_sm", KIND_COUNT, OPTIONAL, MOST_COUNT,
        FIELD(warps_per_sm, TYPE_INT)},
    [FIGURE_BLOCKS_PER_SM] = {"blocks_per_sm", KIND_COUNT, OPTIONAL, MOST_COUNT,
        FIELD(blocks_per_sm, TYPE_INT)},
    [FIGURE_THREADS_PER_BLOCK] = {"threads_per_block", KIND_COUNT, OPTIONAL, MOST_COUNT,
        FIELD(threads_per_block, TYPE_INT)},
    [FIGURE_TENSOR_F16] = {"tensor_f16", KIND_FLOPS, NEEDED, MOST_RATE,
        FIELD(tensor_flops, TYPE_DOUBLE)},
    [FIGURE_TENSOR_BF16] = {"tensor_bf16", KIND_FLOPS, OR_NONE, MOST_RATE,
        FIELD(tensor_bf16_flops, TYPE_DOUBLE)},
    [FIGURE_TENSOR_TF32] = {"tensor_tf32", KIND_FLOPS, OR_NONE, MOST_RATE,
        FIELD(tensor_tf32_flops, TYPE_DOUBLE)},
    [FIGURE_TENSOR_FP8] = {"tensor_fp8", KIND_FLOPS, OR_NONE, MOST_RATE,
        FIELD(tensor_fp8_flops, TYPE_DOUBLE)},
    [FIGURE_FP32] = {"fp32", KIND_FLOPS, NEEDED, MOST_RATE,
        FIELD(fp32_flops, TYPE_DOUBLE)},
    [FIGURE_EXP2_F32] = {"exp2_f32", KIND_OPS, OPTIONAL, MOST_RATE,
        FIELD(exp2_f32_per_second, TYPE_DOUBLE)},
    [FIGURE_EXP2_F16] = {"exp2_f16", KIND_OPS, OPTIONAL, MOST_RATE,
        FIELD(exp2_f16_per_second, TYPE_DOUBLE)},
    [FIGURE_NVLINK] = {"nvlink", KIND_BYTES_PER_SECOND, OR_NONE, MOST_RATE,
        FIELD(nvlink_bytes_per_second, TYPE_DOUBLE)},
    [FIGURE_PCIE] = {"pcie", KIND_BYTES_PER_SECOND, OR_NONE, MOST_RATE,
        FIELD(pcie_bytes_per_second, TYPE_DOUBLE)},
};
/* clang-format on */

double machine_figure_get(const struct machine *m, enum machine_figure f)
{
    const struct machine_figure_info *info = &machine_figures[f];
    const char *from = (const char *)m + info->offset;
    double value;
    int64_t wide;
    int number;
    switch (info->type) {
    case TYPE_INT:
        memcpy(&number, from, sizeof number);
        return number;
    case TYPE_INT64:
        memcpy(&wide, from, sizeof wide);
        return (double)wide;
    default:
        memcpy(&value, from, sizeof value);
        return value;
    }
}

void machine_figure_set(struct machine *m, enum machine_figure f, double value)
{
    const struct machine_figure_info *info = &machine_figures[f];
    char *to = (char *)m + info->offset;
    int64_t wide;
    int number;
    switch (info->type) {
    case TYPE_INT:
        number = (int)value;
        memcpy(to, &number, sizeof number);
        break;
    case TYPE_INT64:
        wide = (int64_t)value;
        memcpy(to, &wide, sizeof wide);
        break;
    default:
        memcpy(to, &value, sizeof value);
    }
}

/* The units that a kind may be written in. A size is printed in the first in which it is a
 * whole number; a rate in the last, if that leaves no more than two zeros after the point. */
#define MOST_UNITS 7
static const struct {
    const char *example;
    struct unit {
        const char *name;
        double factor;
    } units[MOST_UNITS];
} kinds[] = {
    [KIND_COUNT] = {"64", {{"", 1}}},
    [KIND_BYTES] = {"48 KiB",
                    {{"TB", 1e12},
                     {"GB", 1e9},
                     {"MB", 1e6},
                     {"GiB", 0x1p30},
                     {"MiB", 0x1p20},
                     {"KiB", 0x1p10},
                     {"B", 1}}},
    [KIND_BYTES_PER_SECOND] = {"3.35 TB/s", {{"B/s", 1}, {"GB/s", 1e9}, {"TB/s", 1e12}}},
    [KIND_HERTZ] = {"1.41 GHz", {{"Hz", 1}, {"MHz", 1e6}, {"GHz", 1e9}}},
    [KIND_FLOPS] = {"312 TFLOP/s", {{"FLOP/s", 1}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}}},
    [KIND_OPS] = {"3.9 Top/s", {{"op/s", 1}, {"Gop/s", 1e9}, {"Top/s", 1e12}}},
};

char *machine_figure_format(char buffer[FIGURE_TEXT_SIZE], const struct machine *m,
                            enum machine_figure f)
{
    const double value = machine_figure_get(m, f);
    const enum machine_kind kind = machine_figures[f].kind;
    const struct unit *unit = kinds[kind].units;
    if (value <= 0) {
        snprintf(buffer, FIGURE_TEXT_SIZE, "%s", value == 0 ? "unknown" : "none");
        return buffer;
    }
    if (kind == KIND_BYTES) {
        while (fmod(value, unit->factor) != 0)
            unit++; /* as far as bytes */
    } else if (kind != KIND_COUNT) {
        unit += f == FIGURE_NVLINK || f == FIGURE_PCIE ? 1 : 2; /* links: GB/s, as is usual */
        while (value < unit->factor / 1000)
            unit--; /* as far as base units */
    }
    snprintf(buffer, FIGURE_TEXT_SIZE, "%.15g%s%s", value / unit->factor,
             *unit->name ? " " : "", unit->name);
    return buffer;
}

/* The length of the decimal number that text begins with; 0 if it does not. No sign, exponent,
 * hexadecimal or infinity, which strtod() would take; and digits that a double can hold. */
static size_t number_length(const char *text)
{
    static const char digits[] = "0123456789";
    enum { MOST_DIGITS = 15 };
    const size_t whole = strspn(text, digits);
    if (text[whole] != '.')
        return whole <= MOST_DIGITS ? whole : 0;
    const size_t decimals = strspn(text + whole + 1, digits);
    return whole > 0 && decimals > 0 && whole + decimals <= MOST_DIGITS ? whole + 1 + decimals
                                                                        : 0;
}

bool machine_figure_parse(double *value, enum machine_figure f, const char *text)
{
    const struct machine_figure_info *info = &machine_figures[f];
    const struct unit *units = kinds[info->kind].units;
    const size_t length = number_length(text);
    if (info->may_be_none && strcmp(text, "none") == 0) {
        *value = MACHINE_NONE;
        return true;
    }
    if (length == 0)
        return false;
    const char *name = text + length + strspn(text + length, " ");
    for (int i = 0; i < MOST_UNITS && units[i].name; i++) {
        if (strcmp(name, units[i].name) != 0)
            continue;
        const double exact = strtod(text, NULL) * units[i].factor;
        const double number = round(exact); /* 1.001 * 1e9 is not whole, by a bit */
        const bool whole = fabs(exact - number) <= 0x1p-51 * exact;
        if (!(number > 0 && number <= info->most) || (info->type != TYPE_DOUBLE && !whole))
            return false;
        *value = number;
        return true;
    }
    return false;
}

char *machine_figure_allowed(char buffer[FIGURE_ALLOWED_SIZE], enum machine_figure f)
{
    const struct machine_figure_info *info = &machine_figures[f];
    const struct unit *units = kinds[info->kind].units;
    const char *none = info->may_be_none ? ", or none" : "";
    if (info->kind == KIND_COUNT) {
        snprintf(buffer, FIGURE_ALLOWED_SIZE, "a whole number from 1 to %.0f", info->most);
        return buffer;
    }
    int used =
        info->kind == KIND_BYTES
            ? snprintf(buffer, FIGURE_ALLOWED_SIZE, "from 1 to %.0f whole bytes", info->most)
            : snprintf(buffer, FIGURE_ALLOWED_SIZE, "above 0, up to %g a second", info->most);
    used += snprintf(buffer + used, (size_t)(FIGURE_ALLOWED_SIZE - used), ", as %s, in",
                     kinds[info->kind].example);
    for (int i = 0; i < MOST_UNITS && units[i].name; i++)
        used += snprintf(buffer + used, (size_t)(FIGURE_ALLOWED_SIZE - used), "%s %s",
                         i > 0 ? "," : "", units[i].name);
    snprintf(buffer + used, (size_t)(FIGURE_ALLOWED_SIZE - used), "%s", none);
    return buffer;
}
