/* The roofline: how fast a machine can do work of a given arithmetic intensity.
 *
 * Interface:
 *   const double ridge = roofline_ridge(machine, ROOFLINE_TENSOR_F16, ROOFLINE_HBM);
 *   const struct roofline_point p = roofline_attention(ALGORITHM_FLASH2, &a);
 *   roofline_intensity(&p, ROOFLINE_HBM)             FLOPs a byte
 *   roofline_attainable(machine, &p)                 FLOP/s at most, and roofline_bound_of()
 *
 * Attainable are min(peak of the unit, bandwidth of a level x intensity at that level), over
 * the levels (Williams, Waterman and Patterson 2009; by levels: Ilic, Pratas and Sousa 2014,
 * Yang, Kurth and Williams 2020). Work is memory-bound where its intensity lies below the
 * ridge, peak / bandwidth.
 *
 * Bytes at the level L2 are what the SMs request (models/io.h). Bytes at the level HBM are each
 * tensor of a launch once each way, the least that DRAM can move if nothing of it lies in L2
 * before: models/l2_traffic.h says how much more it is.
 */
#ifndef FLASHLAB_MODELS_ROOFLINE_H
#define FLASHLAB_MODELS_ROOFLINE_H

#include <stdbool.h>

#include "core/attention.h"
#include "core/machine.h"
#include "core/traffic.h"
#include "models/io_basic.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What does the arithmetic. */
enum roofline_unit {
    ROOFLINE_FP32,
    ROOFLINE_TENSOR_F16,
    ROOFLINE_TENSOR_BF16,
    ROOFLINE_TENSOR_TF32,
    ROOFLINE_TENSOR_FP8,
    ROOFLINE_UNITS,
};

enum roofline_level { ROOFLINE_HBM, ROOFLINE_L2, ROOFLINE_LEVELS };

enum roofline_bound { BOUND_HBM, BOUND_L2, BOUND_COMPUTE };

/* Work: FLOPs that the unit does, and bytes by level. */
struct roofline_point {
    enum roofline_unit unit;
    double flops;
    double bytes[ROOFLINE_LEVELS];
};

/* "fp32", "fp16", "bf16", "tf32", "fp8"; "HBM", "L2"; "HBM", "L2", "compute". */
const char *roofline_unit_name(enum roofline_unit unit);
const char *roofline_level_name(enum roofline_level level);
const char *roofline_bound_name(enum roofline_bound bound);

/* The unit that multiplies matrices of that dtype: fp32 is not rounded to tf32. */
enum roofline_unit roofline_unit_of(enum dtype dtype);

/* FLOP/s and bytes/s; 0 where the machine has no such thing or it is not known. */
double roofline_peak(const struct machine *machine, enum roofline_unit unit);
double roofline_bandwidth(const struct machine *machine, enum roofline_level level);

/* Intensity at which the two meet, FLOPs a byte; 0 if either is not known. */
double roofline_ridge(const struct machine *machine, enum roofline_unit unit,
                      enum roofline_level level);

double roofline_intensity(const struct roofline_point *point, enum roofline_level level);

/* FLOP/s; levels whose bandwidth is not known do not bound. 0 if the unit is not there. */
double roofline_attainable(const struct machine *machine, const struct roofline_point *point);
enum roofline_bound roofline_bound_of(const struct machine *machine,
                                      const struct roofline_point *point);

/* Of counts: bytes at L2 are what moved, in sectors; those at HBM are given. Tensor cores do
 * the matrix FLOPs only; the fp32 units all of them. */
struct roofline_point roofline_account(const struct account *account, enum roofline_unit unit,
                                       int64_t hbm_bytes);

/* A whole run of the algorithm. a has passed attention_check(). */
struct roofline_point roofline_attention(enum algorithm algorithm, const struct attention *a);

/* A matrix product whose operands and result move once each: no product moves less. */
struct roofline_point roofline_matmul(const struct io_matmul *shape, enum dtype dtype);

/* The least that a run moves to or from DRAM, see above. */
int64_t roofline_least_bytes(enum algorithm algorithm, const struct attention *a);

#ifdef __cplusplus
}
#endif

#endif
