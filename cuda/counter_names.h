/* The hardware counters that are read, and what the profilers call them. */
#ifndef FLASHLAB_CUDA_COUNTER_NAMES_H
#define FLASHLAB_CUDA_COUNTER_NAMES_H

#ifdef __cplusplus
extern "C" {
#endif

enum counter {
    COUNTER_LOAD_SECTORS,   /* sectors of global loads that the SMs requested */
    COUNTER_STORE_SECTORS,  /* of global stores */
    COUNTER_REDUCE_SECTORS, /* of atomics without a result */
    COUNTER_TMA_LOAD_BYTES, /* moved by the copy engine, which the sectors do not include */
    COUNTER_TMA_STORE_BYTES,
    COUNTER_L2_SECTORS, /* sectors that L2 served, whoever asked */
    COUNTER_DRAM_READ_BYTES,
    COUNTER_DRAM_WRITE_BYTES,
    COUNTER_SHARED_LOAD_CONFLICTS, /* extra passes over its banks, and cycles lost otherwise */
    COUNTER_SHARED_STORE_CONFLICTS,
    COUNTER_SHARED_LOAD_INSTRUCTIONS,  /* loads of a warp with at least one active lane */
    COUNTER_SHARED_LOAD_WAVEFRONTS,    /* passes over the banks that these loads took */
    COUNTER_SHARED_STORE_INSTRUCTIONS, /* stores of a warp with at least one active lane */
    COUNTER_SHARED_STORE_WAVEFRONTS,   /* passes over the banks that these stores took */
    COUNTER_MATRIX_LOAD_INSTRUCTIONS,  /* ldmatrix, which is none of the shared loads above */
    COUNTER_MATRIX_LOAD_WAVEFRONTS,    /* passes over the banks that it took */
    COUNTER_TENSOR_INSTRUCTIONS, /* of the tensor cores' pipe, with those of the next line */
    COUNTER_TENSOR_HALF_FMA,     /* HFMA2.MMA, which compilers use to make constants: no matrix
                                    products */
    COUNTER_DURATION_NS,
    COUNTER_COUNT,
};

/* Short, for people and files: "load_sectors". */
const char *counter_name(enum counter counter);

/* The profiler's: "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum". */
const char *counter_metric(enum counter counter);

#ifdef __cplusplus
}
#endif

#endif
