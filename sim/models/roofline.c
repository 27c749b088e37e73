#include "models/roofline.h"

#include "models/io.h"

static const char *const unit_names[ROOFLINE_UNITS] = {"fp32", "fp16", "bf16", "tf32", "fp8"};
static const char *const level_names[ROOFLINE_LEVELS] = {"HBM", "L2"};
static const char *const bound_names[] = {"HBM", "L2", "compute"};

const char *roofline_unit_name(enum roofline_unit unit)
{
    return unit_names[unit];
}

const char *roofline_level_name(enum roofline_level level)
{
    return level_names[level];
}

const char *roofline_bound_name(enum roofline_bound bound)
{
    return bound_names[bound];
}

enum roofline_unit roofline_unit_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return ROOFLINE_FP32;
    case DTYPE_F16:
        return ROOFLINE_TENSOR_F16;
    case DTYPE_BF16:
        return ROOFLINE_TENSOR_BF16;
    default:
        return ROOFLINE_TENSOR_FP8;
    }
}

double roofline_peak(const struct machine *machine, enum roofline_unit unit)
{
    const double peaks[ROOFLINE_UNITS] = {
        machine->fp32_flops, machine->tensor_flops, machine->tensor_bf16_flops,
        machine->tensor_tf32_flops, machine->tensor_fp8_flops};
    return peaks[unit] > 0 ? peaks[unit] : 0;
}

double roofline_bandwidth(const struct machine *machine, enum roofline_level level)
{
    return level == ROOFLINE_HBM ? machine->hbm_bytes_per_second : machine->l2_bytes_per_second;
}

double roofline_ridge(const struct machine *machine, enum roofline_unit unit,
                      enum roofline_level level)
{
    const double bandwidth = roofline_bandwidth(machine, level);
    return bandwidth > 0 ? roofline_peak(machine, unit) / bandwidth : 0;
}

double roofline_intensity(const struct roofline_point *point, enum roofline_level level)
{
    return point->flops / point->bytes[level];
}

/* The lowest ceiling over the point, and whose it is. */
static double lowest(enum roofline_bound *bound, const struct machine *machine,
                     const struct roofline_point *point)
{
    double ceiling = roofline_peak(machine, point->unit);
    *bound = BOUND_COMPUTE;
    for (int i = 0; i < ROOFLINE_LEVELS; i++) {
        const enum roofline_level level = (enum roofline_level)i;
        const double bandwidth = roofline_bandwidth(machine, level);
        const double slope = bandwidth * roofline_intensity(point, level);
        if (bandwidth > 0 && slope < ceiling) {
            ceiling = slope;
            *bound = level == ROOFLINE_HBM ? BOUND_HBM : BOUND_L2;
        }
    }
    return ceiling;
}

double roofline_attainable(const struct machine *machine, const struct roofline_point *point)
{
    enum roofline_bound bound;
    return lowest(&bound, machine, point);
}

enum roofline_bound roofline_bound_of(const struct machine *machine,
                                      const struct roofline_point *point)
{
    enum roofline_bound bound;
    lowest(&bound, machine, point);
    return bound;
}

int64_t roofline_least_bytes(enum algorithm algorithm, const struct attention *a)
{
    const int64_t planes = attention_planes_q(a), queries = planes * a->seqlen_q;
    const int64_t scores = queries * a->seqlen_k * dtype_bytes(a->dtype);
    const int64_t statistics = 4 * queries * (algorithm == ALGORITHM_FLASH1 ? 2 : 1);
    /* standard: S is written by one launch and read by the next, and so is P */
    return io_compulsory_bytes(a) + statistics +
           (algorithm == ALGORITHM_STANDARD ? 4 * scores : 0);
}

struct roofline_point roofline_account(const struct account *account, enum roofline_unit unit,
                                       int64_t hbm_bytes)
{
    const struct traffic total = account_total(account);
    struct roofline_point point = {.unit = unit, .flops = (double)account->flops.matrix};
    if (unit == ROOFLINE_FP32)
        point.flops += (double)(account->flops.other + account->flops.exp);
    for (int i = 0; i < DIRECTION_COUNT; i++)
        point.bytes[ROOFLINE_L2] += (double)(SECTOR_BYTES * total.of[i].sectors);
    point.bytes[ROOFLINE_HBM] = (double)hbm_bytes;
    return point;
}

struct roofline_point roofline_attention(enum algorithm algorithm, const struct attention *a)
{
    const struct account account = io_predict(algorithm, a, false);
    return roofline_account(&account, roofline_unit_of(a->dtype),
                            roofline_least_bytes(algorithm, a));
}

struct roofline_point roofline_matmul(const struct io_matmul *shape, enum dtype dtype)
{
    const double rows = shape->rows, cols = shape->cols, depth = shape->depth;
    const double bytes = (rows * depth + depth * cols + rows * cols) * dtype_bytes(dtype);
    return (struct roofline_point){.unit = roofline_unit_of(dtype),
                                   .flops = 2 * rows * cols * depth,
                                   .bytes = {bytes, bytes}};
}
