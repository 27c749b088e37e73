/* Which of an Ascend's traffic reaches HBM, by the model of L2 (models/l2_traffic.h).
 *
 * The model was held against an NVIDIA H200: its replacement is not known to be an Ascend's.
 * What is claimed depends on sizes: whether what the cores exchange fits L2.
 */
#ifndef FLASHLAB_LESSONS_ASCEND_DRAM_H
#define FLASHLAB_LESSONS_ASCEND_DRAM_H

#include "common/lesson.h"

/* The lesson's problem, of 4096 rows at most, on a 910B with its L2 and with smaller ones, all
 * empty at first. */
enum status ascend_claim_dram(struct lesson *l, struct error *error);

#endif
