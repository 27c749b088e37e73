#include "cuda/counter_names.h"

static const struct {
    const char *name, *metric;
} counters[COUNTER_COUNT] = {
    [COUNTER_LOAD_SECTORS] = {"load_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
    [COUNTER_STORE_SECTORS] = {"store_sectors",
                               "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    [COUNTER_REDUCE_SECTORS] = {"reduce_sectors",
                                "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"},
    [COUNTER_TMA_LOAD_BYTES] = {"tma_load_bytes",
                                "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum"},
    [COUNTER_TMA_STORE_BYTES] = {"tma_store_bytes",
                                 "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum"},
    [COUNTER_L2_SECTORS] = {"l2_sectors", "lts__t_sectors.sum"},
    [COUNTER_DRAM_READ_BYTES] = {"dram_read_bytes", "dram__bytes_read.sum"},
    [COUNTER_DRAM_WRITE_BYTES] = {"dram_write_bytes", "dram__bytes_write.sum"},
    [COUNTER_SHARED_LOAD_CONFLICTS] =
        {"shared_load_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
    [COUNTER_SHARED_STORE_CONFLICTS] =
        {"shared_store_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"},
    [COUNTER_SHARED_LOAD_INSTRUCTIONS] = {"shared_load_instructions",
                                          "smsp__sass_inst_executed_op_shared_ld.sum"},
    [COUNTER_SHARED_LOAD_WAVEFRONTS] =
        {"shared_load_wavefronts",
         "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
    [COUNTER_SHARED_STORE_INSTRUCTIONS] = {"shared_store_instructions",
                                           "smsp__sass_inst_executed_op_shared_st.sum"},
    [COUNTER_SHARED_STORE_WAVEFRONTS] =
        {"shared_store_wavefronts",
         "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
    [COUNTER_MATRIX_LOAD_INSTRUCTIONS] = {"matrix_load_instructions",
                                          "smsp__sass_inst_executed_op_ldsm.sum"},
    [COUNTER_MATRIX_LOAD_WAVEFRONTS] =
        {"matrix_load_wavefronts",
         "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum"},
    [COUNTER_TENSOR_INSTRUCTIONS] = {"tensor_instructions",
                                     "sm__inst_executed_pipe_tensor.sum"},
    [COUNTER_TENSOR_HALF_FMA] = {"tensor_half_fma",
                                 "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"},
    [COUNTER_DURATION_NS] = {"duration_ns", "gpu__time_duration.sum"},
};

const char *counter_name(enum counter counter)
{
    return counters[counter].name;
}

const char *counter_metric(enum counter counter)
{
    return counters[counter].metric;
}
