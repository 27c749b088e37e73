/* The GPUs that can be simulated: capacities and rates of one chip.
 *
 * Interface: machine_find() by name, or walk machine_table().
 * Every figure's source stands beside the table in machine.c.
 */
#ifndef FLASHLAB_CORE_MACHINE_H
#define FLASHLAB_CORE_MACHINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct machine {
    const char *name;
    int sms;                      /* streaming multiprocessors */
    int64_t hbm_bytes;            /* device memory */
    double hbm_bytes_per_second;  /* peak, by the datasheet */
    int64_t l2_bytes;             /* L2 cache */
    int64_t sram_bytes_per_sm;    /* shared memory an SM has for its blocks */
    int64_t sram_bytes_per_block; /* the most that one block may ask for */
    int64_t register_bytes;       /* register file of an SM: the most that one block can use */
    double tensor_flops;          /* dense 16-bit FLOP/s of the tensor cores */
    double fp32_flops;            /* FLOP/s of the fp32 units */
    const char *note;             /* what a reader should know of these figures */
};

/* The whole table and its length. */
const struct machine *machine_table(int *count);

/* The machine of that name (letter case does not matter), or NULL. */
const struct machine *machine_find(const char *name);

/* The machine that is simulated unless another is asked for. */
const struct machine *machine_default(void);

#ifdef __cplusplus
}
#endif

#endif
