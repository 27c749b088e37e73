/* The machines that can be simulated: capacities and rates of one chip.
 *
 * Interface: machine_find() by name, or walk machine_table(). The data, each figure with its
 * source, is sim/core/machines.txt, compiled into the program; core/machine_file.h reads a
 * user's file of the same form, core/machine_figures.h names, prints and compares the figures.
 */
#ifndef FLASHLAB_CORE_MACHINE_H
#define FLASHLAB_CORE_MACHINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The figures of a machine, in the order in which they are listed. */
enum machine_figure {
    FIGURE_SMS,
    FIGURE_CLOCK,
    FIGURE_TENSOR_CLOCK,
    FIGURE_HBM_SIZE,
    FIGURE_HBM_BANDWIDTH,
    FIGURE_L2_SIZE,
    FIGURE_L2_LINE,
    FIGURE_L2_SECTOR,
    FIGURE_L2_PARTITIONS,
    FIGURE_L2_BANDWIDTH,
    FIGURE_SRAM_PER_SM,
    FIGURE_SRAM_PER_BLOCK,
    FIGURE_REGISTERS_PER_SM,
    FIGURE_THREADS_PER_SM,
    FIGURE_WARPS_PER_SM,
    FIGURE_BLOCKS_PER_SM,
    FIGURE_THREADS_PER_BLOCK,
    FIGURE_TENSOR_F16,
    FIGURE_TENSOR_BF16,
    FIGURE_TENSOR_TF32,
    FIGURE_TENSOR_FP8,
    FIGURE_FP32,
    FIGURE_EXP2_F32,
    FIGURE_EXP2_F16,
    FIGURE_NVLINK,
    FIGURE_PCIE,
    FIGURE_COUNT,
};

enum {
    MACHINE_NAME_SIZE = 32, /* with the NUL, as the two below */
    MACHINE_NOTE_SIZE = 120,
    MACHINE_SOURCE_SIZE = 160,
    WARP_THREADS = 32,
    MACHINE_NONE = -1, /* a rate of what the machine does not have */
};

/* The figures marked * are always there. Any other is 0 where it is not known, and those marked
 * - are MACHINE_NONE where the machine has no such thing: ask core/machine_figures.h before
 * dividing by one. Rates are peaks, of dense products and with fp32 accumulation. */
struct machine {
    char name[MACHINE_NAME_SIZE];
    int sms;                        /* * streaming multiprocessors */
    double clock_hz;                /* of the SMs, boosted */
    double tensor_clock_hz;         /* at which tensor rates are stated, if it is another */
    int64_t hbm_bytes;              /* * device memory */
    double hbm_bytes_per_second;    /* * peak, by the datasheet */
    int64_t l2_bytes;               /* * L2 cache */
    int l2_line_bytes;              /* what a tag of L2 covers */
    int l2_sector_bytes;            /* what L2 fetches and SMs request */
    int l2_partitions;              /* near to some of the SMs each */
    double l2_bytes_per_second;     /* that all SMs together can read from it */
    int64_t sram_bytes_per_sm;      /* * shared memory an SM has for its blocks */
    int64_t sram_bytes_per_block;   /* * the most that one block may ask for */
    int64_t register_bytes;         /* * register file of an SM: the most for one block */
    int threads_per_sm;             /* resident at once */
    int warps_per_sm;               /* resident at once */
    int blocks_per_sm;              /* resident at once */
    int threads_per_block;          /* the most of a block */
    double tensor_flops;            /* * FLOP/s of the tensor cores on fp16 */
    double tensor_bf16_flops;       /* - on bf16 */
    double tensor_tf32_flops;       /* - on fp32, read as tf32 */
    double tensor_fp8_flops;        /* - on e4m3 and e5m2 */
    double fp32_flops;              /* * FLOP/s of the fp32 units */
    double exp2_f32_per_second;     /* fp32 results of the special function units */
    double exp2_f16_per_second;     /* fp16 results */
    double nvlink_bytes_per_second; /* - to other GPUs, both directions together */
    double pcie_bytes_per_second;   /* - to the host, both directions together */
    char note[MACHINE_NOTE_SIZE];   /* what a reader should know of these figures */
    char source[FIGURE_COUNT][MACHINE_SOURCE_SIZE]; /* of each figure; "" if none was given */
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
